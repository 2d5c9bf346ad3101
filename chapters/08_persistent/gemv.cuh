// SPDX-License-Identifier: MIT
/// @file
/// Level 6 for one row or one column of C: a matrix times a vector. Each weight is used once, so
/// only reading counts: no tensor core, no shared memory for operands. Every SM reads, because the
/// sum over K is divided among warps and, if outputs are few, among blocks; the block that ends
/// last adds their sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "chapters/08_persistent/plan.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"

namespace cookbook::gemm::any_shape {

/// kVector: elements of W that a lane loads at a time; 8, or 1 where rows do not begin on 16-byte
/// boundaries.
template <int kVectorSize>
struct GemvConfig {
  static constexpr int kVector = kVectorSize;
  static constexpr int kThreads = 128;
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kBlocksPerSm = 8;             // resident
  static constexpr int kLoads = 8;                   // in flight per lane
  static constexpr int kRows = 4;                    // outputs of a block, W's rows are outputs
  static constexpr int kCols = kWarpSize * kVector;  // outputs of a block, W's columns are outputs
  /// Terms of each sum that a block reads at a time.
  static constexpr int kRowRound = kThreads * kVector * (kLoads / kRows);
  static constexpr int kColRound = kWarps * kLoads;

  using Run = Pack<bf16, kVector>;
  static __device__ __forceinline__ Run load(const bf16* at) {
    if constexpr (kVector == 8) {
      return load_vector_streaming<Run>(at);
    } else {
      return load_vector<Run>(at);
    }
  }
};

/// Adds the sums of a block and, with more than one split, those of all splits, and stores them.
/// sums[i][o]: the i-th addend of output `o` of the block. partials[tile][split][o].
/// counters[tile]: zero before and after.
template <int kThreads, int kAddends, int kOutputs>
__device__ __forceinline__ void store_sums(const float (&sums)[kAddends][kOutputs], const Gemv& p,
                                           std::int64_t tile, int split, int splits,
                                           float* partials, unsigned* counters) {
  constexpr int kParts = kThreads > kOutputs ? kThreads / kOutputs : 1;  // threads per output
  static_assert(kParts == 1 ? kOutputs % kThreads == 0 : kThreads % kOutputs == 0);
  __shared__ float parts[kParts][kOutputs];
  __shared__ int is_last;
  const std::int64_t first = tile * kOutputs;
  const auto store = [&](int o, float sum) {
    if (first + o < p.outputs) p.y[(first + o) * p.y_step] = __float2bfloat16_rn(sum);
  };
  const int thread = static_cast<int>(threadIdx.x);
  float* of_tile = partials + tile * splits * kOutputs;
  __syncthreads();
  for (int o = thread; o < kOutputs; o += kThreads) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kAddends; ++i) sum += sums[i][o];
    if (splits == 1) {
      store(o, sum);
    } else {
      of_tile[split * kOutputs + o] = sum;
    }
  }
  if (splits == 1) return;

  __threadfence();
  __syncthreads();
  if (thread == 0) {
    is_last = atomicAdd(&counters[tile], 1u) == static_cast<unsigned>(splits - 1);
    __threadfence();
  }
  __syncthreads();
  if (is_last == 0) return;
  // In a fixed order, whichever block is last: the same bits in every run. The other blocks have
  // ended, so the latency of these loads is the time: 16 are in flight per thread and output.
  constexpr int kPerThread = cookbook::ceil_div(kOutputs, kThreads);
  const int o = thread % kOutputs, part = thread / kOutputs;
  float sums_of_splits[kPerThread] = {};
#pragma unroll 16
  for (int s = part; s < splits; s += kParts) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      sums_of_splits[i] += __ldcg(&of_tile[s * kOutputs + o + i * kThreads]);
    }
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) parts[part][o + i * kThreads] = sums_of_splits[i];
  __syncthreads();
  for (int o = thread; o < kOutputs; o += kThreads) {
    float sum = 0;
#pragma unroll
    for (int part = 0; part < kParts; ++part) sum += parts[part][o];
    store(o, sum);
  }
  if (thread == 0) counters[tile] = 0;  // for the next run
}

/// W's stored rows are outputs: a block computes kRows of them, its threads side by side in a row.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    gemv_of_rows(Gemv p, Splits splits, float* partials, unsigned* counters) {
  using Run = typename C::Run;
  constexpr int kSteps = C::kLoads / C::kRows, kStride = C::kThreads * C::kVector;
  __shared__ float of_warps[C::kWarps][C::kRows];
  const std::int64_t tile = blockIdx.x / splits.count;
  const int split = static_cast<int>(blockIdx.x % splits.count);
  const std::int64_t begin = split * splits.depth, end = min(begin + splits.depth, p.depth);
  const bf16* rows[C::kRows];
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {  // rows past the last are read as the last, and not stored
    rows[r] = p.w + min(tile * C::kRows + r, p.outputs - 1) * p.pitch;
  }
  float sums[C::kRows] = {};
  const auto add = [&](auto steps, std::int64_t k) {
    Run w[steps.value][C::kRows], x[steps.value];
#pragma unroll
    for (int s = 0; s < steps.value; ++s) {
#pragma unroll
      for (int r = 0; r < C::kRows; ++r) w[s][r] = C::load(rows[r] + k + s * kStride);
      if constexpr (C::kVector == 1) {
        x[s][0] = p.x[(k + s * kStride) * p.x_step];
      } else {
        x[s] = load_vector<Run>(p.x + k + s * kStride);
      }
    }
#pragma unroll
    for (int s = 0; s < steps.value; ++s) {
#pragma unroll
      for (int r = 0; r < C::kRows; ++r) {
#pragma unroll
        for (int i = 0; i < C::kVector; ++i) {
          sums[r] += __bfloat162float(w[s][r][i]) * __bfloat162float(x[s][i]);
        }
      }
    }
  };
  std::int64_t k = begin + static_cast<int>(threadIdx.x) * C::kVector;
