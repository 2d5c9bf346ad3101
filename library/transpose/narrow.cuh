// SPDX-License-Identifier: MIT
// Transposes of few rows or few columns. A block covers the whole short extent, so that no thread
// of its tile is without an element.
#pragma once

#include <algorithm>
#include <type_traits>

#include "chapters/03_bank_conflicts/problem.hpp"
#include "common/device/warp.cuh"
#include "library/transpose/choose.hpp"

namespace cookbook::transpose {

/// A block has one row of threads per long row, so every thread has elements at any short extent.
template <int kPerThread>
struct NarrowConfig {
  static constexpr int kElements = kPerThread;              // of a thread, all in flight
  static constexpr int kThreads = 256;                      // of a block, or fewer: whole warps
  static constexpr int kMostThreads = kNarrow * kWarpSize;  // of a block: a warp per long row
  static constexpr int kWords = kMostThreads * kElements * 3 / 2;  // of the tile, with its padding
};

/// Division by a number that is known at launch: a multiplication and a shift.
struct Divisor {
  static constexpr int kBits = 19;
  static constexpr int kMost = 1 << (32 - kBits);  // beyond, the multiplication would overflow
  int divisor = 1;                                 // up to kNarrow
  std::uint32_t inverse = 1 << kBits;              // 2^kBits / divisor, rounded up

  static Divisor of(int divisor) {
    return {divisor, static_cast<std::uint32_t>(ceil_div(1 << kBits, divisor))};
  }
  /// Of 0 <= dividend < kMost.
  __host__ __device__ int quotient(int dividend) const {
    return static_cast<int>(static_cast<std::uint32_t>(dividend) * inverse >> kBits);
  }
};

/// A matrix and its transpose: one has few long rows, the other many short ones. In elements.
struct NarrowShape {
  Divisor lines;                 // the short extent: the number of long rows
  std::int64_t length = 0;       // the long extent
  std::int64_t long_pitch = 0;   // between long rows
  std::int64_t short_pitch = 0;  // between short rows
};

/// Element `at` of long row `line`, which is element `line` of short row `at`.
struct Place {
  int at, line;
  bool inside;
};

/// The elements of a thread in the order of the long rows: neighbouring lanes have neighbouring
/// elements of one long row. `count` elements of every long row are the block's.
struct LongOrder {
  int count;
  __device__ LongOrder(const NarrowShape&, int count) : count(count) {}
  __device__ Place operator[](int i) const {
    const auto at = static_cast<int>(threadIdx.x + i * blockDim.x);
    return {at, static_cast<int>(threadIdx.y), at < count};
  }
};

/// The same in the order of the short rows, one after the other.
struct ShortOrder {
  Divisor lines;
  int words;
  __device__ ShortOrder(const NarrowShape& shape, int count)
      : lines(shape.lines), words(count * shape.lines.divisor) {}
  __device__ Place operator[](int i) const {
    const auto threads = static_cast<int>(blockDim.x * blockDim.y);
    const int word = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x) + i * threads;
    const int at = lines.quotient(word);
    return {at, word - at * lines.divisor, word < words};
  }
};

template <class C, bool kLongRowsIn>
__global__ void __launch_bounds__(C::kMostThreads)
    narrow_transpose(const float* __restrict__ in, float* __restrict__ out, NarrowShape shape) {
  static_assert(C::kMostThreads * C::kElements <= Divisor::kMost);
  using InOrder = std::conditional_t<kLongRowsIn, LongOrder, ShortOrder>;
  using OutOrder = std::conditional_t<kLongRowsIn, ShortOrder, LongOrder>;
  // How far the next `at` and the next `line` are in each matrix.
  const std::int64_t in_at = kLongRowsIn ? 1 : shape.short_pitch;
  const std::int64_t in_line = kLongRowsIn ? shape.long_pitch : 1;
  const std::int64_t out_at = kLongRowsIn ? shape.short_pitch : 1;
  const std::int64_t out_line = kLongRowsIn ? 1 : shape.long_pitch;
  const auto span = static_cast<int>(blockDim.x) * C::kElements;  // of every long row
  const std::int64_t start = std::int64_t{blockIdx.x} * span;
  const auto count = static_cast<int>(min(shape.length - start, std::int64_t{span}));
  in += start * in_at;
  out += start * out_at;

  // Short row `at` begins at word at * stride. The stride is odd, so one element of each of 32
  // short rows is in 32 different banks.
  __shared__ float tile[C::kWords];
  const int stride = shape.lines.divisor | 1;

  float value[C::kElements];
  const InOrder from(shape, count);
#pragma unroll
  for (int i = 0; i < C::kElements; ++i) {
    const Place place = from[i];
    value[i] = place.inside ? in[place.at * in_at + place.line * in_line] : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < C::kElements; ++i) {
    const Place place = from[i];
    if (place.inside) tile[place.at * stride + place.line] = value[i];
  }
  __syncthreads();  // the tile is complete before any thread reads it
  const OutOrder to(shape, count);
#pragma unroll
  for (int i = 0; i < C::kElements; ++i) {
    const Place place = to[i];
    if (place.inside) {
      out[place.at * out_at + place.line * out_line] = tile[place.at * stride + place.line];
    }
  }
}

/// Launches it for a matrix of few rows (kFewRows) or of few columns.
template <int kPerThread, bool kFewRows>
void run_narrow(const Level::Plan& plan, Stream stream) {
  using C = NarrowConfig<kPerThread>;
  const Shape& s = plan.problem.shape;
  const int lines = static_cast<int>(kFewRows ? s.rows : s.cols);
  if (lines == 0) return;
  NarrowShape shape{Divisor::of(lines), s.rows, s.out_pitch, s.in_pitch};
  if (kFewRows) shape = {Divisor::of(lines), s.cols, s.in_pitch, s.out_pitch};
  const int warps = std::max(C::kThreads / (lines * kWarpSize), 1);  // per long row
  const dim3 block(static_cast<unsigned>(warps * kWarpSize), static_cast<unsigned>(lines));
  const std::int64_t span = std::int64_t{block.x} * C::kElements;
  launch(narrow_transpose<C, kFewRows>,
         {dim3(static_cast<unsigned>(ceil_div(shape.length, span))), block}, stream,
         plan.buffers.in, plan.buffers.out, shape);
}

}  // namespace cookbook::transpose
