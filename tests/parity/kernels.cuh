// SPDX-License-Identifier: MIT
// Small kernels with well-known memory traffic, the first thing that hardware and model must agree
// on. Where an operand matters, its load has a line of its own: counters are compared by line.
#pragma once

#include <cmath>

#include "common/device/cuda.cuh"

namespace cookbook::parity {

constexpr int kTile = 32;

template <class T>
__global__ void copy_coalesced(const T* __restrict__ in, T* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

/// Lanes read `stride` elements apart; n is a multiple of the stride.
template <class T>
__global__ void copy_strided(const T* __restrict__ in, T* __restrict__ out, int n, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T value = in[i * stride % n + i * stride / n];
  out[i] = value;
}

/// C = A B, n x n. kRowFromX: the lanes of a warp walk down a column of C, otherwise along a row.
template <bool kRowFromX>
__global__ void sgemm(const float* __restrict__ a, const float* __restrict__ b,
                      float* __restrict__ c, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int row = kRowFromX ? x : y;
  const int col = kRowFromX ? y : x;
  float sum = 0;
  for (int k = 0; k < n; ++k) {
    const float left = a[row * n + k];
    const float right = b[k * n + col];
    sum += left * right;
  }
  c[row * n + col] = sum;
}

template <int kSize>
__global__ void __launch_bounds__(kSize* kSize)
    sgemm_tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                int n) {
  __shared__ float a_tile[kSize][kSize];
  __shared__ float b_tile[kSize][kSize];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * kSize + ty, col = blockIdx.x * kSize + tx;
  float sum = 0;
  for (int first = 0; first < n; first += kSize) {
    const float left = a[row * n + first + tx];
    const float right = b[(first + ty) * n + col];
    a_tile[ty][tx] = left;
    b_tile[ty][tx] = right;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSize; ++k) {
      const float one_word = a_tile[ty][k];  // the same for all lanes: a broadcast
      const float one_row = b_tile[k][tx];
      sum += one_word * one_row;
    }
    __syncthreads();
  }
  c[row * n + col] = sum;
}

/// out = in transposed, n x n, through a tile whose rows are `kTile + kPad` words apart.
template <int kPad>
__global__ void transpose(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float tile[kTile][kTile + kPad];
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < kTile; y += blockDim.y) {
    const float value = in[(blockIdx.y * kTile + y) * n + blockIdx.x * kTile + x];
    tile[y][x] = value;
  }
  __syncthreads();
  for (int y = threadIdx.y; y < kTile; y += blockDim.y) {
    const float value = tile[x][y];
    out[(blockIdx.x * kTile + y) * n + blockIdx.y * kTile + x] = value;
  }
}

/// *out += the sum of n floats; kWarps warps per block.
template <int kWarps>
__global__ void reduce(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float partial[kWarps];
  const int lane_idx = threadIdx.x % 32, warp_idx = threadIdx.x / 32;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += in[i];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  if (lane_idx == 0) partial[warp_idx] = sum;
  __syncthreads();
  if (warp_idx != 0) return;
  sum = lane_idx < kWarps ? partial[lane_idx] : 0.0f;
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  if (lane_idx == 0) atomicAdd(out, sum);
}

/// Softmax of every row of (rows, cols), one warp per row: maximum and sum in a single pass.
template <class T>
__global__ void softmax_online(const T* __restrict__ in, T* __restrict__ out, int rows, int cols) {
  const int lane_idx = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  T running_max = -INFINITY, running_sum = 0;
  for (int col = lane_idx; col < cols; col += 32) {
    const T x = in[row * cols + col];
    const T next = fmaxf(running_max, x);
    running_sum = running_sum * expf(running_max - next) + expf(x - next);
    running_max = next;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const T other_max = __shfl_xor_sync(0xffffffffu, running_max, offset);
    const T other_sum = __shfl_xor_sync(0xffffffffu, running_sum, offset);
    const T next = fmaxf(running_max, other_max);
    running_sum = running_sum * expf(running_max - next) + other_sum * expf(other_max - next);
    running_max = next;
  }
  for (int col = lane_idx; col < cols; col += 32) {
    const T again = in[row * cols + col];
    out[row * cols + col] = expf(again - running_max) / running_sum;
  }
}

// ---- divergence --------------------------------------------------------------------------------
// Where lanes of a warp part and meet again. Every access is volatile, so that no compiler merges
// the two sides of a branch; n is a multiple of 64, and a thread has the elements i and i + n / 2.

/// One lane does more than the others, once before a loop and once in each of its steps.
__global__ void one_lane_ahead(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) out[n / 2 + i] = 1.0f;
  float sum = 0;
  for (int step = 0; step < 4; ++step) {
    sum += in[i];
    if (threadIdx.x % 32 == 5) {
      out[n / 2 + i] = sum;
    }
  }
  out[i] = sum;
}

__global__ void both_sides(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value;
  if (threadIdx.x % 2 == 0) {
    value = in[i];
  } else {
    value = 2.0f * in[n / 2 + i];
  }
  out[i] = value;
}

/// Lane l makes l % 4 steps.
__global__ void trip_counts(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
  for (int step = 0; step < static_cast<int>(threadIdx.x % 4); ++step) {
    sum += in[i + step * 32 % n];
  }
  out[i] = sum;
}

__global__ void nested(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  float value = 1.0f;
  if (lane < 16) {
    if (lane % 2 == 0) {
      value += in[i];
    }
    value *= in[n / 2 + i];
  }
  out[i] = value;
}

/// A quarter of the lanes returns, then half of the steps are skipped by half of the lanes.
__global__ void returns_and_continues(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 4 == 3) return;
  float sum = static_cast<float>(n);
  for (int step = 0; step < 4; ++step) {
    if ((threadIdx.x / 4 + static_cast<unsigned>(step)) % 2 == 0) continue;
    sum += in[i];
  }
  out[i] = sum;
}

/// Lane l leaves the loop in step l % 8.
__global__ void breaks(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
  for (int step = 0; step < 8; ++step) {
    if (step == static_cast<int>(threadIdx.x % 8)) break;
    sum += in[i];
  }
  out[i] = sum;
}

__device__ inline float first_that_fits(const volatile float* in, int i, int n) {
  if (threadIdx.x % 8 == 0) return 1.0f;
  const float first = in[i];
  if (threadIdx.x % 2 == 0) return first;
  return first * in[n / 2 + i];
}

/// The function is inlined and has three ways out.
__global__ void inlined_returns(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float value = first_that_fits(in, i, n);
  out[i] = value;
}

__global__ void four_cases(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = 0;
  switch (threadIdx.x % 4) {
    case 0: value = in[i]; break;
    case 1: value = 2.0f * in[n / 2 + i]; break;
    case 2: out[n / 2 + i] = 3.0f; break;
    default: break;
  }
  out[i] = value;
}

}  // namespace cookbook::parity
