// SPDX-License-Identifier: MIT
// Chapter 9's problems, for fp32 and bf16: the softmax of every row of a matrix, and RMSNorm.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "chapters/09_online_softmax/reference.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::softmax {

/// Extents, and the pitches of both matrices in elements.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t in_pitch = 0;   // at least cols
  std::int64_t out_pitch = 0;  // at least cols
  std::int64_t elements() const { return rows * cols; }
};

template <class T>
constexpr DType kDType = std::is_same_v<T, float> ? DType::f32 : DType::bf16;

inline Shape make_shape(const Size& size, const Variant& variant) {
  if (size.size() != 2 || size[0] < 0 || size[1] < 0 ||
      size[1] > std::numeric_limits<std::int32_t>::max()) {
    throw BadSize("softmax and RMSNorm take two sizes, rows x cols, cols below 2^31");
  }
  return {size[0], size[1], size[1] + variant.of("in").extra_pitch,
          size[1] + variant.of("out").extra_pitch};
}

/// out[r][c] = exp(in[r][c]) / sum over j of exp(in[r][j]).
template <class T>
struct Problem {
  using Element = T;
  Shape shape;
  static constexpr bool kExactOnIntegers = false;              // exponentials, a division
  void (*fill)(HostTensor& in, std::uint64_t seed) = nullptr;  // null: the harness draws `in`

  static Problem make(const Size& size, const Variant& variant) {
    return {make_shape(size, variant), nullptr};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"in", kDType<T>, shape.rows, shape.cols, shape.in_pitch, Role::input, fill},
            {"out", kDType<T>, shape.rows, shape.cols, shape.out_pitch, Role::output}};
  }

  double bytes() const {  // each element read once and written once
    return 2.0 * sizeof(T) * static_cast<double>(shape.elements());
  }
  double flops() const { return 0; }

  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    softmax_row(tensors["in"], kDType<T>, row, value, bound);
  }
};

/// Fills `in` with rows that test the edges of the definition: see the eight kinds.
inline void fill_special_rows(HostTensor& in, std::uint64_t seed) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double largest = std::numeric_limits<float>::max();
  for (std::int64_t row = 0; row < in.spec.rows; ++row) {
    const std::int64_t odd =
        static_cast<std::int64_t>(seed + 7 * row) % std::max<std::int64_t>(in.spec.cols, 1);
    for (std::int64_t col = 0; col < in.spec.cols; ++col) {
      const double ordinary = static_cast<double>((row + 31 * col) % 17) / 4 - 2;
      double x = ordinary;
      switch (row % 8) {
        case 0: x = -infinity; break;                             // nothing to normalise: NaN
        case 1: x = col == odd ? infinity : ordinary; break;      // inf - inf: a row of NaN
        case 2: x = col == odd ? std::nan("") : ordinary; break;  // a row of NaN
        case 3: x = col == odd ? ordinary : -infinity; break;     // 1, and 0 elsewhere
        case 4: x = 3e38; break;                                  // equal and huge: 1 / cols
        case 5: x = col % 2 ? 3e38 : -3e38; break;                // a difference that overflows
        case 6: x = -largest; break;                              // the initial running maximum
        default: x = col % 3 ? ordinary : -infinity; break;       // masked: 0 where -inf
      }
      in.set(row, col, x);
    }
  }
}

template <class T>
struct Buffers {
  const T* in = nullptr;
  T* out = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const T>("in"), at.get<T>("out")};
  }
};

/// out[r][c] = in[r][c] weight[c] / sqrt(mean over j of in[r][j]^2 + kEpsilon).
template <class T>
struct RmsProblem {
  using Element = T;
  Shape shape;
  static constexpr bool kExactOnIntegers = false;  // a root, a division

  static RmsProblem make(const Size& size, const Variant& variant) {
    return {make_shape(size, variant)};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"in", kDType<T>, shape.rows, shape.cols, shape.in_pitch, Role::input},
            {"weight", kDType<T>, 1, shape.cols, shape.cols, Role::input},
            {"out", kDType<T>, shape.rows, shape.cols, shape.out_pitch, Role::output}};
  }

  double bytes() const {
    return sizeof(T) * (2.0 * static_cast<double>(shape.elements()) + double(shape.cols));
  }
  double flops() const { return 0; }

  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    rmsnorm_row(tensors["in"], tensors["weight"], kDType<T>, row, value, bound);
  }
};

template <class T>
struct RmsBuffers {
  const T* in = nullptr;
  const T* weight = nullptr;
  T* out = nullptr;

  static RmsBuffers bind(const DevicePointers& at) {
    return {at.get<const T>("in"), at.get<const T>("weight"), at.get<T>("out")};
  }
};

template <class T>
using Level = LevelOf<Problem<T>, Buffers<T>>;
template <class T>
using PlanOf = typename Level<T>::Plan;

/// Blocks of a grid in which each computes `rows_per_block` rows; none for a matrix without
/// elements.
inline dim3 row_grid(const Shape& shape, std::int64_t rows_per_block = 1) {
  if (shape.elements() == 0) return dim3(0);
  return dim3(static_cast<unsigned>(ceil_div(shape.rows, rows_per_block)));
}

/// Launches a kernel with `threads` threads per row (or per `rows_per_block` rows) of a plan of
/// softmax.
template <class T>
void launch_rows(void (*kernel)(const T*, T*, Shape), const typename Level<T>::Plan& plan,
                 Stream stream, int threads, int rows_per_block = 1) {
  const Shape& shape = plan.problem.shape;
  launch(kernel, {row_grid(shape, rows_per_block), dim3(static_cast<unsigned>(threads))}, stream,
         plan.buffers.in, plan.buffers.out, shape);
}

/// Of kernels with one block per row.
template <class Element>
struct BlockConfig {
  using T = Element;
  static constexpr int kThreads = 256;  // for one row
};

/// Bytes of one pass over the matrix, as claims count them.
template <class T>
double pass_bytes(const Shape& shape) {
  return sizeof(T) * static_cast<double>(shape.elements());
}

}  // namespace cookbook::softmax
