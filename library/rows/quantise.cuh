// SPDX-License-Identifier: MIT
// Rows of bf16 as e4m3 with a scale per 128 columns, in the layout that chapter 12 multiplies: its
// problem, and three levels.
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

  // The scale is a quotient. A kernel multiplies by 448 / largest, so its product is off by two
  // roundings to fp32 before it is rounded to e4m3.
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
      const double error = 3 * u32 * std::fabs(value[c]);
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

inline constexpr int kPack = 8;                           // columns per thread and access
inline constexpr int kLanes = kScaleBlock / kPack;        // lanes that share a scale
inline constexpr int kColumns = kWarpSize * kPack;        // of a warp: two blocks of columns
inline constexpr int kWarps = 4, kThreads = 32 * kWarps;  // of a block of threads

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

/// Stores them, multiplied by `factor`, as e4m3.
template <bool kVectors>
__device__ __forceinline__ void store_columns(fp8_e4m3* row, int col, int cols,
                                              const Pack<bf16, kPack>& numbers, float factor) {
  Pack<fp8_e4m3, kPack> quantised;
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    quantised[i] = fp8_e4m3(__bfloat162float(numbers[i]) * factor);
  }
  if constexpr (kVectors) {
    if (col < cols) store_vector_streaming(row + col, quantised);
  } else {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (col + i < cols) row[col + i] = quantised[i];
    }
  }
}

/// The largest of the 128 magnitudes that 16 lanes hold, in each of these; at least kSmallest.
__device__ __forceinline__ float largest_of_block(const Pack<bf16, kPack>& numbers) {
  float largest = kSmallest;
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    largest = fmaxf(largest, fabsf(__bfloat162float(numbers[i])));
  }
  return warp_max<kLanes>(largest);
}

/// Extents and pitches, as a kernel argument.
struct Shape {
  std::int64_t rows;
  int cols;
  std::int64_t in_pitch, out_pitch, scale_pitch;
};
inline Shape shape_of(const Problem& p) {
  return {p.rows, static_cast<int>(p.cols), p.in_pitch, p.out_pitch, p.scale_pitch};
}

/// Where a warp's columns and its first row are. Warps are numbered along a row first.
template <int kRows>
struct WarpAt {
  int lane = lane_idx(), col, block;
  std::int64_t row;
  __device__ explicit WarpAt(const Shape& s) {
    const int across = ceil_div(s.cols, kColumns);
    const std::int64_t warp = std::int64_t{blockIdx.x} * kWarps + warp_idx();
    const int first = static_cast<int>(warp % across) * kColumns;
    col = first + lane * kPack;
    block = col / kScaleBlock;
    row = warp / across * kRows;
  }
};

/// Blocks of threads for a problem whose warps take kRows rows of 256 columns each.
template <int kRows>
unsigned blocks_of(const Problem& p) {
  const std::int64_t warps = ceil_div(p.cols, kColumns) * ceil_div(p.rows, kRows);
  return static_cast<unsigned>(ceil_div(warps, kWarps));
}

template <bool kVectors>
__global__ void __launch_bounds__(kThreads) find_scales(const bf16* in, float* scales, Shape s) {
  const WarpAt<1> at(s);
  if (at.row >= s.rows) return;
  const auto numbers = load_columns<kVectors>(in + at.row * s.in_pitch, at.col, s.cols);
  const float largest = largest_of_block(numbers);
  if (at.lane % kLanes == 0 && at.col < s.cols) {
    scales[at.block * s.scale_pitch + at.row] = largest / kLargest;
  }
}

template <bool kVectors>
__global__ void __launch_bounds__(kThreads)
    convert(const bf16* in, fp8_e4m3* out, const float* scales, Shape s) {
  const WarpAt<1> at(s);
  if (at.row >= s.rows || at.col >= s.cols) return;
  const auto numbers = load_columns<kVectors>(in + at.row * s.in_pitch, at.col, s.cols);
  const float factor = 1 / scales[at.block * s.scale_pitch + at.row];
  store_columns<kVectors>(out + at.row * s.out_pitch, at.col, s.cols, numbers, factor);
}

