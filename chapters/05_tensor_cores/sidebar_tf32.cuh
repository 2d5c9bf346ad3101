// SPDX-License-Identifier: MIT
// Sidebar: fp32 matrices on tensor cores. The inputs are rounded to tf32 (8 bits of exponent like
// fp32, 10 of mantissa like fp16). Multiplications are exact, accumulators are fp32.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "chapters/05_tensor_cores/tile_io.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"
#include "common/device/vector.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::gemm {

/// The extents of the chapter's problem with fp32 in and out; the bound allows for inputs rounded
/// to tf32.
struct Tf32Problem : Problem {
  static Tf32Problem make(const Size& size, const Variant& variant) {
    return {Problem::make(size, variant)};
  }
  std::vector<TensorSpec> tensors() const {
    return {{"a", DType::f32, m, k, lda, Role::input},
            {"b", DType::f32, k, n, ldb, Role::input},
            {"c", DType::f32, m, n, ldc, Role::output}};
  }
  double bytes() const { return 4 * static_cast<double>(m * k + k * n + m * n); }

  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const float* a = tensors["a"].data<float>() + row * lda;
    const float* b = tensors["b"].data<float>();
    const double rounding =
        std::ldexp(1.0, -10) + 2.0 * static_cast<double>(k) * std::ldexp(1.0, -24);
    const double tiny = std::ldexp(1.0, -126);  // below it rounding may lose all bits of an input
    for (std::int64_t col = 0; col < n; ++col) {
      double sum = 0, error = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        const double left = a[p], right = b[p * ldb + col];
        sum += left * right;
        error += 1.001 * rounding * std::fabs(left * right) +
                 tiny * (std::fabs(left) + std::fabs(right));
      }
      value[col] = sum;
      bound[col] = error + half_ulp(DType::f32, std::fabs(sum) + error);
    }
  }
};

namespace tf32 {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 32;
  static constexpr int kWarpsM = 2, kWarpsN = 4;
  static constexpr int kWarpM = kBlockM / kWarpsM, kWarpN = kBlockN / kWarpsN;  // 64 x 32
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;  // m16n8k8 per warp and k step
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kGroup = 8;
  static constexpr int kPitchB = kBlockN + 8;  // row stride: 8 banks (mod 32), see load_fragments
};

/// Four elements from `source` on, zero-filled from the `valid`-th.
template <bool kVector>
__device__ __forceinline__ float4 load_four(const float* source, int valid) {
  float4 four = make_float4(0, 0, 0, 0);
  if constexpr (kVector) {
    if (valid > 0) four = load_vector<float4>(source);
  } else {
    if (valid > 0) four.x = source[0];
    if (valid > 1) four.y = source[1];
    if (valid > 2) four.z = source[2];
    if (valid > 3) four.w = source[3];
  }
  return four;
}

/// A: to ldmatrix a 16-byte row is eight 16-bit elements or four of 32 bits. Lane l receives word l
/// % 4 of row l / 4, which is the layout of A in m16n8k8. B would have to be transposed, but
/// ldmatrix transposes only 16-bit elements, so every lane reads its own words. With a row stride
/// of 8 banks (mod 32) the four rows that a warp reads are in different banks.
template <class C>
__device__ __forceinline__ void load_fragments(std::uint32_t (&a)[C::kMmaM][4],
                                               std::uint32_t (&b)[C::kMmaN][2], const float* a_tile,
                                               const float* b_tile, int warp_row, int warp_col,
                                               int lane, int step) {
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
    const int row = warp_row + i * 16 + lane % 16, chunk = step * 2 + lane / 16;
    ldmatrix_x4(a[i], a_tile + row * C::kBlockK + (chunk ^ (row & 7)) * 4);  // [a]
#pragma unroll
    for (int r = 0; r < 4; ++r) a[i][r] = to_tf32(__uint_as_float(a[i][r]));
  }
