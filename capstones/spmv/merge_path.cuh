// SPDX-License-Identifier: MIT
// The merge path of a CSR matrix, and what a block does along its part of it.
//
// Going through the matrix takes a step per nonzero and a step per end of a row, so there are
// rows + nonzeros steps, and each costs about the same. Row r ends at step offsets[r + 1] + r.
// Hence after `step` steps, the rows that have ended are those with offsets[r + 1] + r < step.
#pragma once

#include "common/device/warp.cuh"
#include "problem.hpp"

namespace cookbook::spmv {

struct MergeConfig {
  static constexpr int kThreads = 128;  // few warps wait for one another at a barrier
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kPerThread = 15;  // nonzeros; odd, so that the lanes use all banks
  static constexpr int kTile = kThreads * kPerThread;  // steps per tile
  static constexpr int kBlocksPerSm = 8;
};

/// The sum of a row that has not ended yet.
struct Carry {
  int row;
  float sum;
};

/// Rows that have ended after `step` steps, at least `low` and at most `high`. All threads of the
/// block must call: each looks at one row, and each round leaves one 128th of the range.
template <class C>
__device__ __forceinline__ int rows_ended(const std::int32_t* __restrict__ offsets, int step,
                                          int low, int high) {
  while (low < high) {
    const int stride = ceil_div(high - low, C::kThreads);
    const int row = low + static_cast<int>(threadIdx.x) * stride;
    // Row ends ascend, so the threads that see an ended row are the first ones.
    const bool has_ended = row < high && offsets[row + 1] + row < step;
    const int ended = __syncthreads_count(has_ended);
    if (ended == 0) return low;
    // The last of them is row low + (ended - 1) stride; the first that has not is within a stride.
    high = min(high, low + ended * stride);
    low += (ended - 1) * stride + 1;
  }
  return low;
}

/// What the threads before have of this thread's first row: their sum back to the last row start,
/// or to the start of the tile and the `carry` into it. `sum` is what this thread has after its
/// last row start, `has_start` whether it has one. `carry` becomes what the tile has of its last
/// row. `sums` and `flags`: shared memory for kWarps each. All threads of the block must call.
template <class C>
__device__ __forceinline__ float sum_before(float sum, bool has_start, float& carry, float* sums,
                                            int* flags) {
  const int lane = lane_idx();
  int flag = has_start ? 1 : 0;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const float other = __shfl_up_sync(kFullWarp, sum, distance);
    const int other_flag = __shfl_up_sync(kFullWarp, flag, distance);
    if (lane >= distance) {
      if (flag == 0) sum = other + sum;
      flag |= other_flag;
    }
  }
  if (lane == kWarpSize - 1) sums[warp_idx()] = sum, flags[warp_idx()] = flag;
  float before = __shfl_up_sync(kFullWarp, sum, 1);
  const int before_flag = __shfl_up_sync(kFullWarp, flag, 1);
  __syncthreads();
  float warps_before = carry;  // what precedes this warp
#pragma unroll
  for (int w = 0; w < C::kWarps; ++w) {
    if (w == warp_idx()) warps_before = carry;
    carry = flags[w] != 0 ? sums[w] : carry + sums[w];
  }
  if (lane == 0) return warps_before;
  return before_flag != 0 ? before : warps_before + before;
}

