// SPDX-License-Identifier: MIT
// Level 1: chapter 6's pipeline with FP8 wgmma. Every 128 of k the accumulators are scaled and
// added to sums in fp32.
#pragma once

#include "chapters/12_fp8/scaled_tiles.cuh"

namespace cookbook::fp8 {

/// One block of k: multiplies the tiles of a stage, and adds the scaled result to `sum`. sum: per
/// 64 rows of the warpgroup, 64 x kBlockN distributed over its 128 threads. factors.of(i, j): what
/// sum[i][j]'s part is multiplied by; staged, first_row: for factors.read(). release() frees the
/// stage.
template <class C, int kMmaM, int kCount, class Factors, class Release>
__device__ __forceinline__ void multiply_and_promote(float (&sum)[kMmaM][kCount], uint64_t a,
                                                     uint64_t b, Factors& factors,
                                                     const float* staged, int first_row,
                                                     Release release) {
  float partial[kCount];
#pragma unroll
  for (int i = 0; i < kMmaM; ++i) {
    // [quote promote]
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kRowBytes; k += 32) {
      wgmma_m64k32_e4m3<C::kBlockN>(partial, wgmma_descriptor_advance(a, 64 * kRowBytes * i + k),
                                    wgmma_descriptor_advance(b, k), k > 0);
    }
    wgmma_commit();
    if (i == 0) factors.read(staged, first_row);  // while the tensor cores multiply
    wgmma_wait<0>();
    wgmma_fence_operand(partial);
    if (i == kMmaM - 1) {
      __syncwarp();  // every lane has read its scales, too
      release();
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      sum[i][j] = fmaf(factors.of(i, j), partial[j], sum[i][j]);
    }
    // [end quote]
  }
}

namespace promoted {

/// Each thread loads the scales of its rows and columns from global memory, before it waits for the
/// stage.
struct ScalesFromGlobal {
  template <class C>
  static constexpr int kStagedFloats = 1;  // of a stage; none used, but no array is empty

  template <class C, class Smem>
  static __device__ __forceinline__ void load(Smem&, const TensorMap*, int, TileIndex, int) {}

  /// A thread's factors for one block of k: of its rows g and g + 8 of each 64.
  template <int kMmaM>
  struct Factors {
    float row[kMmaM][2];

    /// first_row, col: the thread's first row in C, and the tile's first column.
    __device__ __forceinline__ void fetch(const Scales& s, const Extents& e, int k_block,
                                          int first_row, int col) {
      const float b = s.b[col / kScaleBlock * s.ldb + k_block];
#pragma unroll
      for (int i = 0; i < 2 * kMmaM; ++i) {
        const int r = first_row + i / 2 * 64 + i % 2 * 8;
        row[i / 2][i % 2] = r < e.m ? s.a[k_block * s.lda + r] * b : 0.0f;
      }
    }
    /// staged: the scales of A in the stage; first_row: in the tile.
    __device__ __forceinline__ void read(const float* /*staged*/, int /*first_row*/) {}
    /// Of accumulator j of the i-th 64 rows.
    __device__ __forceinline__ float of(int i, int j) const { return row[i][j / 2 % 2]; }
  };
};

struct Config {
  static constexpr int kBlockM = 64, kBlockN = 128;
  static constexpr int kStages = 4;
  static constexpr int kConsumers = 1;                     // warpgroups that multiply
  static constexpr int kThreads = 128 * (1 + kConsumers);  // + the producer's warpgroup
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  using Scales = ScalesFromGlobal;
};

template <class C>
struct Smem {
  Stage<C> stages[C::kStages];
  float scale_a[C::kStages][C::Scales::template kStagedFloats<C>];
  uint64_t full[C::kStages], empty[C::kStages];
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_scale_a, Scales scales, Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int tiles_n = ceil_div(e.n, C::kBlockN), k_blocks = ceil_div(e.k, kScaleBlock);
  const TileIndex tile{static_cast<int>(blockIdx.x) / tiles_n,
                       static_cast<int>(blockIdx.x) % tiles_n};
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers<C::kStages>(smem, 4 * C::kConsumers);
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);
        uint64_t* full = &smem.full[write.stage];
        Stage<C>& stage = smem.stages[write.stage];
        // Before the arrival, without which the phase cannot complete: not even if A and B are
        // there at once.
        C::Scales::template load<C>(smem, &map_scale_a, write.stage, tile, k_block);
        mbarrier_arrive_expect_tx(full, sizeof(Stage<C>));
        tma_load_2d(stage.a, &map_a, full, k_block * kRowBytes, tile.m * C::kBlockM);
        tma_load_2d(stage.b, &map_b, full, k_block * kRowBytes, tile.n * C::kBlockN);
        write.advance();
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    const int thread_row = row + warp % 4 * 16 + lane_idx() / 4;
    const uint64_t a = descriptor_of(smem.stages[0].a + row * kRowBytes);
    const uint64_t b = descriptor_of(smem.stages[0].b);
    float sum[kMmaM][C::kBlockN / 2] = {};

    StageCursor<C::kStages> read;
    for (int k_block = 0; k_block < k_blocks; ++k_block) {
      typename C::Scales::template Factors<kMmaM> factors;
      factors.fetch(scales, e, k_block, tile.m * C::kBlockM + thread_row, tile.n * C::kBlockN);
      mbarrier_wait(&smem.full[read.stage], read.phase);
      const int bytes = read.stage * static_cast<int>(sizeof(Stage<C>));
      multiply_and_promote<C>(sum, wgmma_descriptor_advance(a, bytes),
                              wgmma_descriptor_advance(b, bytes), factors, smem.scale_a[read.stage],
                              thread_row, [&] {
                                if (lane_idx() == 0) mbarrier_arrive(&smem.empty[read.stage]);
                              });
      read.advance();
    }
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
      store_sums(sum[i], out, e, tile.m * C::kBlockM + row + 64 * i, tile.n * C::kBlockN);
    }
  }
}

/// Everything but the level's name: levels 2 to 4 run this kernel with other Configs.
template <class C>
struct LevelOn : Level {
  using Config = C;
  using Plan = TmaPlan;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_wgmma(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{p, at};
    if (p.m == 0 || p.n == 0) return plan;
    plan.fallback = p.k == 0 || !is_16_byte_aligned(at.a) || !is_16_byte_aligned(at.b);
    if (plan.fallback) return plan;
    plan.a = operand_map(at.a, p.m, p.k, p.lda, C::kBlockM);
    plan.b = operand_map(at.b, p.n, p.k, p.ldb, C::kBlockN);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    const Problem& p = plan.problem;
    launch(kernel<C>,
           {dim3(static_cast<unsigned>(tiles_of(p, C::kBlockM, C::kBlockN))), dim3(C::kThreads),
            sizeof(Smem<C>)},
           stream, plan.a, plan.b, plan.scale_a, plan.scales(), plan.output(), extents_of(p));
  }
  /// Boxes of A: one per tile of C and block of k.
  static double boxes_of_a(const Problem& p) {
    return static_cast<double>(tiles_of(p, C::kBlockM, C::kBlockN) * p.k_blocks());
  }
};

}  // namespace promoted

struct Promoted : promoted::LevelOn<promoted::Config> {
  static constexpr LevelText text{
      .name = "promoted",
      .changed = "FP8 wgmma; every 128 of k: wait, scale, add to fp32 sums",
      .expect =
          "900 TFLOP/s: the tensor cores idle while their only warpgroup waits for them and adds",
      .cost = "a second set of accumulators; one FFMA per accumulator and 128 k",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(20)};
  }
};

}  // namespace cookbook::fp8
