// SPDX-License-Identifier: MIT
/// @file
/// A GEMM with one row or one column of C: a matrix times a vector. Each weight is used once, so
/// only reading counts: no tensor core, no shared memory for operands. Every SM reads: the sum over
/// K is divided among the threads of a block and, if outputs are few, among blocks; the block that
/// ends last adds their sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "library/gemm/plan.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"

namespace cookbook::gemm::any_shape {

/// kRows: W's stored rows are outputs, otherwise its columns are. kVectorSize: elements of W that a
/// lane loads at a time; 8, or 1 where rows do not begin on 16-byte boundaries. kLanesOfRow:
/// neighbouring threads that read a stored row together; the block's other threads read other rows.
template <bool kRows, int kVectorSize, int kBlockThreads, int kLanesOfRow>
struct GemvConfig {
  static constexpr bool kRowsAreOutputs = kRows;
  static constexpr int kVector = kVectorSize;
  static constexpr int kThreads = kBlockThreads, kWarps = kThreads / kWarpSize;
  static constexpr int kBlocksPerSm = 1024 / kThreads;  // resident
  static constexpr int kLanes = kLanesOfRow;
  static constexpr int kSide = kThreads / kLanes;  // stored rows that a block reads side by side
  static constexpr int kSpan = kLanes * kVector;   // elements of each that it reads at a time
  static constexpr int kLoads = 8;                 // in flight per lane
  /// Outputs that share a lane's load of x: four with two loads each, or eight where a row ends
  /// after one or two loads.
  static constexpr int kRowsOfLane = kLanes == kThreads ? 4 : 8;
  static constexpr int kSteps = kLoads / kRowsOfLane;
  static constexpr int kOutputs = kRows ? kSide * kRowsOfLane : kSpan;  // of a block
  static constexpr int kRound =
      kRows ? kSpan * kSteps : kSide * kLoads;  // terms it reads at a time

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

/// W's stored rows are outputs: a block computes kOutputs of them.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    gemv_of_rows(Gemv p, Splits splits, float* partials, unsigned* counters) {
  using Run = typename C::Run;
  constexpr int kAddends = cookbook::ceil_div(C::kLanes, kWarpSize);  // warps that read a row
  __shared__ float of_warps[kAddends][C::kOutputs];
  const std::int64_t tile = blockIdx.x / splits.count;
  const int split = static_cast<int>(blockIdx.x % splits.count);
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / C::kLanes, lane = thread % C::kLanes;  // of the block, of its lanes
  const std::int64_t begin = split * splits.depth, end = min(begin + splits.depth, p.depth);
  const bf16* rows[C::kRowsOfLane];
#pragma unroll
  for (int r = 0; r < C::kRowsOfLane;
       ++r) {  // rows past the last are read as the last, and not stored
    const std::int64_t output = tile * C::kOutputs + r * C::kSide + row;
    rows[r] = p.w + min(output, p.outputs - 1) * p.pitch;
  }
  float sums[C::kRowsOfLane] = {};
  const auto add = [&](auto steps, std::int64_t k) {
    Run w[steps.value][C::kRowsOfLane], x[steps.value];
#pragma unroll
    for (int s = 0; s < steps.value; ++s) {
#pragma unroll
      for (int r = 0; r < C::kRowsOfLane; ++r) w[s][r] = C::load(rows[r] + k + s * C::kSpan);
      if constexpr (C::kVector == 1) {
        x[s][0] = p.x[(k + s * C::kSpan) * p.x_step];
      } else {
        x[s] = load_vector<Run>(p.x + k + s * C::kSpan);
      }
    }
#pragma unroll
    for (int s = 0; s < steps.value; ++s) {
#pragma unroll
      for (int r = 0; r < C::kRowsOfLane; ++r) {
#pragma unroll
        for (int i = 0; i < C::kVector; ++i) {
          sums[r] += __bfloat162float(w[s][r][i]) * __bfloat162float(x[s][i]);
        }
      }
    }
  };
  std::int64_t k = begin + lane * C::kVector;
#pragma unroll 1
  for (; k + (C::kSteps - 1) * C::kSpan < end; k += C::kSteps * C::kSpan) {
    add(std::integral_constant<int, C::kSteps>{}, k);
  }
  if constexpr (C::kSteps > 1) {
#pragma unroll 1
    for (; k < end; k += C::kSpan) add(std::integral_constant<int, 1>{}, k);
  }
#pragma unroll
  for (int r = 0; r < C::kRowsOfLane; ++r) {
    const float sum = warp_sum<std::min(C::kLanes, kWarpSize)>(sums[r]);
    if (lane % kWarpSize == 0) of_warps[lane / kWarpSize][r * C::kSide + row] = sum;
  }
  store_sums<C::kThreads>(of_warps, p, tile, split, splits.count, partials, counters);
}

/// W's columns are outputs: a block computes kOutputs of them. Its threads read kSide stored
/// rows at a time.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    gemv_of_columns(Gemv p, Splits splits, float* partials, unsigned* counters) {
  using Run = typename C::Run;
  __shared__ __align__(16) float of_warps[C::kWarps][C::kOutputs];
  const std::int64_t tile = blockIdx.x / splits.count;
  const int split = static_cast<int>(blockIdx.x % splits.count);
  const int thread = static_cast<int>(threadIdx.x), col = thread % C::kLanes * C::kVector;
  const bool has_outputs = tile * C::kOutputs + col < p.outputs;
  const std::int64_t begin = split * splits.depth;
  const std::int64_t end = has_outputs ? min(begin + splits.depth, p.depth) : begin;
  const bf16* w = p.w + tile * C::kOutputs + col;
  float sums[C::kVector] = {};
  std::int64_t k = begin + thread / C::kLanes;
  const auto has = [&](int loads) { return k + (loads - 1) * C::kSide < end; };
  const auto add = [&](auto loads) {
    Run terms[loads.value];
    float x[loads.value];
#pragma unroll
    for (int s = 0; s < loads.value; ++s) {
      terms[s] = C::load(w + (k + s * C::kSide) * p.pitch);
      x[s] = __bfloat162float(p.x[(k + s * C::kSide) * p.x_step]);
    }
#pragma unroll
    for (int s = 0; s < loads.value; ++s) {
#pragma unroll
      for (int i = 0; i < C::kVector; ++i) sums[i] += __bfloat162float(terms[s][i]) * x[s];
    }
    k += loads.value * C::kSide;
  };
#pragma unroll 1
  while (has(C::kLoads)) add(std::integral_constant<int, C::kLoads>{});
  if (has(4)) add(std::integral_constant<int, 4>{});  // the rest in as few round trips
  if (has(2)) add(std::integral_constant<int, 2>{});
  if (has(1)) add(std::integral_constant<int, 1>{});
#pragma unroll
  for (int i = 0; i < C::kVector; ++i) {  // over the rows that the warp reads side by side
#pragma unroll
    for (int lanes = C::kLanes; lanes < kWarpSize; lanes *= 2) {
      sums[i] += __shfl_xor_sync(kFullWarp, sums[i], lanes);
    }
  }
  float* of_warp = of_warps[warp_idx()];
  if (lane_idx() < C::kLanes) {
    if constexpr (C::kVector == 8) {  // two-way bank conflicts instead of eight-way
      store_vector(of_warp + col, floatx4{sums[0], sums[1], sums[2], sums[3]});
      store_vector(of_warp + col + 4, floatx4{sums[4], sums[5], sums[6], sums[7]});
    } else {
      of_warp[col] = sums[0];
    }
  }
  store_sums<C::kThreads>(of_warps, p, tile, split, splits.count, partials, counters);
}