#pragma unroll
  for (int j = 0; j < C::kMmaN; ++j) {
    const float* from = b_tile + (step * 8 + lane % 4) * C::kPitchB + warp_col + j * 8 + lane / 4;
    b[j][0] = to_tf32(from[0]);               // [b]
    b[j][1] = to_tf32(from[4 * C::kPitchB]);  // [b]
  }
}

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const float* a, const float* b, float* c, int m, int n, int k, std::int64_t lda,
           std::int64_t ldb, std::int64_t ldc) {
  alignas(128) __shared__ float a_tile[C::kBlockM * C::kBlockK];  // (kBlockM, kBlockK), swizzled
  alignas(128) __shared__ float b_tile[C::kBlockK * C::kPitchB];  // (kBlockK, kBlockN), padded

  const TileIndex tile = grouped_tile(static_cast<int>(blockIdx.x), ceil_div(m, C::kBlockM),
                                      ceil_div(n, C::kBlockN), C::kGroup);
  const int row0 = tile.m * C::kBlockM, col0 = tile.n * C::kBlockN;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int warp_row = warp / C::kWarpsN * C::kWarpM, warp_col = warp % C::kWarpsN * C::kWarpN;

  float acc[C::kMmaM][C::kMmaN][4] = {};  // (kWarpM, kWarpN) of C

  for (int k0 = 0; k0 < k; k0 += C::kBlockK) {
#pragma unroll
    for (int i = 0; i < C::kBlockM * C::kBlockK / 4 / C::kThreads; ++i) {  // 8 chunks per row of A
      const int row = static_cast<int>(threadIdx.x / 8) + i * (C::kThreads / 8);
      const int chunk = static_cast<int>(threadIdx.x % 8);
      const float* source = a + (row0 + row) * lda + k0 + chunk * 4;
      store_vector(a_tile + row * C::kBlockK + (chunk ^ (row & 7)) * 4,
                   load_four<kVector>(source, row0 + row < m ? k - k0 - chunk * 4 : 0));
    }
#pragma unroll
    for (int i = 0; i < C::kBlockK * C::kBlockN / 4 / C::kThreads; ++i) {  // 32 chunks per row of B
      const int row = warp + i * (C::kThreads / 32);
      const float* source = b + (k0 + row) * ldb + col0 + lane * 4;
      store_vector(b_tile + row * C::kPitchB + lane * 4,
                   load_four<kVector>(source, k0 + row < k ? n - col0 - lane * 4 : 0));
    }
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int step = 0; step < C::kBlockK / 8; ++step) {
      std::uint32_t a_frag[C::kMmaM][4], b_frag[C::kMmaN][2];  // (kWarpM, 8), (8, kWarpN)
      load_fragments<C>(a_frag, b_frag, a_tile, b_tile, warp_row, warp_col, lane, step);
#pragma unroll
      for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k8_tf32(acc[i][j], a_frag[i], b_frag[j]);
      }
    }
    __syncthreads();  // all threads have read them
  }

#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < C::kMmaN; ++j) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = row0 + warp_row + i * 16 + lane / 4 + r / 2 * 8;
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2 + r % 2;
        if (row < m && col < n) c[row * ldc + col] = acc[i][j][r];
      }
    }
  }
}

}  // namespace tf32

struct Tf32 : LevelOf<Tf32Problem, BuffersT<float>> {
  static constexpr LevelText text{
      .name = "tf32",
      .changed = "fp32 inputs, rounded to tf32 on their way to mma.sync",
      .expect =
          "half the roof of bf16 (m16n8k8 in the time of m16n8k16), above every fp32 GEMM on CUDA "
          "cores; three decimal digits",
      .cost = "half the flops per byte of shared memory; no transposing ldmatrix",
  };

  static Support supports(const Tf32Problem&, const DeviceInfo& device) {
    return device.cc() < 80 ? Support::no("needs sm_80 (tf32 mma)") : Support::yes();
  }
  static Claims claims(const Tf32Problem&) {
    return {shared_loads().on("a").wavefronts_per_request(4),
            shared_loads().on("b").wavefronts_per_request(1), global_loads().coalesced()};
  }
  static void run(const Plan& plan, Stream stream) {
    using C = tf32::Config;
    const Tf32Problem& p = plan.problem;
    const BuffersT<float>& at = plan.buffers;
    const bool vector = p.k % 4 == 0 && p.n % 4 == 0 && rows_are_16_byte_aligned(at.a, p.lda) &&
                        rows_are_16_byte_aligned(at.b, p.ldb);
    launch(vector ? tf32::kernel<C, true> : tf32::kernel<C, false>,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads)}, stream, at.a,
           at.b, at.c, p.m, p.n, p.k, p.lda, p.ldb, p.ldc);
  }
};

}  // namespace cookbook::gemm
