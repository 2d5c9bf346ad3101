// SPDX-License-Identifier: MIT
// Decode, level 4: 32 query rows per block where there are that many, as with several new queries
// per sequence. A tile of K and V in shared memory then serves twice as many rows.
#pragma once

#include <optional>

#include "chapters/10_flash_attention/decode_level_3_one_launch.cuh"

namespace cookbook::attention {

struct WideTile : OneLaunch {
  static constexpr LevelText text{
      .name = "wide_tile",
      .changed = "32 query rows per block, if a KV head has more than 16",
      .expect =
          "4 queries of 8 heads: K and V are read once instead of twice, the second time from L2",
      .cost = "twice the accumulators per thread",
  };
  static int rows_of(const Problem& p) {
    return p.shape.seq_q * (p.shape.heads_q / p.shape.heads_kv);
  }

  struct Plan {
    std::optional<OneLaunchPlan<1>> narrow;
    std::optional<OneLaunchPlan<2>> wide;
  };
  static Plan prepare(const Problem& p, const Buffers& buffers) {
    Plan plan;
    if (rows_of(p) > 16) {
      plan.wide = OneLaunchPlan<2>::make(p, buffers);
    } else {
      plan.narrow = OneLaunchPlan<1>::make(p, buffers);
    }
    return plan;
  }
  static Claims claims(const Problem& p) {
    const double once = 2.0 * p.head_dim * static_cast<double>(p.k_rows());
    const int tiles = ceil_div(rows_of(p), 32);
    return {Accesses("global", "async_load", "k").bytes(once * tiles, Relation::at_most),
            Accesses("global", "async_load", "v").bytes(once * tiles, Relation::at_most)};
  }
  static void run(const Plan& plan, Stream stream) {
    if (plan.wide) plan.wide->start(stream);
    if (plan.narrow) plan.narrow->start(stream);
  }
};

}  // namespace cookbook::attention
