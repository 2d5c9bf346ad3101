// SPDX-License-Identifier: MIT
// Decode, level 4: 32 query rows per block, for several new queries per sequence. A tile of K and V
// in shared memory then serves twice as many rows.
#pragma once

#include "chapters/10_flash_attention/decode_level_3_one_launch.cuh"

namespace cookbook::attention {

struct WideTile : OneLaunch {
  static constexpr LevelText text{
      .name = "wide_tile",
      .changed = "32 query rows per block",
      .expect =
          "4 queries of 8 heads: K and V are read once instead of twice, the second time from L2",
      .cost = "twice the accumulators per thread, half of them idle with 16 rows or fewer",
  };
  using Plan = OneLaunchPlan<2>;
  static Plan prepare(const Problem& p, const Buffers& buffers) { return Plan::make(p, buffers); }
  static Claims claims(const Problem& p) {
    Claims claims = byte_claims(p, 32);
    if (rows_of(p) > 16) claims.push_back(faster_than_previous(1.15));
    return claims;
  }
  static void run(const Plan& plan, Stream stream) { plan.start(stream); }
};

}  // namespace cookbook::attention
