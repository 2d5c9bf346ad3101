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

#include "chapters/05_tensor_cores/problem.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"

namespace cookbook::gemm::any_shape {

/// y = W x. W is the operand with more than one row and column.
struct Gemv {
  const bf16* w = nullptr;
  std::int64_t pitch = 0;  // elements from one stored row of W to the next
  const bf16* x = nullptr;
  std::int64_t x_step = 0;  // elements from one to the next
  bf16* y = nullptr;
  std::int64_t y_step = 0;
  std::int64_t outputs = 0, depth = 0;  // depth: terms of each sum
  bool w_rows_are_outputs = false;      // or else the stored rows of W lie along the sums
};

/// How the terms of each sum are divided among blocks.
struct Splits {
  int count = 1;
  std::int64_t depth = 0;  // of each but the last, which may have less
};

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
  // In a fixed order, whichever block is last: the same bits in every run.
  for (int i = thread; i < kParts * kOutputs; i += kThreads) {
    const int o = i % kOutputs, part = i / kOutputs;
    float sum = 0;
#pragma unroll 8
    for (int s = part; s < splits; s += kParts) sum += __ldcg(&of_tile[s * kOutputs + o]);
    parts[part][o] = sum;
  }
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

/// A GEMM with one row or one column of C, none of whose extents is zero, as W x.
inline Gemv gemv_of(const Problem& p, const Buffers& at) {
  Gemv g;
  g.depth = p.k;
  g.y = at.c;
  if (p.n == 1) {  // A is W, B is x
    g.w = at.a, g.pitch = p.lda, g.w_rows_are_outputs = !p.a_transposed;
    g.x = at.b, g.x_step = p.b_transposed ? 1 : p.ldb;
    g.y_step = p.ldc;
    g.outputs = p.m;
  } else {  // B is W, A is x
    g.w = at.b, g.pitch = p.ldb, g.w_rows_are_outputs = p.b_transposed;
    g.x = at.a, g.x_step = p.a_transposed ? p.lda : 1;
    g.y_step = 1;
    g.outputs = p.n;
  }
  return g;
}

/// Whether lanes may load eight elements of W, and of x where they do that too, at a time.
inline bool loads_vectors(const Gemv& g) {
  if (!rows_are_16_byte_aligned(g.w, g.pitch)) return false;
  if (!g.w_rows_are_outputs) return g.outputs % 8 == 0;
  return g.depth % 8 == 0 && g.x_step == 1 && rows_are_16_byte_aligned(g.x, 0);
}

/// As many splits as fill the device with resident blocks once, each of whole rounds.
inline Splits splits_of(std::int64_t tiles, std::int64_t depth, int round, int blocks_per_sm,
                        int sm_count) {
  const std::int64_t rounds = cookbook::ceil_div<std::int64_t>(depth, round);
  const std::int64_t wanted =
      std::min(rounds, cookbook::ceil_div(std::int64_t{blocks_per_sm} * sm_count, tiles));
  const std::int64_t each = cookbook::ceil_div(rounds, wanted);
  return {static_cast<int>(cookbook::ceil_div(rounds, each)), each * round};
}

}  // namespace cookbook::gemm::any_shape
