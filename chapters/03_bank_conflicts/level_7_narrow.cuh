// SPDX-License-Identifier: MIT
// Level 7: matrices of few rows or few columns. A block covers the whole short extent, so that no
// thread of its tile is without an element.
#pragma once

#include <algorithm>
#include <type_traits>

#include "chapters/03_bank_conflicts/choose.hpp"
#include "chapters/03_bank_conflicts/level_6_aligned.cuh"
#include "common/device/warp.cuh"

namespace cookbook::transpose {

struct NarrowConfig {
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 16;                     // elements, all in flight
  static constexpr int kElements = kThreads * kPerThread;   // per block
  static constexpr int kWords = kElements + kElements / 2;  // of the tile, with its padding
  static_assert(kElements / kNarrow >= kWarpSize, "a warp accesses one long row");
};

/// A matrix and its transpose: one has few long rows, the other many short ones. In elements.
struct NarrowShape {
  int lines = 0;                 // the short extent: the number of long rows
  int span = 0;                  // elements of every long row that a block transposes
  std::int64_t length = 0;       // the long extent
  std::int64_t long_pitch = 0;   // between long rows
  std::int64_t short_pitch = 0;  // between short rows
};

/// The elements of one thread, kThreads apart, in rows of `extent`: the coordinates of
/// element e are (e / extent, e % extent). One division: from one element to the next, both
/// advance by a constant.
template <class C>
struct Walk {
  int extent, major, minor, step_major, step_minor;
  __device__ explicit Walk(int extent)
      : extent(extent),
        major(static_cast<int>(threadIdx.x) / extent),
        minor(static_cast<int>(threadIdx.x) % extent),
        step_major(C::kThreads / extent),
        step_minor(C::kThreads % extent) {}
  __device__ void next() {
    const bool wraps = minor + step_minor >= extent;
    minor += step_minor - (wraps ? extent : 0);
    major += step_major + (wraps ? 1 : 0);
  }
};

/// In the order of the long rows: element `at` of long row `line`, which is element `line` of short
/// row `at`.
template <class C>
struct LongOrder : Walk<C> {
  __device__ explicit LongOrder(const NarrowShape& shape) : Walk<C>(shape.span) {}
  __device__ int at() const { return this->minor; }
  __device__ int line() const { return this->major; }
};

/// The same in the order of the short rows.
template <class C>
struct ShortOrder : Walk<C> {
  __device__ explicit ShortOrder(const NarrowShape& shape) : Walk<C>(shape.lines) {}
  __device__ int at() const { return this->major; }
  __device__ int line() const { return this->minor; }
};

template <class C, bool kLongRowsIn>
__global__ void __launch_bounds__(C::kThreads)
    narrow_transpose(const float* __restrict__ in, float* __restrict__ out, NarrowShape shape) {
  using InOrder = std::conditional_t<kLongRowsIn, LongOrder<C>, ShortOrder<C>>;
  using OutOrder = std::conditional_t<kLongRowsIn, ShortOrder<C>, LongOrder<C>>;
  // How far the next `at` and the next `line` are in each matrix.
  const std::int64_t in_at = kLongRowsIn ? 1 : shape.short_pitch;
  const std::int64_t in_line = kLongRowsIn ? shape.long_pitch : 1;
  const std::int64_t out_at = kLongRowsIn ? shape.short_pitch : 1;
  const std::int64_t out_line = kLongRowsIn ? 1 : shape.long_pitch;
  const std::int64_t start = std::int64_t{blockIdx.x} * shape.span;
  const auto count = static_cast<int>(min(shape.length - start, std::int64_t{shape.span}));
  in += start * in_at;
  out += start * out_at;

  // Short row `at` begins at word at * stride. The stride is odd, so one element of each of 32
  // short rows is in 32 different banks.
  __shared__ float tile[C::kWords];
  const int stride = shape.lines | 1;

  float value[C::kPerThread];
  InOrder from(shape), to_tile(shape);
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k, from.next()) {
    const bool inside = from.at() < count && from.line() < shape.lines;
    value[k] = inside ? in[from.at() * in_at + from.line() * in_line] : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k, to_tile.next()) {
    const bool inside = to_tile.at() < count && to_tile.line() < shape.lines;
    if (inside) tile[to_tile.at() * stride + to_tile.line()] = value[k];
  }
  __syncthreads();  // the tile is complete before any thread reads it
  OutOrder to(shape);
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k, to.next()) {
    const bool inside = to.at() < count && to.line() < shape.lines;
    if (inside) out[to.at() * out_at + to.line() * out_line] = tile[to.at() * stride + to.line()];
  }
}

