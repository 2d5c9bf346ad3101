// SPDX-License-Identifier: MIT
// Rows of bf16 as e4m3 with a scale per 128 columns, in the layout that chapter 12 multiplies: its
// problem, and two levels.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/fp8.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::quantise {

inline constexpr int kScaleBlock = 128;  // columns that share a scale
inline constexpr float kLargest = 448;   // of e4m3
/// A block whose numbers are all smaller has the scale of this one: 448 divided by it is finite.
inline constexpr float kSmallest = 0x1p-100f;

/// For each row r and each block p of 128 columns, the last of which may be partial:
///
///     scales[p][r] = max(largest |in[r][c]| of the block, kSmallest) / 448
///     out[r][c]    = in[r][c] / scales[p][r], rounded to e4m3
///
/// NaN is no largest number and stays NaN. An infinity makes the scale infinite, zeros of the
/// block's finite numbers, and NaN of the infinities. Pitches count elements.
struct Problem {
  static constexpr bool kExactOnIntegers = false;  // quotients
  std::int64_t rows = 0, cols = 0;
  std::int64_t in_pitch = 0, out_pitch = 0, scale_pitch = 0;

  /// size: rows, columns.
  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 2 || size[0] < 0 || size[1] < 0 ||
        size[1] > std::numeric_limits<std::int32_t>::max() - kScaleBlock) {
      throw BadSize("quantisation takes two sizes, rows x cols, cols below 2^31 - 128");
    }
    Problem p;
    p.rows = size[0], p.cols = size[1];
    p.in_pitch = p.cols + variant.of("in").extra_pitch;
    p.out_pitch = p.cols + variant.of("out").extra_pitch;
    p.scale_pitch = ceil_div(p.rows, 4) * 4 + variant.of("scales").extra_pitch;  // for TMA
    return p;
  }

  std::int64_t blocks() const { return ceil_div(cols, kScaleBlock); }

  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::bf16, rows, cols, in_pitch, Role::input},
            {"out", DType::e4m3, rows, cols, out_pitch, Role::output},
            {"scales", DType::f32, blocks(), rows, scale_pitch, Role::output}};
  }
  double bytes() const {
    return 3.0 * static_cast<double>(rows * cols) + 4.0 * static_cast<double>(blocks() * rows);
  }
  double flops() const { return 0; }

  // A kernel multiplies the largest magnitude by 1 / 448, and the numbers by an approximate
  // reciprocal of the scale: off by 1 unit in the last place (CUDA C++ Programming Guide,
  // "__fdividef") beside the roundings of scale and product.
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& in = tensors["in"];
    const double u32 = unit_roundoff(DType::f32);
    std::vector<double> numbers(static_cast<std::size_t>(cols));
    const auto scale_of = [&](std::int64_t block) {
      double largest = kSmallest;
      for (std::int64_t c = block * kScaleBlock; c < std::min((block + 1) * kScaleBlock, cols);
           ++c) {
        largest = std::fmax(largest, std::fabs(numbers[static_cast<std::size_t>(c)]));
      }
      return largest / kLargest;
    };
    if (output == "scales") {  // row is a block of columns
      for (std::int64_t r = 0; r < rows; ++r) {
        in.read_row(r, cols, numbers.data());
        value[r] = scale_of(row);
        bound[r] = 2 * u32 * value[r];
      }
      return;
    }
    in.read_row(row, cols, numbers.data());
    for (std::int64_t c = 0; c < cols; ++c) {
      value[c] = numbers[static_cast<std::size_t>(c)] / scale_of(c / kScaleBlock);
      const double error = 6 * u32 * std::fabs(value[c]);
      bound[c] = error + half_ulp(DType::e4m3, std::fabs(value[c]) + error);
    }
  }
};

struct Buffers {
  const bf16* in;
  fp8_e4m3* out;
  float* scales;
  static Buffers bind(const DevicePointers& at) {
    return {at.get<const bf16>("in"), at.get<fp8_e4m3>("out"), at.get<float>("scales")};
  }
};

using Level = LevelOf<Problem, Buffers>;

inline constexpr int kPack = 8;                     // columns per thread and access
inline constexpr int kLanes = kScaleBlock / kPack;  // lanes that share a scale
inline constexpr int kColumns = kWarpSize * kPack;  // of a warp: two blocks of columns
inline constexpr int kWarps = 4, kThreads = kWarps * kWarpSize;