#pragma unroll 1
  for (; k + (kSteps - 1) * kStride < end; k += kSteps * kStride) {
    add(std::integral_constant<int, kSteps>{}, k);
  }
#pragma unroll 1
  for (; k < end; k += kStride) add(std::integral_constant<int, 1>{}, k);
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    const float sum = warp_sum(sums[r]);
    if (lane_idx() == 0) of_warps[warp_idx()][r] = sum;
  }
  store_sums<C::kThreads>(of_warps, p, tile, split, splits.count, partials, counters);
}

/// W's columns are outputs: a warp reads kCols of them in every fourth stored row.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    gemv_of_columns(Gemv p, Splits splits, float* partials, unsigned* counters) {
  using Run = typename C::Run;
  __shared__ __align__(16) float of_warps[C::kWarps][C::kCols];
  const std::int64_t tile = blockIdx.x / splits.count;
  const int split = static_cast<int>(blockIdx.x % splits.count);
  const int col = lane_idx() * C::kVector;
  const bool has_outputs = tile * C::kCols + col < p.outputs;
  const std::int64_t begin = split * splits.depth;
  const std::int64_t end = has_outputs ? min(begin + splits.depth, p.depth) : begin;
  const bf16* w = p.w + tile * C::kCols + col;
  float sums[C::kVector] = {};
  const auto add = [&](auto steps, std::int64_t k) {
    Run terms[steps.value];
    float x[steps.value];
#pragma unroll
    for (int s = 0; s < steps.value; ++s) {
      terms[s] = C::load(w + (k + s * C::kWarps) * p.pitch);
      x[s] = __bfloat162float(p.x[(k + s * C::kWarps) * p.x_step]);
    }
#pragma unroll
    for (int s = 0; s < steps.value; ++s) {
#pragma unroll
      for (int i = 0; i < C::kVector; ++i) sums[i] += __bfloat162float(terms[s][i]) * x[s];
    }
  };
  std::int64_t k = begin + warp_idx();
#pragma unroll 1
  for (; k + (C::kLoads - 1) * C::kWarps < end; k += C::kLoads * C::kWarps) {
    add(std::integral_constant<int, C::kLoads>{}, k);
  }
#pragma unroll 1
  for (; k < end; k += C::kWarps) add(std::integral_constant<int, 1>{}, k);
  if constexpr (C::kVector == 8) {  // two-way bank conflicts instead of eight-way
    store_vector(&of_warps[warp_idx()][col], floatx4{sums[0], sums[1], sums[2], sums[3]});
    store_vector(&of_warps[warp_idx()][col + 4], floatx4{sums[4], sums[5], sums[6], sums[7]});
  } else {
    of_warps[warp_idx()][col] = sums[0];
  }
  store_sums<C::kThreads>(of_warps, p, tile, split, splits.count, partials, counters);
}

/// Whether lanes load eight elements of W at a time, and of x where they do that too.
inline bool loads_vectors(const Gemv& g) {
  return loads_vectors_of_w(g) && (!g.w_rows_are_outputs || loads_vectors_of_x(g));
}

/// Launches the plan of a GEMM with one row or one column.
template <class C>
void launch_gemv(const Plan& plan, Stream stream) {
  const int outputs = plan.gemv.w_rows_are_outputs ? C::kRows : C::kCols;
  const std::int64_t blocks =
      cookbook::ceil_div<std::int64_t>(plan.gemv.outputs, outputs) * plan.splits.count;
  launch(plan.gemv.w_rows_are_outputs ? gemv_of_rows<C> : gemv_of_columns<C>,
         {dim3(static_cast<unsigned>(blocks)), dim3(C::kThreads)}, stream, plan.gemv, plan.splits,
         plan.sums.as<float>(), plan.flags.as<unsigned>());
}

/// The plan of a GEMM with one row or one column, as W x.
template <class C>
Plan prepare_gemv(const Problem& p, const Buffers& at) {
  Plan plan{TmaPlan{p, at}};
  plan.launch_product = launch_gemv<C>;
  plan.gemv = gemv_of(p, at);
  const bool rows = plan.gemv.w_rows_are_outputs;
  const std::int64_t tiles =
      cookbook::ceil_div<std::int64_t>(plan.gemv.outputs, rows ? C::kRows : C::kCols);
  plan.splits = splits_of(tiles, p.k, rows ? C::kRowRound : C::kColRound,
                          std::int64_t{C::kBlocksPerSm} * device_info().sm_count);
  if (plan.splits.count > 1) {
    const auto blocks = static_cast<size_t>(tiles * plan.splits.count);
    plan.sums = DeviceMemory(blocks * (rows ? C::kRows : C::kCols) * sizeof(float), "partial sums");
    plan.flags = DeviceMemory(static_cast<size_t>(tiles) * sizeof(unsigned), "counters");
    plan.flags.fill(0);
  }
  return plan;
}

}  // namespace cookbook::gemm::any_shape
