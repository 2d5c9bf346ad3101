// SPDX-License-Identifier: MIT
// Level 5: 16 x 8 elements of C per thread: 24 words from shared memory serve 128 FMAs. The kernel
// is level 3's, with another Config.
#pragma once

#include "chapters/04_double_buffering/level_4_warp_tile.cuh"

namespace cookbook::sgemm {

struct WideTileConfig : WarpTileConfig {
  static constexpr int kM = 128, kN = 256, kK = 8;   // tile of C per block, and steps of k per tile
  static constexpr int kWarpM = 64, kWarpN = 64;     // tile of C per warp
  static constexpr int kThreadM = 16, kThreadN = 8;  // elements of C per thread
  static constexpr int kThreads = kM * kN / (kThreadM * kThreadN);
  static constexpr int kBlocks = 1;       // per SM: 255 registers for each of 256 threads
  static constexpr int kPitchA = kM + 4;  // leading dimension of a stage of A

  /// In dynamic shared memory: more than the 48 KB that static arrays may have.
  template <class C>
  static __device__ __forceinline__ Stages<C> stages() {
    using StageA = float[C::kK][C::kPitchA];
    using StageB = float[C::kK][C::kN];
    auto* a_tile = reinterpret_cast<StageA*>(dynamic_shared<float>());
    return {a_tile, reinterpret_cast<StageB*>(a_tile + C::kStages)};
  }

  /// acc += a b^T, row by row, every other row backwards. Each FMA then shares an operand with the
  /// previous one, also where the row changes. The shared operand comes from the register reuse
  /// cache, and the two others are rarely in the same register bank. (`+=` is fused as well, but
  /// then nvcc 13.0 assigns other registers, and level 8 is slower.)
  template <int kRows, int kCols>
  static __device__ __forceinline__ void add_outer_product(float (&acc)[kRows][kCols],
                                                           const float (&a)[kRows],
                                                           const float (&b)[kCols]) {
#pragma unroll
    // [quote wide_tile]
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int s = 0; s < kCols; ++s) {
        const int j = i % 2 == 0 ? s : kCols - 1 - s;
        acc[i][j] = __fmaf_rn(a[i], b[j], acc[i][j]);
      }
    }
    // [end quote]
  }
};

/// Bytes of all stages of A and B.
template <class C>
constexpr int stages_bytes() {
  return C::kStages * C::kK * (C::kPitchA + C::kN) * static_cast<int>(sizeof(float));
}

/// A level whose stages are in dynamic shared memory.
template <class C>
struct DynamicStagesLevel : Level {
  /// Whether the device supports that much per block.
  static Support supports(const Problem&, const DeviceInfo& device) {
    if (device.smem_per_block_bytes >= static_cast<std::size_t>(stages_bytes<C>())) {
      return Support::yes();
    }
    return Support::no("needs " + std::to_string(stages_bytes<C>()) +
                       " bytes of shared memory per block");
  }
};

struct WideTile : DynamicStagesLevel<WideTileConfig> {
  static constexpr LevelText text{
      .name = "wide_tile",
      .changed = "16 x 8 elements of C per thread; the block computes 128 x 256",
      .expect =
          "6 loads per 128 FMAs instead of 8: FMAs take 95.5 % of the issue slots, shared memory "
          "idles 60 % of the time",
      .cost =
          "128 accumulators: one block of 8 warps per SM, so each warp must hide its own latency",
  };

  static Claims claims(const Problem&) {
    return copy_claims({shared_loads().wavefronts_per_request(2), faster_than_previous(1.0)});
  }

  static void run(const Plan& plan, Stream stream) {
    using C = WideTileConfig;
    launch_tiles<C>(multistage_kernel<C, true>, multistage_kernel<C, false>, plan, stream,
                    stages_bytes<C>());
  }
};

}  // namespace cookbook::sgemm
