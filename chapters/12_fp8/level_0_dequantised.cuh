// SPDX-License-Identifier: MIT
// Level 0: chapter 2's register tiles. FP8 becomes fp32 on its way to shared memory.
#pragma once

#include "chapters/12_fp8/problem.hpp"

namespace cookbook::fp8 {

namespace dequantised {

struct Config {
  static constexpr int kTile = 64;      // of C, square
  static constexpr int kDepth = 32;     // k per step
  static constexpr int kThread = 4;     // a thread computes 4 x 4 elements of C
  static constexpr int kThreads = 256;  // 16 x 16
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const fp8_e4m3* __restrict__ a, std::int64_t lda, const fp8_e4m3* __restrict__ b,
           std::int64_t ldb, const float* __restrict__ scale_a, std::int64_t ld_scale_a,
           const float* __restrict__ scale_b, std::int64_t ld_scale_b, bf16* __restrict__ c,
           std::int64_t ldc, Extents e) {
  __shared__ float tile_a[C::kDepth][C::kTile + 1], tile_b[C::kDepth][C::kTile + 1];
  constexpr int kAcross = C::kTile / C::kThread;  // threads
  const int tiles_n = ceil_div(e.n, C::kTile);
  const int row0 = static_cast<int>(blockIdx.x) / tiles_n * C::kTile;
  const int col0 = static_cast<int>(blockIdx.x) % tiles_n * C::kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int y = thread / kAcross, x = thread % kAcross;

  float sum[C::kThread][C::kThread] = {};
  for (int k_block = 0; k_block < e.k; k_block += kScaleBlock) {
    float partial[C::kThread][C::kThread] = {};
    for (int k0 = k_block; k0 < min(k_block + kScaleBlock, e.k); k0 += C::kDepth) {
      for (int i = thread; i < C::kTile * C::kDepth; i += C::kThreads) {
        const int line = i / C::kDepth, k = i % C::kDepth;
        const bool in_k = k0 + k < e.k;
        tile_a[k][line] = in_k && row0 + line < e.m ? float(a[(row0 + line) * lda + k0 + k]) : 0.0f;
        tile_b[k][line] = in_k && col0 + line < e.n ? float(b[(col0 + line) * ldb + k0 + k]) : 0.0f;
      }
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k < C::kDepth; ++k) {
        float left[C::kThread], right[C::kThread];
#pragma unroll
        for (int i = 0; i < C::kThread; ++i) left[i] = tile_a[k][y + i * kAcross];
#pragma unroll
        for (int j = 0; j < C::kThread; ++j) right[j] = tile_b[k][x + j * kAcross];
#pragma unroll
        for (int i = 0; i < C::kThread; ++i) {
#pragma unroll
          for (int j = 0; j < C::kThread; ++j) {
            partial[i][j] = fmaf(left[i], right[j], partial[i][j]);
          }
        }
      }
      __syncthreads();
    }
    const int block = k_block / kScaleBlock;
#pragma unroll
    for (int i = 0; i < C::kThread; ++i) {
      const int row = row0 + y + i * kAcross;
      if (row >= e.m) break;
#pragma unroll
      for (int j = 0; j < C::kThread; ++j) {
        const int col = col0 + x + j * kAcross;
        if (col >= e.n) break;
        const float scale =
            scale_a[block * ld_scale_a + row] * scale_b[col / kScaleBlock * ld_scale_b + block];
        sum[i][j] = fmaf(scale, partial[i][j], sum[i][j]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < C::kThread; ++i) {
    const int row = row0 + y + i * kAcross;
    if (row >= e.m) break;
#pragma unroll
    for (int j = 0; j < C::kThread; ++j) {
      const int col = col0 + x + j * kAcross;
      if (col < e.n) c[row * ldc + col] = __float2bfloat16_rn(sum[i][j]);
    }
  }
}

/// Also for what later levels cannot load by TMA.
inline void launch_kernel(const Problem& p, const Buffers& at, Stream stream) {
  launch(kernel<Config>,
         {dim3(static_cast<unsigned>(tiles_of(p, Config::kTile, Config::kTile))),
          dim3(Config::kThreads)},
         stream, at.a, p.lda, at.b, p.ldb, at.scale_a, p.ld_scale_a, at.scale_b, p.ld_scale_b, at.c,
         p.ldc, extents_of(p));
}

}  // namespace dequantised

struct Dequantised : Level {
  using Config = dequantised::Config;
  static constexpr LevelText text{
      .name = "dequantised",
      .changed = "FP8 is decoded into fp32 tiles; a 4 x 4 register tile per thread, FMA only",
      .expect = "20 TFLOP/s: a third of the fp32 roof, as chapter 2's level of this shape",
      .cost = "a conversion per element and tile; no tensor core",
  };
  static Claims claims(const Problem& p) {
    return {global_stores("c").requests(
        static_cast<double>(p.m) * static_cast<double>((p.n + 15) / 16) / 2, Relation::at_least)};
  }
  static void run(const Plan& plan, Stream stream) {
    dequantised::launch_kernel(plan.problem, plan.buffers, stream);
  }
};

}  // namespace cookbook::fp8
