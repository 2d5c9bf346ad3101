// SPDX-License-Identifier: MIT
// Small kernels with well-known memory traffic, the first thing that hardware and model must agree
// on. Where an operand matters, its load has a line of its own: counters are compared by line.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/device/cuda.cuh"

namespace cookbook::parity {

constexpr int kTile = 32;

template <class T>
__global__ void copy_coalesced(const T* __restrict__ in, T* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

/// As aligned as its members. A union: g++ splits a variable that is a struct, as nvcc does.
template <class T, int kCount>
union Members {
  T value[kCount];
};

/// Copies structs, n of them, that lie in buffers of floats.
template <class T>
__global__ void copy_structs(const float* __restrict__ in, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T value = reinterpret_cast<const T*>(in)[i];
  reinterpret_cast<T*>(out)[i] = value;
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

// The same where the source joins and the control flow that a compiler makes of it may not: every
// join below is one of the source. Loops are not unrolled, because nvcc would share the last steps.

/// The lane's turn decides which of three ways out it takes.
__device__ inline float by_turn(const volatile float* in, int i, int n, unsigned turn) {
  if (turn % 4 == 0) return 1.0f;
  const float first = in[i];
  if (turn % 4 == 1) return first;
  const float second = in[n / 2 + i];
  return first * second;
}

__global__ void inlined_returns_in_loop(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {
    sum += in[i];
    sum += by_turn(in, i, n, threadIdx.x + step);
  }
  out[i] = sum;
}

/// Two turns, so that no compiler decides the second call by the first.
__global__ void inlined_returns_twice(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float one = by_turn(in, i, n, threadIdx.x);
  const float other = by_turn(in, i, n, threadIdx.x / 2);
  out[i] = one + other;
}

struct Ranked {
  float value;
  int step;  ///< Negative: the place is empty.
};

__device__ inline bool ranks_before(Ranked one, Ranked other) {
  if (other.step < 0) return true;
  if (one.value != other.value) return one.value > other.value;
  return one.step < other.step;
}

__device__ inline void insert_sorted(Ranked* best, Ranked one) {
#pragma unroll
  for (int place = 0; place < 4; ++place) {
    if (ranks_before(one, best[place])) {
#pragma unroll
      for (int i = 3; i > 0; --i) {
        if (i > place) best[i] = best[i - 1];
      }
      best[place] = one;
      return;
    }
  }
}

/// The four largest of 16 values per lane. Each lane returns from the insertion elsewhere.
__global__ void sorted_insertion(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  Ranked best[4];
#pragma unroll
  for (int place = 0; place < 4; ++place) best[place] = {0.0f, -1};
#pragma unroll 1
  for (int step = 0; step < 16; ++step) {
    const float value = in[(i * 7 + step * 64) % n];
    insert_sorted(best, {value, step});
  }
  out[i] = best[0].value;
  out[n / 2 + i] = best[3].value;
}

/// Lane l returns in step l % 8 of 16, out of both loops.
__device__ inline float until_step(const volatile float* in, int i, int last) {
  float sum = 0;
#pragma unroll 1
  for (int row = 0; row < 4; ++row) {
#pragma unroll 1
    for (int column = 0; column < 4; ++column) {
      if (row * 4 + column == last) return sum;
      sum += in[i];
    }
  }
  return 2.0f * sum;
}

__global__ void return_from_nested_loops(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
#pragma unroll 1
  for (int step = 0; step < 2; ++step) {
    sum += until_step(in, i, static_cast<int>(threadIdx.x % 8));
    sum += in[n / 2 + i];
  }
  out[i] = sum;
}

/// Unrolled by a template: a lane returns from call `turn`.
template <int kCalls>
__device__ inline float from_call(const volatile float* in, int i, int turn) {
  if (turn == kCalls) return 1.0f;
  const float first = in[i];
  if constexpr (kCalls > 0) {
    return first + from_call<kCalls - 1>(in, i, turn);
  } else {
    return first;
  }
}

__global__ void returns_from_templates(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
#pragma unroll 1
  for (int step = 0; step < 2; ++step) {
    sum += from_call<3>(in, i, static_cast<int>(threadIdx.x % 4) + step);
    sum += in[n / 2 + i];
  }
  out[i] = sum;
}

// The loaded values are far below 50 and above -50, which no compiler knows: a limit decides.

__global__ void and_condition(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const float limit = static_cast<float>(lane % 4 * 100 - 50);
  float value = 1.0f;
  if (lane % 2 == 0 && in[n / 2 + i] < limit) {
    value = in[i];
  }
  out[i] = value;
}

/// The branch is entered from two places. A GPU may run it once for each.
__global__ void or_condition(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const float limit = static_cast<float>(lane % 2 * 100 - 50);
  float value = 1.0f;
  if (lane % 4 == 0 || in[n / 2 + i] < limit) {
    value = in[i];
  } else {
    value = 2.0f * in[i];
  }
  out[i] = value;
}

__global__ void mixed_condition(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const float one = static_cast<float>(lane % 2 * 100 - 50);
  const float other = static_cast<float>(lane / 16 * 100 - 50);
  float value = 1.0f;
  if ((lane % 4 == 0 || in[i] < one) && in[n / 2 + i] < other) {
    value = in[i];
  }
  out[i] = value;
}

__global__ void ternary_chain(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int turn = threadIdx.x % 4;
  const float value = turn == 0 ? in[i] : turn == 1 ? 2.0f * in[n / 2 + i] : 3.0f + in[i];
  out[i] = value;
}

__global__ void else_ifs(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int turn = threadIdx.x % 8;
  float value = 1.0f;
  if (turn == 0) {
    value = in[i];
  } else if (turn < 3) {
    value = 2.0f * in[n / 2 + i];
  } else if (turn < 5) {
    out[n / 2 + i] = 3.0f;
  }
  out[i] = value;
}

/// Case 0 goes on into case 1, whose lanes wait for it. A GPU may run case 1 twice instead.
__global__ void falls_through(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = 1.0f;
  switch (threadIdx.x % 4) {
    case 0: value += in[i]; [[fallthrough]];
    case 1: value += in[n / 2 + i]; break;
    case 2: out[n / 2 + i] = 3.0f; break;
    default: return;
  }
  out[i] = value;
}

__global__ void continue_in_inner_loop(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
#pragma unroll 1
  for (int step = 0; step < 3; ++step) {
#pragma unroll 1
    for (unsigned inner = 0; inner < 3; ++inner) {
      if ((threadIdx.x + inner) % 2 == 0) continue;
      sum += in[i];
    }
    sum += in[n / 2 + i];
  }
  out[i] = sum;
}

__global__ void break_of_inner_loop(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
#pragma unroll 1
  for (unsigned step = 0; step < 3; ++step) {
#pragma unroll 1
    for (unsigned inner = 0; inner < 8; ++inner) {
      if (inner == (threadIdx.x + step) % 4) break;
      sum += in[i];
    }
    sum += in[n / 2 + i];
  }
  out[i] = sum;
}

/// In each step half of the lanes skip the inner loop; lane l makes l % 4 steps of it.
__global__ void skipped_inner_loop(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
#pragma unroll 1
  for (unsigned step = 0; step < 3; ++step) {
    sum += in[i];
    if ((threadIdx.x + step) % 2 == 0) {
#pragma unroll 1
      for (unsigned inner = 0; inner < threadIdx.x % 4; ++inner) {
        sum += in[n / 2 + i];
      }
    }
  }
  out[i] = sum;
}

__global__ void loop_after_loop(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
#pragma unroll 1
  for (unsigned step = 0; step < threadIdx.x % 4; ++step) {
    sum += in[i];
  }
#pragma unroll 1
  for (int step = 0; step < 4; ++step) {
    sum += in[n / 2 + i];
  }
  out[i] = sum;
}

__global__ void loops_on_both_sides(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
  if (threadIdx.x % 2 == 0) {
#pragma unroll 1
    for (unsigned step = 0; step < threadIdx.x % 4; ++step) {
      sum += in[i];
    }
  } else {
#pragma unroll 1
    for (unsigned step = 0; step < threadIdx.x % 4; ++step) {
      sum += in[n / 2 + i];
    }
  }
  out[i] = sum;
}

/// Lane l makes l % 4 steps, but at least one.
__global__ void do_while(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
  unsigned step = 0;
#pragma unroll 1
  do {
    sum += in[i];
  } while (++step < threadIdx.x % 4);
  out[i] = sum;
}

/// Lane l finds its limit passed after l % 4 steps.
__global__ void loading_condition(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n), limit = static_cast<float>(threadIdx.x % 4 * 100) - 50.0f;
#pragma unroll 1
  while (in[i] < limit) {
    sum += in[n / 2 + i];
    limit -= 100.0f;
  }
  out[i] = sum;
}

/// The loop has no condition, and two ways back to its head.
__global__ void endless_loop(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
  unsigned step = 0;
#pragma unroll 1
  while (true) {
    sum += in[i];
    if (step++ == threadIdx.x % 4) break;
    if ((threadIdx.x + step) % 2 == 0) {
      out[n / 2 + i] = sum;
    }
  }
  out[i] = sum;
}

__global__ void endless_loop_continues(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
  unsigned step = 0;
#pragma unroll 1
  for (;;) {
    sum += in[i];
    if (step++ == threadIdx.x % 4) break;
    if ((threadIdx.x + step) % 2 == 0) continue;
    sum += in[n / 2 + i];
  }
  out[i] = sum;
}

/// A compiler could copy the load between the two branches, whose conditions are the same.
__global__ void same_condition_twice(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = 1.0f;
  bool first = false;
  if (threadIdx.x % 2 == 0) {
    value = in[i];
    first = true;
  }
  value += in[n / 2 + i];
  if (first) {
    out[n / 2 + i] = value;
  }
  out[i] = value;
}

/// A search whose result is a flag, as where the loop's `break` would do.
__global__ void found_flag(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = static_cast<float>(n);
  bool found = false;
#pragma unroll 1
  for (unsigned step = 0; step < 8 && !found; ++step) {
    sum += in[i];
    if (step == threadIdx.x % 4) found = true;
  }
  sum += in[n / 2 + i];
  if (found) out[n / 2 + i] = sum;
  out[i] = sum;
}

/// Lane l starts in state l % 4; the upper half of a warp skips state 1 after state 0.
__global__ void states(const volatile float* in, volatile float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  float sum = static_cast<float>(n);
  int state = lane % 4;
#pragma unroll 1
  while (state != 3) {
    switch (state) {
      case 0: sum += in[i]; break;
      case 1: sum += in[n / 2 + i]; break;
      default: out[n / 2 + i] = sum; break;
    }
    state += state == 0 ? 1 + lane / 16 : 1;
  }
  out[i] = sum;
}

}  // namespace cookbook::parity
