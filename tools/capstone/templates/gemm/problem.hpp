// SPDX-License-Identifier: MIT
// The problem: C = A B in fp32, every matrix row-major with its own leading dimension.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::mine {

/// C (m x n) = A (m x k) * B (k x n).
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  // elements from one row to the next

  static Problem make(const Size& size, const Variant& variant) {
    constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1024;  // tile indices stay in int
    if (size.size() != 3) throw BadSize("takes three extents: MxNxK");
    for (const std::int64_t extent : size) {
      if (extent < 0 || extent > kLargest) throw BadSize("M, N and K must lie in 0 .. 2^31 - 1024");
    }
    Problem p;
    p.m = size[0], p.n = size[1], p.k = size[2];
    p.lda = p.k + variant.of("a").extra_pitch;
    p.ldb = p.n + variant.of("b").extra_pitch;
    p.ldc = p.n + variant.of("c").extra_pitch;
    return p;
  }

  std::vector<TensorSpec> tensors() const {
    return {{"a", DType::f32, m, k, lda, Role::input},
            {"b", DType::f32, k, n, ldb, Role::input},
            {"c", DType::f32, m, n, ldc, Role::output}};
  }

  /// The fewest bytes through device memory: each element of A and B read once, of C written once.
  double bytes() const {
    const double rows = static_cast<double>(m), cols = static_cast<double>(n);
    return 4.0 * (rows * static_cast<double>(k) + static_cast<double>(k) * cols + rows * cols);
  }
  /// Floating-point operations.
  double flops() const { return 2.0 * static_cast<double>(m) * n * k; }

  /// Row `row` of C in fp64, and how far an fp32 sum of the same terms may be from it: the errors
  /// of k roundings do not all have the same sign, so they grow as sqrt(k).
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor &a = tensors["a"], &b = tensors["b"];
    std::fill(value, value + n, 0.0);
    std::fill(bound, bound + n, 0.0);
    for (std::int64_t p = 0; p < k; ++p) {
      const double left = a.at(row, p);
      for (std::int64_t col = 0; col < n; ++col) {
        const double term = left * b.at(p, col);
        value[col] += term;
        bound[col] += std::fabs(term);
      }
    }
    const double terms = static_cast<double>(std::max<std::int64_t>(k, 1));
    const double relative = 4 * std::sqrt(terms) * unit_roundoff(DType::f32);
    for (std::int64_t col = 0; col < n; ++col) {
      bound[col] = relative * bound[col] + 2 * terms * half_ulp(DType::f32, 0);
    }
  }
};

struct Buffers {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("a"), at.get<const float>("b"), at.get<float>("c")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// One block per tile of C, numbered row by row. Only x is used, because a grid's y ends at 65,535.
inline dim3 tile_grid(const Problem& p, int tile_rows, int tile_cols) {
  return dim3(static_cast<unsigned>(ceil_div<std::int64_t>(p.m, tile_rows) *
                                    ceil_div<std::int64_t>(p.n, tile_cols)));
}

}  // namespace cookbook::mine