struct Narrow : Level {
  using Config = NarrowConfig;
  static constexpr LevelText text{
      .name = "narrow",
      .changed = "few rows or few columns: a block's tile covers them all",
      .expect =
          "1 to 16 rows or columns: no thread is idle, and one side of a tile is contiguous. Other "
          "shapes: the level whose tile they fill",
      .cost = "a second kernel, and a rule that chooses",
  };

  static Claims claims(const Problem& p) {
    const Shape& s = p.shape;
    const bool vectors = (s.rows | s.cols | s.in_pitch | s.out_pitch) % 4 == 0;
    const TransposeKernel kernel = choose_transpose(s.rows, s.cols, vectors, s.out_pitch % 8 == 0,
                                                    false, device_info().sm_count);
    if (kernel == TransposeKernel::small_tiles) return mechanism(Padded::claims(p));
    if (kernel == TransposeKernel::tiles) {
      Claims claims = mechanism(Vectorised::claims(p));
      if (s.rows >= kWholeTile && s.cols >= kWholeTile) {
        claims.push_back(at_least_previous(0.98, "level 5's kernel, which was as fast"));
        claims.push_back(fraction_of_roof(0.85));
      }
      return claims;
    }
    if (is_narrow(kernel)) {
      return {global_loads("in").coalesced(), global_stores("out").coalesced(),
              shared_stores().conflict_free(), shared_loads().conflict_free()};
    }
    Claims claims = mechanism(Aligned::claims(p));
    claims.push_back(at_least_previous(0.98, "the same kernel where no extent is short"));
    claims.push_back(fraction_of_roof(0.85));
    return claims;
  }

  /// Whether every row of `out` starts on a sector boundary.
  static bool on_sectors(const Plan& plan) {
    return reinterpret_cast<std::uintptr_t>(plan.buffers.out) % 32 == 0 &&
           plan.problem.shape.out_pitch % 8 == 0;
  }

  template <bool kLongRowsIn>
  static void run_narrow(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    NarrowShape shape;
    shape.lines = static_cast<int>(kLongRowsIn ? s.rows : s.cols);
    shape.length = kLongRowsIn ? s.cols : s.rows;
    shape.long_pitch = kLongRowsIn ? s.in_pitch : s.out_pitch;
    shape.short_pitch = kLongRowsIn ? s.out_pitch : s.in_pitch;
    if (shape.lines == 0) return;
    // The largest span that fits, or a smaller one where that leaves SMs without a block. Whole
    // warps: 32 elements of one long row.
    const std::int64_t fits = Config::kElements / shape.lines;
    const std::int64_t blocks = 2 * device_info().sm_count;
    const std::int64_t span = std::min(fits, ceil_div(shape.length, blocks));
    shape.span = static_cast<int>(std::max<std::int64_t>(span / kWarpSize, 1) * kWarpSize);
    const auto grid = static_cast<unsigned>(ceil_div(shape.length, std::int64_t{shape.span}));
    launch(narrow_transpose<Config, kLongRowsIn>, {dim3(grid), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, shape);
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    switch (choose_transpose(s.rows, s.cols, Vectorised::aligned(plan), on_sectors(plan),
                             Aligned::on_lines(plan), device_info().sm_count)) {
      case TransposeKernel::few_rows: return run_narrow<true>(plan, stream);
      case TransposeKernel::few_cols: return run_narrow<false>(plan, stream);
      case TransposeKernel::small_tiles: return Padded::run(plan, stream);
      case TransposeKernel::tiles: return Vectorised::run(plan, stream);
      case TransposeKernel::on_lines: return Aligned::run_with<Aligned::OnLines>(plan, stream);
      case TransposeKernel::aligned: return Aligned::run_with<Aligned::Config>(plan, stream);
    }
  }
};

}  // namespace cookbook::transpose