/// Whether rows are accessed 8 elements at a time: 16 bytes of `in`, 8 of `out`.
inline bool has_vectors(const Problem& p, const Buffers& at) {
  return p.cols % kPack == 0 && p.in_pitch % kPack == 0 && p.out_pitch % kPack == 0 &&
         reinterpret_cast<std::uintptr_t>(at.in) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(at.out) % 8 == 0;
}

/// Columns `col` to `col` + 7 of a row; zeros beyond its end.
template <bool kVectors>
__device__ __forceinline__ Pack<bf16, kPack> load_columns(const bf16* row, int col, int cols) {
  Pack<bf16, kPack> numbers{};
  if constexpr (kVectors) {
    if (col < cols) numbers = load_vector_streaming<Pack<bf16, kPack>>(row + col);
  } else {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (col + i < cols) numbers[i] = row[col + i];
    }
  }
  return numbers;
}

/// Two numbers rounded to e4m3, the first in the lower byte: one conversion, as bf16's of a pair.
__device__ __forceinline__ std::uint16_t to_e4m3_pair(float low, float high) {
#if defined(COOKBOOK_SIMT)
  return static_cast<std::uint16_t>(fp8_e4m3(low).__x | fp8_e4m3(high).__x << 8);
#else
  return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
#endif
}

/// Stores them, multiplied by `factor`, as e4m3.
template <bool kVectors>
__device__ __forceinline__ void store_columns(fp8_e4m3* row, int col, int cols,
                                              const Pack<bf16, kPack>& numbers, float factor) {
  Pack<std::uint16_t, kPack / 2> pairs;
#pragma unroll
  for (int i = 0; i < kPack / 2; ++i) {
    pairs[i] = to_e4m3_pair(__bfloat162float(numbers[2 * i]) * factor,
                            __bfloat162float(numbers[2 * i + 1]) * factor);
  }
  if constexpr (kVectors) {
    if (col < cols) store_vector_streaming(row + col, pairs);
  } else {
    const auto quantised = detail::reinterpret_bits<Pack<fp8_e4m3, kPack>>(pairs);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (col + i < cols) row[col + i] = quantised[i];
    }
  }
}

/// The scale of the 128 numbers that 16 lanes hold, in each of these.
__device__ __forceinline__ float scale_of_block(const Pack<bf16, kPack>& numbers) {
  const auto pairs = detail::reinterpret_bits<Pack<__nv_bfloat162, kPack / 2>>(numbers);
  __nv_bfloat162 largest = __habs2(pairs[0]);
#pragma unroll
  for (int i = 1; i < kPack / 2; ++i) largest = __hmax2(largest, __habs2(pairs[i]));
  const float of_lane = fmaxf(__low2float(largest), __high2float(largest));
  return warp_max<kLanes>(fmaxf(of_lane, kSmallest)) * (1 / kLargest);
}

/// What the numbers are multiplied by. The scale is neither so small nor so large that a division
/// by the reciprocal would lose bits.
__device__ __forceinline__ float factor_of(float scale) { return __fdividef(1, scale); }

/// Extents and pitches, as a kernel argument.
struct Shape {
  std::int64_t rows;
  int cols;
  std::int64_t in_pitch, out_pitch, scale_pitch;
};
inline Shape shape_of(const Problem& p) {
  return {p.rows, static_cast<int>(p.cols), p.in_pitch, p.out_pitch, p.scale_pitch};
}

/// The columns of a thread. Neighbouring warps have neighbouring columns.
struct Columns {
  int lane = lane_idx();
  int col = (static_cast<int>(blockIdx.x) * kWarps + warp_idx()) * kColumns + lane * kPack;
  int block = col / kScaleBlock;
};

/// Blocks of threads that have a row each at a time.
inline dim3 grid_of(const Problem& p) {
  constexpr std::int64_t kMostBlocksY = 65535;
  return dim3(static_cast<unsigned>(ceil_div(p.cols, kWarps * kColumns)),
              static_cast<unsigned>(std::min(p.rows, kMostBlocksY)));
}

