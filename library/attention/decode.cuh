// SPDX-License-Identifier: MIT
// Decode: chapter 10's kernel of one launch, with as many query rows and warps per block as suit
// the shape.
#pragma once

#include <variant>

#include "chapters/10_flash_attention/decode_level_4_wide_tile.cuh"

namespace cookbook::attention {

struct Decode : WideTile {
  static constexpr LevelText text{
      .name = "decode",
      .changed = "16 or 32 query rows per block, four or eight warps",
      .expect =
          "more than 16 rows per KV head: K and V are read once per 32 rows; one sequence: half as "
          "many shares to merge",
      .cost = "three kernels to compile",
  };

  struct Plan {
    std::variant<OneLaunchPlan<1>, OneLaunchPlan<2>, OneLaunchPlan<1, 8>> chosen;
  };
  /// One block of eight warps per SM, not two of four: where the keys of a KV head are split even
  /// so. As many bytes are in flight, and half as many shares are written and merged.
  static bool takes_eight_warps(const Problem& p, const DeviceInfo& device) {
    const int64_t heads = int64_t{p.shape.heads_kv} * p.shape.batch;
    const size_t most = std::max(GqaPackedConfig<Case<bf16, 128>, 1, 3, 8>::kSmemBytes,
                                 GqaPackedConfig<Case<bf16, 64>, 1, 6, 8>::kSmemBytes);
    return rows_of(p) <= 16 && 2 * heads <= device.sm_count && most <= device.smem_per_block_bytes;
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    if (rows_of(p) > 16) return {OneLaunchPlan<2>::make(p, at)};
    if (takes_eight_warps(p, device_info())) return {OneLaunchPlan<1, 8>::make(p, at)};
    return {OneLaunchPlan<1>::make(p, at)};
  }
  static Claims claims(const Problem& p) { return byte_claims(p, rows_of(p) > 16 ? 32 : 16); }
  static void run(const Plan& plan, Stream stream) {
    std::visit([&](const auto& chosen) { chosen.start(stream); }, plan.chosen);
  }
};

}  // namespace cookbook::attention
