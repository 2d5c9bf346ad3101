// SPDX-License-Identifier: MIT
// Decode, level 5: one block of eight warps per SM where the keys of a sequence are split, instead
// of two blocks of four. As many bytes are in flight, but there are half as many shares to write
// and to merge.
#pragma once

#include "chapters/10_flash_attention/decode_level_4_wide_tile.cuh"

namespace cookbook::attention {

struct EightWarps : WideTile {
  static constexpr LevelText text{
      .name = "eight_warps",
      .changed = "one block of eight warps per SM, if there are two blocks or more per KV head",
      .expect =
          "one sequence: 16 shares to merge instead of 32, so 2 us less; many sequences: the "
          "kernel of level 4",
      .cost = "eight warps wait for each other before they merge",
  };

  using Eight = OneLaunchPlan<1, 8>;
  struct Plan {
    std::optional<Eight> eight;
    WideTile::Plan other;
  };
  /// Whether the keys of a KV head are split although an SM runs only one block.
  static bool splits(const Problem& p) {
    const int64_t heads = int64_t{p.shape.heads_kv} * p.shape.batch;
    const DeviceInfo& device = device_info();
    const size_t most = std::max(GqaPackedConfig<Case<bf16, 128>, 1, 3, 8>::kSmemBytes,
                                 GqaPackedConfig<Case<bf16, 64>, 1, 6, 8>::kSmemBytes);
    return rows_of(p) <= 16 && 2 * heads <= device.sm_count && most <= device.smem_per_block_bytes;
  }
  static Plan prepare(const Problem& p, const Buffers& buffers) {
    Plan plan;
    if (splits(p)) {
      plan.eight = Eight::make(p, buffers);
    } else {
      plan.other = WideTile::prepare(p, buffers);
    }
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    if (plan.eight) {
      plan.eight->start(stream);
    } else {
      WideTile::run(plan.other, stream);
    }
  }
};

}  // namespace cookbook::attention