template <bool kVectors>
__global__ void __launch_bounds__(kThreads)
    quantise_block(const bf16* in, fp8_e4m3* out, float* scales, Shape s) {
  const WarpAt<1> at(s);
  if (at.row >= s.rows) return;
  const auto numbers = load_columns<kVectors>(in + at.row * s.in_pitch, at.col, s.cols);
  const float largest = largest_of_block(numbers);
  store_columns<kVectors>(out + at.row * s.out_pitch, at.col, s.cols, numbers, kLargest / largest);
  if (at.lane % kLanes == 0 && at.col < s.cols) {
    scales[at.block * s.scale_pitch + at.row] = largest / kLargest;
  }
}

inline constexpr int kRowsOfWarp = 32;  // two scales for each lane
inline constexpr int kInFlight = 4;     // rows that a warp loads before it waits for the first

template <bool kVectors>
__global__ void __launch_bounds__(kThreads)
    quantise_rows(const bf16* in, fp8_e4m3* out, float* scales, Shape s) {
  const WarpAt<kRowsOfWarp> at(s);
  const int rows = static_cast<int>(min(s.rows - at.row, std::int64_t{kRowsOfWarp}));
  if (rows <= 0) return;
  in += at.row * s.in_pitch;
  out += at.row * s.out_pitch;
  const int lane = at.lane % kLanes;
  float scale[kRowsOfWarp / kLanes];  // of rows `lane` and `lane` + 16
#pragma unroll
  for (int part = 0; part < kRowsOfWarp / kLanes; ++part) {
#pragma unroll
    for (int r = part * kLanes; r < (part + 1) * kLanes; r += kInFlight) {
      Pack<bf16, kPack> numbers[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (r + i < rows) {
          numbers[i] = load_columns<kVectors>(in + (r + i) * s.in_pitch, at.col, s.cols);
        }
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (r + i >= rows) break;  // the same in all lanes
        const float largest = largest_of_block(numbers[i]);
        store_columns<kVectors>(out + (r + i) * s.out_pitch, at.col, s.cols, numbers[i],
                                kLargest / largest);
        if (r + i == part * kLanes + lane) scale[part] = largest / kLargest;
      }
    }
    const int row = part * kLanes + lane;
    if (row < rows && at.block * kScaleBlock < s.cols) {
      scales[at.block * s.scale_pitch + at.row + row] = scale[part];
    }
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
      const LaunchConfig config{dim3(blocks_of<1>(plan.problem)), dim3(kThreads)};
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
      .cost = "a scale is a store of 4 bytes, far from the block's other one",
  };
  static Claims claims(const Problem& p) {
    return {global_loads("in").bytes(input_bytes(p, 1)), faster_than_previous(1.4)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Buffers& at = plan.buffers;
    with_access(plan, [&](auto vectors) {
      launch(quantise_block<decltype(vectors)::value>,
             {dim3(blocks_of<1>(plan.problem)), dim3(kThreads)}, stream, at.in, at.out, at.scales,
             shape_of(plan.problem));
    });
  }
};

struct ScalesTogether : Level {
  static constexpr LevelText text{
      .name = "scales_together",
      .changed = "a warp takes 32 rows, 4 of them in flight, and stores 16 scales side by side",
      .expect = "1.05x, and 0.95 of the roof: whole sectors of scales, and fewer, longer warps",
      .cost = "few rows fill few SMs",
  };
  static Claims claims(const Problem& p) {
    Claims claims = {global_loads("in").bytes(input_bytes(p, 1)),
                     global_stores("scales").coalesced()};
    if (p.bytes() > 1e8) claims.push_back(fraction_of_roof(0.93));
    return claims;
  }
  static void run(const Plan& plan, Stream stream) {
    const Buffers& at = plan.buffers;
    with_access(plan, [&](auto vectors) {
      launch(quantise_rows<decltype(vectors)::value>,
             {dim3(blocks_of<kRowsOfWarp>(plan.problem)), dim3(kThreads)}, stream, at.in, at.out,
             at.scales, shape_of(plan.problem));
    });
  }
};

}  // namespace cookbook::quantise
