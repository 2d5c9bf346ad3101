// SPDX-License-Identifier: MIT
// Chapter 12's problem: C = A B^T of FP8 numbers with block scales.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chapters/12_fp8/reference.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/fp8.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::fp8 {

/// k of one block, and rows of B (columns of C) of one block of B's scales.
inline constexpr int kScaleBlock = 128;

/// C (m x n, bf16) from A (m x k) and B (n x k), both e4m3 with k contiguous:
///
///     C[i][j] = sum over blocks p of  scale_a[p][i] * scale_b[j / 128][p]
///                                     * sum over the k of block p of  A[i][k] * B[j][k]
///
/// scale_a (fp32) has a row per block of k, so that the scales of neighbouring rows of A are
/// neighbours; scale_b (fp32) a row per 128 rows of B. The last blocks may be partial. The two
/// scales are multiplied in fp32 first. Pitches count elements.
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0, ld_scale_a = 0, ld_scale_b = 0;

  /// size: M, N, K.
  static Problem make(const Size& size, const Variant& variant) {
    constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1024;  // indices stay in int
    if (size.size() != 3) throw BadSize("a GEMM takes three extents: MxNxK");
    for (const std::int64_t extent : size) {
      if (extent < 0 || extent > kLargest) throw BadSize("M, N and K must lie in 0 .. 2^31 - 1024");
    }
    Problem p;
    p.m = size[0], p.n = size[1], p.k = size[2];
    p.lda = p.k + variant.of("a").extra_pitch;
    p.ldb = p.k + variant.of("b").extra_pitch;
    p.ldc = p.n + variant.of("c").extra_pitch;
    // TMA steps in 16 bytes: rows of four scales.
    p.ld_scale_a = (p.m + 3) / 4 * 4 + variant.of("scale_a").extra_pitch;
    p.ld_scale_b = p.k_blocks() + variant.of("scale_b").extra_pitch;
    return p;
  }

  std::int64_t k_blocks() const { return (k + kScaleBlock - 1) / kScaleBlock; }
  std::int64_t n_blocks() const { return (n + kScaleBlock - 1) / kScaleBlock; }

  std::vector<TensorSpec> tensors() const {
    return {{"a", DType::e4m3, m, k, lda, Role::input},
            {"b", DType::e4m3, n, k, ldb, Role::input},
            {"scale_a", DType::f32, k_blocks(), m, ld_scale_a, Role::input},
            {"scale_b", DType::f32, n_blocks(), k_blocks(), ld_scale_b, Role::input},
            {"c", DType::bf16, m, n, ldc, Role::output}};
  }
  double bytes() const {
    return static_cast<double>(m * k + n * k + 2 * m * n) +
           4.0 * static_cast<double>(k_blocks() * (m + n_blocks()));
  }
  double flops() const { return 2.0 * static_cast<double>(m * n * k); }

  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    scaled_row(tensors["a"], tensors["b"], tensors["scale_a"], tensors["scale_b"], row, n, k, value,
               bound);
  }
};

struct Buffers {
  const fp8_e4m3* a;
  const fp8_e4m3* b;
  const float* scale_a;
  const float* scale_b;
  bf16* c;
  static Buffers bind(const DevicePointers& at) {
    return {at.get<fp8_e4m3>("a"), at.get<fp8_e4m3>("b"), at.get<float>("scale_a"),
            at.get<float>("scale_b"), at.get<bf16>("c")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Extents of the GEMM, as kernel arguments.
struct Extents {
  int m, n, k;
};

inline Extents extents_of(const Problem& p) {
  return {static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k)};
}

/// Tiles of tile_m x tile_n that cover C; none where it is empty.
inline std::int64_t tiles_of(const Problem& p, int tile_m, int tile_n) {
  return ((p.m + tile_m - 1) / tile_m) * ((p.n + tile_n - 1) / tile_n);
}

}  // namespace cookbook::fp8
