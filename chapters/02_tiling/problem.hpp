// SPDX-License-Identifier: MIT
// C = A B in fp32 on the CUDA cores. Chapters 2 and 4 share this problem.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chapters/02_tiling/reference.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::sgemm {

/// C (m x n) = A (m x k) * B (k x n), every matrix row-major with its own leading dimension.
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  // elements from one row to the next

  /// size: M, N, K.
  static Problem make(const Size& size, const Variant& variant) {
    constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1024;  // tile indices stay in int
    if (size.size() != 3) throw BadSize("a product takes three extents: MxNxK");
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
  double bytes() const { return 4.0 * static_cast<double>(m * k + k * n + m * n); }
  double flops() const { return 2.0 * static_cast<double>(m * n * k); }

  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    product_row(tensors["a"].data<float>() + row * lda, tensors["b"].data<float>(), ldb, n, k,
                value, bound);
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

/// One block per C::kM x C::kN tile of C, in a one-dimensional grid, because blockIdx.y ends at
/// 65,535. No blocks if C is empty.
template <class C>
dim3 grid_of_tiles(const Problem& p) {
  return dim3(static_cast<unsigned>(ceil_div<std::int64_t>(p.m, C::kM) *
                                    ceil_div<std::int64_t>(p.n, C::kN)));
}

/// Launches a kernel with one block of `threads` per tile.
template <class C>
void launch_tiles(void (*kernel)(int, int, int, const float*, int64_t, const float*, int64_t,
                                 float*, int64_t),
                  dim3 threads, const Level::Plan& plan, Stream stream) {
  const Problem& p = plan.problem;
  launch(kernel, {grid_of_tiles<C>(p), threads}, stream, p.m, p.n, p.k, plan.buffers.a, p.lda,
         plan.buffers.b, p.ldb, plan.buffers.c, p.ldc);
}

/// Bytes of A's and of B's tiles that all blocks read together.
template <class C>
double a_bytes(const Problem& p) {
  return 4.0 * static_cast<double>(p.m * p.k * ceil_div<std::int64_t>(p.n, C::kN));
}
template <class C>
double b_bytes(const Problem& p) {
  return 4.0 * static_cast<double>(p.k * p.n * ceil_div<std::int64_t>(p.m, C::kM));
}

/// Whether rows that start at `base + i * pitch` can be accessed 16 bytes at a time.
inline bool rows_are_16_byte_aligned(const float* base, std::int64_t pitch) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && pitch % 4 == 0;
}

}  // namespace cookbook::sgemm
