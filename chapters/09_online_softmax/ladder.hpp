// SPDX-License-Identifier: MIT
// Chapter 9: its ladders and their levels. Those from special_rows on are sidebars.
#pragma once

#include "chapters/09_online_softmax/ladders.hpp"
#include "common/harness/contract/claiming.hpp"
#include "generated/chapter_9_levels.hpp"

namespace cookbook {

/// Rows of 128k and 256k elements, which no block can hold.
template <class T>
Ladder long_rows_ladder(std::string name, std::string title) {
  using namespace softmax;
  auto ladder = row_ladder<Problem<T>>(std::move(name), std::move(title),
                                       {4096 / static_cast<int>(sizeof(T)), 131072}, {2, 131072});
  ladder.trace_size = {2, 131072};
  ladder.test_sizes = {{2, 70000}, {1, 140000}, {1, 262144}, {1, 100001}};
  const bool is_wide = sizeof(T) == 4;  // half the exponentials for the bytes
  const Claim pays = is_wide ? at_least_previous(0.98, "level 7 left little at this length")
                             : faster_than_previous(1.02);
  ladder.levels = {claiming(make_level<Vectorised<T>>(), {}),
                   claiming(make_level<Cluster<Softmax<T>>>(), {faster_than_previous(1.0)}),
                   claiming(make_level<Signals<Softmax<T>>>(), {faster_than_previous(1.02)}),
                   claiming(make_level<InShared<Softmax<T>>>(), {pays})};
  return ladder;
}

template <class T>
Ladder rms_ladder(std::string name, std::string title) {
  using namespace softmax;
  auto ladder = row_ladder<RmsProblem<T>>(std::move(name), std::move(title),
                                          {65536 / static_cast<int>(sizeof(T)), 8192}, {64, 8192});
  ladder.trace_size = {12, 4096};
  ladder.levels = rows<RmsTwoPasses<T>, OnChip<RmsNorm<T>>, RowsInOrder<RmsNorm<T>>>();
  return ladder;
}

/// RMSNorm of rows whose weights are as many bytes as an SM's share of the rows.
template <class T>
Ladder long_rms_ladder(std::string name, std::string title) {
  using namespace softmax;
  auto ladder = row_ladder<RmsProblem<T>>(
      std::move(name), std::move(title), {2048 / static_cast<int>(sizeof(T)), 262144}, {2, 131072});
  ladder.trace_size = {2, 131072};
  ladder.test_sizes = {{2, 70000}, {1, 262144}, {1, 100001}};
  ladder.levels = {claiming(make_level<RmsTwoPasses<T>>(), {}),
                   claiming(make_level<InShared<RmsNorm<T>>>(), {faster_than_previous(1.0)}),
                   claiming(make_level<HeldWeights<RmsNorm<T>>>(), {faster_than_previous(1.02)})};
  return ladder;
}

/// Level 6 in bf16, slower than level 5 by more than in fp32.
struct ClusterOfHalfTheBytes : softmax::Cluster<softmax::Softmax<bf16>> {
  static Claims claims(const Problem& p) {
    Claims claims = mechanism(Cluster::claims(p));
    claims.push_back(
        at_least_previous(0.85, "half the bytes per block: too few to hide the barriers"));
    return claims;
  }
};

inline Chapter chapter_9() {
  using namespace softmax;
  Chapter chapter;
  auto f32 = row_ladder<Problem<float>>("softmax", "softmax of every row, fp32", {4096, 32768},
                                        {64, 20480});
  f32.levels = rows<ThreePasses<float>, BlockPerRow<float>, Online<float>, WarpShuffles<float>,
                    Vectorised<float>, OnChip<Softmax<float>>, Cluster<Softmax<float>>,
                    Signals<Softmax<float>>, InShared<Softmax<float>>>();

  auto b16 = row_ladder<Problem<bf16>>("softmax_bf16", "softmax of every row, bf16", {8192, 32768},
                                       {64, 20480});
  b16.levels = rows<ThreePasses<bf16>, BlockPerRow<bf16>, Online<bf16>, WarpShuffles<bf16>,
                    Vectorised<bf16>, OnChip<Softmax<bf16>>, ClusterOfHalfTheBytes,
                    Signals<Softmax<bf16>>, InShared<Softmax<bf16>>>();

  auto f32_long =
      long_rows_ladder<float>("softmax_long", "softmax of rows too long for an SM, fp32");
  auto b16_long =
      long_rows_ladder<bf16>("softmax_long_bf16", "softmax of rows too long for an SM, bf16");

  auto rms = rms_ladder<float>("rmsnorm", "RMSNorm of every row, fp32");
  auto rms_b16 = rms_ladder<bf16>("rmsnorm_bf16", "RMSNorm of every row, bf16");

  auto rms_long =
      long_rms_ladder<float>("rmsnorm_long", "RMSNorm of rows too long for an SM, fp32");
  auto rms_long_b16 =
      long_rms_ladder<bf16>("rmsnorm_long_bf16", "RMSNorm of rows too long for an SM, bf16");

  auto rms_in_shared = rms_b16;
  rms_in_shared.name = "rmsnorm_in_shared";
  rms_in_shared.title = "sidebar: RMSNorm in shared memory, bf16";
  rms_in_shared.levels = {
      claiming(make_level<OnChip<RmsNorm<bf16>>>(), {}),
      claiming(make_level<InShared<RmsNorm<bf16>>>(),
               {at_least_previous(0.93, "without exponentials, registers were no obstacle")})};

  auto special = special_rows_ladder();
  for (const LevelEntry& level : f32.levels) special.levels.push_back(claiming(level, {}));
  special.levels.push_back(claiming(make_level<OneFma<float>>(), {}));

  auto prefetched =
      sidebar_ladder("prefetched", "sidebar: several rows per block, loaded ahead", {32768, 4096});
  prefetched.levels = rows<Cluster<Softmax<float>>, Prefetched<Softmax<float>>>();

  auto alone = sidebar_ladder("online_alone", "sidebar: levels 1 and 2 where L1 holds the row",
                              {131072, 1024});
  alone.levels = rows<BlockPerRow<float>, Online<float>>();

  auto divergence =
      sidebar_ladder("divergence", "sidebar: three ways to update (max, sum)", {32768, 4096});
  divergence.levels = rows<Updated<BranchUpdate>, Updated<BothUpdate>, Updated<SelectUpdate>>();

  auto fast_math =
      sidebar_ladder("fast_math", "sidebar: level 5 with three exponentials", {32768, 4096});
  fast_math.levels =
      rows<Exponential<AccurateExp>, Exponential<IntrinsicExp>, Exponential<FlushedExp>>();

  auto one_fma = long_rows_ladder<bf16>(
      "one_fma", "sidebar: an exponential of one FMA and one ex2, long bf16 rows");
  one_fma.gpu_size = {4096, 65536};
  one_fma.levels = {claiming(make_level<InShared<Softmax<bf16>>>(), {}),
                    make_level<OneFma<bf16>>()};

  chapter.ladders = {f32,           b16,      f32_long,     b16_long,   rms,
                     rms_b16,       rms_long, rms_long_b16, special,    prefetched,
                     rms_in_shared, one_fma,  alone,        divergence, fast_math};
  chapter.exercises = {make_level<OneRead>(), make_level<ReusedTable>()};
  return chapter;
}

}  // namespace cookbook
