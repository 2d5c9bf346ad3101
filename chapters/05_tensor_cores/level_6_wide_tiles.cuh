// SPDX-License-Identifier: MIT
// Level 6: 128x256 tiles, 64x64 of C per warp: each fragment is used twice as often. The kernel is
// level 5's, with another Config.
#pragma once

#include "chapters/05_tensor_cores/level_5_multistage.cuh"

namespace cookbook::gemm {

namespace wide_tiles {

template <class T>
struct Config : multistage::Config<T> {
  // [quote wide_tiles]
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 64;
  static constexpr int kWarpsM = 2, kWarpsN = 4;
  static constexpr int kWarpM = kBlockM / kWarpsM, kWarpN = kBlockN / kWarpsN;  // 64 x 64
  // [end quote]
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;  // m16n8k16 per warp and k step
  static constexpr int kStages = 4, kBlocks = 1;                 // 192 KB: one block on a Hopper SM
  static constexpr std::size_t kSmemBytes = kStages * sizeof(T) * (kBlockM + kBlockN) * kBlockK;
};

}  // namespace wide_tiles

template <class T>
struct WideTiles : multistage::KernelLevel<wide_tiles::Config<T>> {
  static constexpr LevelText text{
      .name = "wide_tiles",
      .changed = "128x256 tiles, eight warps of 64x64, four stages",
      .expect =
          "a third less ldmatrix traffic: 8 pieces of 512 bytes for 32 mma.sync instead of 6 for "
          "16; a small gain, because only two warps per scheduler are left to hide latency",
      .cost = "128 accumulators per thread, 192 KB: one block of 8 warps per SM",
  };

  static Claims claims(const ProblemT<T>& p) {
    return async_copy_claims(
        {shared_loads().conflict_free(), pair_stores(p), faster_than_previous(1.02)});
  }
};

}  // namespace cookbook::gemm