/// W's rows are outputs: the shorter they are, the fewer threads have something to read in one.
template <int kVector>
using LongRows = GemvConfig<true, kVector, 128, 128>;
using MediumRows = GemvConfig<true, 8, 256, 32>;
template <int kVector>
using ShortRows = GemvConfig<true, kVector, 128, kVector == 8 ? 8 : 32>;
inline constexpr std::int64_t kLongRow = 1536, kMediumRow = 512;

/// W's columns are outputs. With few of them a block per SM reads 64, which are one line of each
/// row, and as many rows as all its threads can. So no or few partial sums go to other blocks.
using FewColumns = GemvConfig<false, 8, 1024, 8>;
using ManyColumns = GemvConfig<false, 8, 512, 16>;
template <int kVector>
using ShortColumns = GemvConfig<false, kVector, 256, 32>;
inline constexpr std::int64_t kLongColumn = 1024;
inline bool has_few_columns(const Gemv& g, int sm_count) {
  return g.outputs <= std::int64_t{FewColumns::kOutputs} * sm_count;
}

/// Launches the plan of a GEMM with one row or one column.
template <class C>
void launch_gemv(const Plan& plan, Stream stream) {
  const LaunchConfig config{dim3(static_cast<unsigned>(plan.blocks)), dim3(C::kThreads)};
  const auto start = [&](auto* kernel) {
    launch(kernel, config, stream, plan.gemv, plan.splits, plan.sums.as<float>(),
           plan.flags.as<unsigned>());
  };
  if constexpr (C::kRowsAreOutputs) {
    start(gemv_of_rows<C>);
  } else {
    start(gemv_of_columns<C>);
  }
}

template <class C>
Plan prepare_gemv_in(const Problem& p, const Buffers& at, const Gemv& g) {
  Plan plan{TmaPlan{p, at}};
  plan.start = launch_gemv<C>;
  plan.gemv = g;
  const auto tiles = cookbook::ceil_div<std::int64_t>(g.outputs, C::kOutputs);
  plan.splits =
      splits_of(tiles, p.k, C::kRound, std::int64_t{C::kBlocksPerSm} * device_info().sm_count);
  plan.blocks = static_cast<int>(tiles * plan.splits.count);
  if (plan.splits.count > 1) {
    const auto blocks = static_cast<size_t>(plan.blocks);
    plan.sums = DeviceMemory(blocks * C::kOutputs * sizeof(float), "partial sums");
    plan.flags = DeviceMemory(static_cast<size_t>(tiles) * sizeof(unsigned), "counters");
    plan.flags.fill(0);
  }
  return plan;
}

/// kVector: elements of W per load.
template <int kVector>
Plan prepare_gemv_with(const Problem& p, const Buffers& at, const Gemv& g) {
  if (g.w_rows_are_outputs) {
    if (g.depth < kMediumRow) return prepare_gemv_in<ShortRows<kVector>>(p, at, g);
    if constexpr (kVector == 8) {
      if (g.depth < kLongRow) return prepare_gemv_in<MediumRows>(p, at, g);
    }
    return prepare_gemv_in<LongRows<kVector>>(p, at, g);
  }
  if constexpr (kVector == 8) {
    if (has_few_columns(g, device_info().sm_count)) return prepare_gemv_in<FewColumns>(p, at, g);
    if (g.depth >= kLongColumn) return prepare_gemv_in<ManyColumns>(p, at, g);
  }
  return prepare_gemv_in<ShortColumns<kVector>>(p, at, g);
}

/// The plan of a GEMM with one row or one column, as W x.
inline Plan prepare_gemv(const Problem& p, const Buffers& at) {
  const Gemv g = gemv_of(p, at);
  return loads_vectors(g) ? prepare_gemv_with<8>(p, at, g) : prepare_gemv_with<1>(p, at, g);
}

}  // namespace cookbook::gemm::any_shape