/// Goes along the block's part of the path tile by tile. Writes y for each row that ends there, and
/// the sum of the row that does not. What blocks before this one have of the block's first row is
/// missing in y: add_carries() adds it.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    merge_spmv(const float* __restrict__ values, const std::int32_t* __restrict__ columns,
               const std::int32_t* __restrict__ offsets, const float* __restrict__ x,
               float* __restrict__ y, Carry* carries, int rows, int nonzeros) {
  __shared__ float sums[C::kTile];          // products, then their sums from the start of the row
  __shared__ int ends[C::kTile];            // how many nonzeros of the tile precede each row end
  __shared__ unsigned starts[C::kThreads];  // bit k: nonzero k of the thread is a row's first
  __shared__ float before[C::kThreads];     // what earlier threads have of a thread's first row
  __shared__ float warp_sums[C::kWarps];
  __shared__ int warp_flags[C::kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t steps = std::int64_t{rows} + nonzeros;
  int step = static_cast<int>(steps * blockIdx.x / gridDim.x);
  const int last = static_cast<int>(steps * (blockIdx.x + 1) / gridDim.x);
  int row = rows_ended<C>(offsets, step, 0, rows);
  int row_end = rows_ended<C>(offsets, min(step + C::kTile, last), row, min(rows, row + C::kTile));
  float carry = 0;
  while (step < last) {
    const int tile_steps = min(C::kTile, last - step);
    const int tile_rows = row_end - row;
    const int count = tile_steps - tile_rows;  // nonzeros
    const int first = step - row;              // of them
    const int left = count - thread;           // of them from this thread's first on
    int column[C::kPerThread];
    float value[C::kPerThread];
#pragma unroll
    for (int k = 0; k < C::kPerThread; ++k) {
      const int i = k * C::kThreads;
      if (i < left) column[k] = columns[first + thread + i], value[k] = values[first + thread + i];
    }
    starts[thread] = 0;
    // While these loads are in flight: where the next tile ends.
    const int next = step + tile_steps;
    const int next_end =
        rows_ended<C>(offsets, min(next + C::kTile, last), row_end, min(rows, row_end + C::kTile));
    __syncthreads();
    for (int r = thread; r < tile_rows; r += C::kThreads) {
      const int end = offsets[row + r + 1] - first;
      ends[r] = end;
      if (end < count) atomicOr(&starts[end / C::kPerThread], 1u << end % C::kPerThread);
    }
#pragma unroll
    for (int k = 0; k < C::kPerThread; ++k) {
      const int i = k * C::kThreads;
      sums[thread + i] = i < left ? value[k] * x[column[k]] : 0.0f;
    }
    __syncthreads();

    const unsigned mine = starts[thread];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < C::kPerThread; ++k) {
      float& at = sums[thread * C::kPerThread + k];
      sum = (mine >> k & 1) != 0 ? at : sum + at;
      at = sum;
    }
    const float tile_carry = carry;
    before[thread] = sum_before<C>(sum, mine != 0, carry, warp_sums, warp_flags);
    __syncthreads();
    for (int r = thread; r < tile_rows; r += C::kThreads) {
      const int end = ends[r];
      const int start = r == 0 ? -1 : ends[r - 1];  // row 0 may have begun before the tile
      const int owner = (end - 1) / C::kPerThread;  // of the row's last nonzero
      float result = r == 0 ? tile_carry : 0.0f;    // of a row without nonzeros in the tile
      if (end > max(start, 0)) {
        result = sums[end - 1];
        if (start < owner * C::kPerThread) result = before[owner] + result;
      }
      y[row + r] = result;
    }
    if (tile_rows > 0 && ends[tile_rows - 1] == count)
      carry = 0;      // the next tile begins with a row
    __syncthreads();  // the next tile overwrites `ends`, `sums` and `before`
    step = next, row = row_end, row_end = next_end;
  }
  if (thread == 0) carries[blockIdx.x] = {row, carry};
}

/// Adds what blocks have of rows that end in later blocks. The first block with a part of a row
/// adds all of them, in order, so the result is the same in every run. One block.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    add_carries(const Carry* __restrict__ carries, float* __restrict__ y, int blocks, int rows) {
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += C::kThreads) {
    const int row = carries[b].row;
    if (row >= rows || (b > 0 && carries[b - 1].row == row)) continue;
    float sum = 0;
    for (int other = b; other < blocks && carries[other].row == row; ++other) {
      sum += carries[other].sum;  // [part]
    }
    y[row] += sum;
  }
}

/// A plan with a carry per block. The grid fills the GPU once, or is smaller for few steps.
template <class C>
struct MergePlan {
  Problem problem;
  Buffers buffers;
  int blocks = 0;
  DeviceMemory carries{};

  static MergePlan make(const Problem& problem, const Buffers& buffers) {
    const std::int64_t resident = std::int64_t{device_info().sm_count} * C::kBlocksPerSm;
    const std::int64_t tiles = ceil_div(problem.rows + problem.nonzeros, std::int64_t{C::kTile});
    const auto blocks = static_cast<int>(std::min(resident, tiles));
    const auto carries = static_cast<std::size_t>(std::max(blocks, 1)) * sizeof(Carry);
    return {problem, buffers, blocks, DeviceMemory(carries, "carries")};
  }

  /// Launches merge_spmv().
  void start(Stream stream) const {
    launch(merge_spmv<C>, {dim3(static_cast<unsigned>(blocks)), dim3(C::kThreads)}, stream,
           buffers.values, buffers.columns, buffers.offsets, buffers.x, buffers.y,
           carries.as<Carry>(), problem.rows, problem.nonzeros);
  }
};

}  // namespace cookbook::spmv
