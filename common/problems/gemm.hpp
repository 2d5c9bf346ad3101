// SPDX-License-Identifier: MIT
/// @file
/// C = A B: 16-bit elements in and out, fp32 in between: the problem of chapters 5 to 8 and 11 and
/// of library/gemm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/problems/gemm_reference.hpp"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::gemm {

/// C (m x n) = A (m x k) * B (k x n), every matrix row-major with its own leading dimension. T:
/// element type of all three (bf16 or half); accumulators are fp32.
template <class T>
struct ProblemT {
  using Element = T;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  // elements from one stored row to the next
  bool a_transposed = false;               // A is stored k x m
  bool b_transposed = false;               // B is stored n x k

  /// size: M, N, K. The ladders use NN; other layouts through `make_layout` or `LayoutProblem`.
  static ProblemT make(const Size& size, const Variant& variant) {
    return make_layout(size, variant, false, false);
  }
  static ProblemT make_layout(const Size& size, const Variant& variant, bool a_transposed,
                              bool b_transposed) {
    constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1024;  // tile indices stay in int
    if (size.size() != 3) throw BadSize("a product takes three extents: MxNxK");
    for (std::int64_t extent : size) {
      if (extent < 0 || extent > kLargest) throw BadSize("M, N and K must lie in 0 .. 2^31 - 1024");
    }
    ProblemT p;
    p.m = size[0], p.n = size[1], p.k = size[2];
    p.a_transposed = a_transposed, p.b_transposed = b_transposed;
    p.lda = p.a_cols() + variant.of("a").extra_pitch;
    p.ldb = p.b_cols() + variant.of("b").extra_pitch;
    p.ldc = p.n + variant.of("c").extra_pitch;
    return p;
  }

  // Stored shapes.
  std::int64_t a_rows() const { return a_transposed ? k : m; }
  std::int64_t a_cols() const { return a_transposed ? m : k; }
  std::int64_t b_rows() const { return b_transposed ? n : k; }
  std::int64_t b_cols() const { return b_transposed ? k : n; }
  /// "NN", "NT", "TN" or "TT": A first.
  std::string layout() const {
    return std::string(a_transposed ? "T" : "N") + (b_transposed ? "T" : "N");
  }

  std::vector<TensorSpec> tensors() const {
    constexpr DType dtype = ElementOf<T>::dtype;
    return {{"a", dtype, a_rows(), a_cols(), lda, Role::input},
            {"b", dtype, b_rows(), b_cols(), ldb, Role::input},
            {"c", dtype, m, n, ldc, Role::output}};
  }
  double bytes() const { return sizeof(T) * static_cast<double>(m * k + k * n + m * n); }
  double flops() const { return 2.0 * static_cast<double>(m * n * k); }

  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    gemm_row(tensors["a"].template data<T>(), a_transposed ? 1 : lda, a_transposed ? lda : 1,
             tensors["b"].template data<T>(), b_transposed ? 1 : ldb, b_transposed ? ldb : 1, n, k,
             row, value, bound);
  }
};

template <class T>
struct BuffersT {
  const T* a;
  const T* b;
  T* c;
  static BuffersT bind(const DevicePointers& at) {
    return {at.get<T>("a"), at.get<T>("b"), at.get<T>("c")};
  }
};

template <class T>
using LevelT = LevelOf<ProblemT<T>, BuffersT<T>>;

/// The same problem with a fixed layout, for `ladder_over`: levels of `LevelT<T>` support it
/// unchanged.
template <class T, bool kATransposed, bool kBTransposed>
struct LayoutProblem : ProblemT<T> {
  static LayoutProblem make(const Size& size, const Variant& variant) {
    return {ProblemT<T>::make_layout(size, variant, kATransposed, kBTransposed)};
  }
};

using Problem = ProblemT<bf16>;
using Buffers = BuffersT<bf16>;

/// Whether rows that start at `base + i * pitch` can be accessed 16 bytes at a time.
template <class T>
bool rows_are_16_byte_aligned(const T* base, std::int64_t pitch) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && pitch * sizeof(T) % 16 == 0;
}

/// Here extents go up to 2^31 - 1, where the sum in cookbook::ceil_div would overflow.
__host__ __device__ constexpr int ceil_div(int a, int b) { return a / b + (a % b != 0); }

/// Blocks of kBlockM x kBlockN that cover an m x n matrix; none when it is empty.
inline unsigned blocks_for(std::int64_t m, std::int64_t n, int block_m, int block_n) {
  return static_cast<unsigned>(((m + block_m - 1) / block_m) * ((n + block_n - 1) / block_n));
}

}  // namespace cookbook::gemm