template <bool kVectors>
__global__ void __launch_bounds__(kThreads) find_scales(const bf16* in, float* scales, Shape s) {
  const Columns at;
  for (std::int64_t row = blockIdx.y; row < s.rows; row += gridDim.y) {
    const float scale =
        scale_of_block(load_columns<kVectors>(in + row * s.in_pitch, at.col, s.cols));
    if (at.lane % kLanes == 0 && at.col < s.cols) scales[at.block * s.scale_pitch + row] = scale;
  }
}

template <bool kVectors>
__global__ void __launch_bounds__(kThreads)
    convert(const bf16* in, fp8_e4m3* out, const float* scales, Shape s) {
  const Columns at;
  if (at.col >= s.cols) return;
  for (std::int64_t row = blockIdx.y; row < s.rows; row += gridDim.y) {
    const auto numbers = load_columns<kVectors>(in + row * s.in_pitch, at.col, s.cols);
    store_columns<kVectors>(out + row * s.out_pitch, at.col, s.cols, numbers,
                            factor_of(scales[at.block * s.scale_pitch + row]));
  }
}

template <bool kVectors>
__global__ void __launch_bounds__(kThreads)
    quantise_row(const bf16* in, fp8_e4m3* out, float* scales, Shape s) {
  const Columns at;
  for (std::int64_t row = blockIdx.y; row < s.rows; row += gridDim.y) {
    const auto numbers = load_columns<kVectors>(in + row * s.in_pitch, at.col, s.cols);
    const float scale = scale_of_block(numbers);
    store_columns<kVectors>(out + row * s.out_pitch, at.col, s.cols, numbers, factor_of(scale));
    if (at.lane % kLanes == 0 && at.col < s.cols) scales[at.block * s.scale_pitch + row] = scale;
  }
}

/// Calls `launch_kernels(std::bool_constant<whether rows are accessed as vectors>)`.
template <class Launch>
void with_access(const Level::Plan& plan, const Launch& launch_kernels) {
  if (plan.problem.rows == 0 || plan.problem.cols == 0) return;
  has_vectors(plan.problem, plan.buffers) ? launch_kernels(std::true_type{})
                                          : launch_kernels(std::false_type{});
}

/// Bytes of the input that a level loads which reads it `times` times.
inline double input_bytes(const Problem& p, int times) {
  return 2.0 * times * static_cast<double>(p.rows * p.cols);
}

struct TwoKernels : Level {
  static constexpr LevelText text{
      .name = "two_kernels",
      .changed = "one kernel finds the scales, a second one converts",
      .expect = "0.6 of the roof: 5 bytes per number where 3 would do",
      .cost = "reads the input twice",
  };
  static Claims claims(const Problem& p) { return {global_loads("in").bytes(input_bytes(p, 2))}; }
  static void run(const Plan& plan, Stream stream) {
    const Buffers& at = plan.buffers;
    with_access(plan, [&](auto vectors) {
      constexpr bool kVectors = decltype(vectors)::value;
      const LaunchConfig config{grid_of(plan.problem), dim3(kThreads)};
      launch(find_scales<kVectors>, config, stream, at.in, at.scales, shape_of(plan.problem));
      launch(convert<kVectors>, config, stream, at.in, at.out, static_cast<const float*>(at.scales),
             shape_of(plan.problem));
    });
  }
};

struct Fused : Level {
  static constexpr LevelText text{
      .name = "fused",
      .changed = "16 lanes hold a block of 128 columns between finding its scale and converting",
      .expect = "1.6x: 3 bytes per number instead of 5",
      .cost = "no two scales that a warp stores are neighbours",
  };
  static Claims claims(const Problem& p) {
    Claims claims = {global_loads("in").bytes(input_bytes(p, 1)), faster_than_previous(1.4)};
    if (p.bytes() > 1e8) claims.push_back(fraction_of_roof(0.85));
    return claims;
  }
  static void run(const Plan& plan, Stream stream) {
    const Buffers& at = plan.buffers;
    with_access(plan, [&](auto vectors) {
      launch(quantise_row<decltype(vectors)::value>, {grid_of(plan.problem), dim3(kThreads)},
             stream, at.in, at.out, at.scales, shape_of(plan.problem));
    });
  }
};

}  // namespace cookbook::quantise
