// SPDX-License-Identifier: MIT
// Chapter 9: its ladders and their levels. The last 15 are sidebars.
#pragma once

#include "common/harness/claiming.hpp"
#include "generated/chapter_9_levels.hpp"

namespace cookbook {

/// A ladder over rows: what all ladders of this chapter share. 1 GiB is moved at `gpu_size`.
template <class P>
Ladder row_ladder(std::string name, std::string title, Size gpu_size, Size check_size) {
  auto ladder = ladder_over<P>(std::move(name), std::move(title), {"rows", "cols"});
  ladder.gpu_size = std::move(gpu_size);
  ladder.check_size = std::move(check_size);
  // Rows longer than a block of 512 threads holds, and enough of them that blocks compute several.
  ladder.trace_size = {32, 20480};
  // Around 8, 32, 64 ... threads per row, odd lengths, few and many rows, rows for clusters.
  ladder.test_sizes = {{1, 1},     {3, 7},     {5, 31},    {4, 33},   {33, 8},
                       {67, 256},  {9, 257},   {7, 1000},  {3, 1024}, {5, 1028},
                       {70, 1100}, {2, 2047},  {2, 4097},  {3, 6000}, {2, 16384},
                       {2, 16392}, {1, 40000}, {1, 40003}, {130, 37}};
  return ladder;
}

/// The smaller shapes, for sidebars.
inline Ladder sidebar_ladder(std::string name, std::string title, Size gpu_size) {
  auto ladder = row_ladder<softmax::Problem<float>>(std::move(name), std::move(title),
                                                    std::move(gpu_size), {64, 4096});
  ladder.trace_size = {8, 4096};
  ladder.test_sizes = {{1, 1}, {5, 31}, {4, 36}, {3, 1024}, {2, 4092}};
  return ladder;
}

/// RMSNorm, for sidebars.
template <class T>
Ladder rms_sidebar(std::string name, std::string title, Size gpu_size, Size trace_size) {
  auto ladder = row_ladder<softmax::RmsProblem<T>>(std::move(name), std::move(title),
                                                   std::move(gpu_size), trace_size);
  ladder.dtype = dtype_name(softmax::kDType<T>);
  ladder.trace_size = std::move(trace_size);
  return ladder;
}

/// Rows of 128k and 256k elements, which no block can hold.
template <class T>
Ladder long_rows_ladder(std::string name, std::string title) {
  using namespace softmax;
  auto ladder = row_ladder<Problem<T>>(std::move(name), std::move(title),
                                       {4096 / static_cast<int>(sizeof(T)), 131072}, {2, 131072});
  ladder.dtype = dtype_name(kDType<T>);
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

/// RMSNorm of rows whose weights are as many bytes as an SM's share of the rows.
template <class T>
Ladder long_rms_ladder(std::string name, std::string title) {
  using namespace softmax;
  auto ladder = row_ladder<RmsProblem<T>>(
      std::move(name), std::move(title), {2048 / static_cast<int>(sizeof(T)), 262144}, {2, 131072});
  ladder.dtype = dtype_name(kDType<T>);
  ladder.trace_size = {2, 131072};
  ladder.test_sizes = {{2, 70000}, {1, 262144}, {1, 100001}};
  ladder.levels = {claiming(make_level<RmsTwoPasses<T>>(), {}),
                   claiming(make_level<PackedRows<RmsNorm<T>>>(), {faster_than_previous(1.0)}),
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
  f32.test_sizes.push_back({300, 7});  // two lanes per row in the last level
  f32.levels =
      rows<ThreePasses<float>, BlockPerRow<float>, Online<float>, WarpShuffles<float>,
           Vectorised<float>, OnChip<Softmax<float>>, Cluster<Softmax<float>>,
           Signals<Softmax<float>>, InShared<Softmax<float>>, ShortRows<Softmax<float>>,
           PackedRows<Softmax<float>>, StayingClusters<Softmax<float>>, FewRows<Softmax<float>>>();

  auto b16 = row_ladder<Problem<bf16>>("softmax_bf16", "softmax of every row, bf16", {8192, 32768},
                                       {64, 20480});
  b16.dtype = "bf16";
  b16.test_sizes.push_back({300, 7});
  b16.levels =
      rows<ThreePasses<bf16>, BlockPerRow<bf16>, Online<bf16>, WarpShuffles<bf16>, Vectorised<bf16>,
           OnChip<Softmax<bf16>>, ClusterOfHalfTheBytes, Signals<Softmax<bf16>>,
           InShared<Softmax<bf16>>, ShortRows<Softmax<bf16>>, PackedRows<Softmax<bf16>>,
           StayingClusters<Softmax<bf16>>, FewRows<Softmax<bf16>>>();

  auto f32_long =
      long_rows_ladder<float>("softmax_long", "softmax of rows too long for an SM, fp32");
  auto b16_long =
      long_rows_ladder<bf16>("softmax_long_bf16", "softmax of rows too long for an SM, bf16");

  auto rms = row_ladder<RmsProblem<float>>("rmsnorm", "RMSNorm of every row, fp32", {16384, 8192},
                                           {64, 8192});
  rms.trace_size = {12, 4096};
  rms.levels = rows<RmsTwoPasses<float>, OnChip<RmsNorm<float>>, ShortRows<RmsNorm<float>>,
                    PackedRows<RmsNorm<float>>, RowsInOrder<RmsNorm<float>>,
                    HeldWeights<RmsNorm<float>>, FewRows<RmsNorm<float>>>();

  auto rms_b16 = row_ladder<RmsProblem<bf16>>("rmsnorm_bf16", "RMSNorm of every row, bf16",
                                              {32768, 8192}, {64, 8192});
  rms_b16.dtype = "bf16";
  rms_b16.trace_size = {12, 4096};
  rms_b16.levels = rows<RmsTwoPasses<bf16>, OnChip<RmsNorm<bf16>>, ShortRows<RmsNorm<bf16>>,
                        PackedRows<RmsNorm<bf16>>, RowsInOrder<RmsNorm<bf16>>,
                        HeldWeights<RmsNorm<bf16>>, FewRows<RmsNorm<bf16>>>();

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

  auto special = sidebar_ladder(
      "special_rows", "sidebar: rows of -inf, +inf, NaN, huge and equal numbers", {4096, 16384});
  special.make_problem = [](const Size& size, const Variant& variant) {
    auto problem = Problem<float>::make(size, variant);
    problem.fill = fill_special_rows;
    return std::shared_ptr<AnyProblem>(std::make_shared<ProblemHolder<Problem<float>>>(problem));
  };
  special.trace_size = {8, 20480};
  special.test_sizes = {{8, 1}, {8, 5}, {16, 100}, {8, 1000}, {9, 4097}, {8, 33000}};
  for (const LevelEntry& level : f32.levels) special.levels.push_back(claiming(level, {}));
  special.levels.push_back(claiming(make_level<OneFma<float>>(), {}));

  // Rows of few elements, on 16-byte boundaries and off them. 256 MiB are moved.
  auto short_rows = sidebar_ladder("short_rows", "sidebar: rows of 32 elements", {1 << 20, 32});
  short_rows.trace_size = short_rows.check_size = {1024, 32};
  short_rows.test_sizes = {{1, 4}, {350, 12}, {257, 64}, {600, 32}, {70, 68}, {9, 512}};
  short_rows.levels = {claiming(make_level<OnChip<Softmax<float>>>(), {}),
                       make_level<ShortRows<Softmax<float>>>(),
                       make_level<PackedRows<Softmax<float>>>()};

  auto packed = sidebar_ladder("packed_rows", "sidebar: rows of 17 elements", {1 << 21, 17});
  packed.trace_size = packed.check_size = {1024, 17};
  packed.test_sizes = {{1, 1}, {600, 3}, {300, 17}, {130, 33}, {70, 63}, {33, 65}, {9, 511}};
  packed.levels = {make_level<PackedRows<Softmax<float>>>()};

  auto prefetched =
      sidebar_ladder("prefetched", "sidebar: several rows per block, loaded ahead", {32768, 4096});
  prefetched.levels = rows<Cluster<Softmax<float>>, Prefetched<Softmax<float>>>();

  auto stay = rms_sidebar<float>("stay", "sidebar: RMSNorm, a cluster for one row or for eight",
                                 {1024, 131072}, {20, 20480});
  stay.test_sizes = {{1, 8}, {20, 16388}, {33, 4096}, {17, 20480}, {7, 131080}};
  stay.levels = rows<Stay<RmsNorm<float>, 1>, Stay<RmsNorm<float>, 8>>();
  auto stay_b16 =
      rms_sidebar<bf16>("stay_bf16", "sidebar: the same, bf16", {1024, 262144}, {20, 20480});
  stay_b16.test_sizes = stay.test_sizes;
  stay_b16.levels = rows<Stay<RmsNorm<bf16>, 1>, Stay<RmsNorm<bf16>, 8>>();

  auto stay_rows = row_ladder<Problem<float>>(
      "stay_softmax", "sidebar: softmax, a cluster for one row or for eight", {512, 262144},
      {20, 20480});
  stay_rows.trace_size = {20, 20480};
  stay_rows.test_sizes = stay.test_sizes;
  stay_rows.levels = rows<Stay<Softmax<float>, 1>, Stay<Softmax<float>, 8>>();
  auto stay_rows_b16 = row_ladder<Problem<bf16>>("stay_softmax_bf16", "sidebar: the same, bf16",
                                                 {1024, 262144}, {20, 20480});
  stay_rows_b16.dtype = "bf16";
  stay_rows_b16.trace_size = {20, 20480};
  stay_rows_b16.test_sizes = stay.test_sizes;
  stay_rows_b16.test_sizes.push_back({5, 50000});
  stay_rows_b16.test_sizes.push_back({5, 102400});
  stay_rows_b16.levels = rows<Stay<Softmax<bf16>, 1>, Stay<Softmax<bf16>, 8>>();

  auto three = rms_sidebar<float>("three_blocks", "sidebar: RMSNorm in order, by three blocks",
                                  {4096, 4096}, {40, 4096});
  three.test_sizes = {{1, 8},     {130, 1000}, {75, 2048}, {41, 3000},
                      {40, 4096}, {19, 8192},  {17, 16384}};
  three.levels = rows<ThreeBlocks<float>>();
  auto three_b16 =
      rms_sidebar<bf16>("three_blocks_bf16", "sidebar: the same, bf16", {8192, 4096}, {40, 4096});
  three_b16.test_sizes = three.test_sizes;
  three_b16.levels = rows<ThreeBlocks<bf16>>();

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

  chapter.ladders = {f32,           b16,          f32_long, b16_long,   rms,       rms_b16,
                     rms_long,      rms_long_b16, stay,     stay_b16,   stay_rows, stay_rows_b16,
                     three,         three_b16,    special,  short_rows, packed,    prefetched,
                     rms_in_shared, one_fma,      alone,    divergence, fast_math};
  chapter.exercises = {make_level<OneRead>(), make_level<ReusedTable>()};
  return chapter;
}

}  // namespace cookbook
