// SPDX-License-Identifier: MIT
// Example 1, RMSNorm: memory-bound, so only the occupancy is searched: threads per block and blocks
// per SM. There is no tile size and no number of stages to choose.
#pragma once

#include <algorithm>
#include <cmath>

#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/row_io.cuh"
#include "chapters/11_autotuning/tuner/space.hpp"
#include "common/device/cuda.cuh"
#include "common/device/warp.cuh"

namespace cookbook::rmsnorm {

using Problem = softmax::RmsProblem<bf16>;
using Buffers = softmax::RmsBuffers<bf16>;
using softmax::Shape;

template <int kThreadCount, int kBlockCount>
struct Config {
  static constexpr int kThreads = kThreadCount;  // per block; a block computes one row at a time
  static constexpr int kBlocksPerSm = kBlockCount;

  static tune::Parameters parameters() {
    return {{"threads", kThreads}, {"blocks_per_sm", kBlocksPerSm}};
  }
  static constexpr bool kLegal = kThreads <= 1024 && kThreads * kBlocksPerSm <= 2048;
  static std::string why_illegal() {
    return kThreads > 1024
               ? tune::with_commas(kThreads) + " threads > 1,024 per block"
               : tune::with_commas(kThreads * kBlocksPerSm) + " threads > 2,048 a multiprocessor";
  }
};

/// One row per block at a time, rows assigned round-robin. kPack: elements per access, 8 or 1.
template <class C, int kPack>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    kernel(const bf16* __restrict__ in, const bf16* __restrict__ weight, bf16* __restrict__ out,
           Shape shape) {
  __shared__ float scratch[C::kThreads / kWarpSize];
  const int cols = static_cast<int>(shape.cols), packed = cols / kPack * kPack;
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const bf16* x = in + row * shape.in_pitch;
    bf16* y = out + row * shape.out_pitch;
    float squares = 0;
    for (int i = threadIdx.x * kPack; i < packed; i += C::kThreads * kPack) {
      float v[kPack];
      softmax::load_pack(v, x + i);
#pragma unroll
      for (int j = 0; j < kPack; ++j) squares = fmaf(v[j], v[j], squares);
    }
    for (int i = packed + threadIdx.x; i < cols; i += C::kThreads) {
      const float v = softmax::as_float(x[i]);
      squares = fmaf(v, v, squares);
    }
    squares = block_sum<C::kThreads>(squares, scratch);
    const float scale = rsqrtf(squares / static_cast<float>(cols) + softmax::kEpsilon);
    for (int i = threadIdx.x * kPack; i < packed; i += C::kThreads * kPack) {
      float v[kPack], w[kPack];
      softmax::load_pack(v, x + i);  // second read: L1 or L2 still has the row
      softmax::load_pack(w, weight + i);
#pragma unroll
      for (int j = 0; j < kPack; ++j) v[j] *= scale * w[j];
      softmax::store_pack(y + i, v);
    }
    for (int i = packed + threadIdx.x; i < cols; i += C::kThreads) {
      y[i] = softmax::rounded<bf16>(softmax::as_float(x[i]) * scale * softmax::as_float(weight[i]));
    }
  }
}

template <class C>
struct Tuned : LevelOf<Problem, Buffers> {
  static constexpr LevelText text{
      .name = "rmsnorm",
      .changed = "one configuration of the space",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_loads("in").sectors_per_request(16),
            global_stores("out").coalesced(), global_stores("out").sectors_per_request(16)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const Buffers& at = plan.buffers;
    if (shape.elements() == 0) return;
    const std::int64_t resident = std::int64_t{device_info().sm_count} * C::kBlocksPerSm;
    const LaunchConfig config{dim3(static_cast<unsigned>(std::min(shape.rows, resident))),
                              dim3(C::kThreads)};
    const auto aligned = [](const void* p) {
      return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
    };
    const bool wide = aligned(at.in) && aligned(at.weight) && aligned(at.out) &&
                      shape.in_pitch % 8 == 0 && shape.out_pitch % 8 == 0;
    launch(wide ? kernel<C, 8> : kernel<C, 1>, config, stream, at.in, at.weight, at.out, shape);
  }
};

/// Latency-bound until enough bytes are in flight; then all configurations take the same time. What
/// matters: the resident threads, and how evenly the rows are distributed over the blocks.
inline double predict(const tune::Parameters& parameters, const Size& size,
                      const DeviceInfo& device) {
  const double threads = double(tune::value_of(parameters, "threads"));
  const double resident = double(tune::value_of(parameters, "blocks_per_sm")) * device.sm_count;
  const double rows = double(size[0]), cols = double(size[1]);
  const double waves = std::max(1.0, std::ceil(rows / resident));
  const double steps = std::ceil(cols / (8 * threads));  // 16-byte accesses per row
  const double blocks = std::min(rows, resident);
  const double in_flight = blocks * std::min(threads, cols / 8) * 16 / device.sm_count;
  const double bandwidth = std::min(1.0, in_flight / 32768);  // bytes in flight for full bandwidth
  return waves * blocks * cols / bandwidth / device.sm_count / 1e3 + 0.6 * waves * steps;
}

}  // namespace cookbook::rmsnorm
