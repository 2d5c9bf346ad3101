// SPDX-License-Identifier: MIT
// Level 1: one block per row: lanes read neighbouring elements and reduce through shared memory.
#pragma once

#include "chapters/09_online_softmax/partial.cuh"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/row_io.cuh"

namespace cookbook::softmax {

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    block_per_row_softmax(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                          Shape shape) {
  using T = typename C::T;
  const std::int64_t row = blockIdx.x;
  const int thread = threadIdx.x;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  __shared__ float shared[C::kThreads];

  float max = kLowest;
  // [quote block_per_row]
  for (int col = thread; col < shape.cols; col += C::kThreads) {  // coalesced
    max = fmaxf(max, as_float(in[col]));
  }
  shared[thread] = max;
  for (int half = C::kThreads / 2; half > 0; half /= 2) {
    __syncthreads();  // the previous step of the tree is complete
    if (thread < half) shared[thread] = fmaxf(shared[thread], shared[thread + half]);
  }
  // [end quote]
  __syncthreads();
  max = shared[0];
  __syncthreads();  // all threads have read the maximum before the sums overwrite it

  float sum = 0;
  for (int col = thread; col < shape.cols; col += C::kThreads) {
    sum += exponential(as_float(in[col]) - max);
  }
  shared[thread] = sum;
  for (int half = C::kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) shared[thread] += shared[thread + half];
  }
  __syncthreads();
  sum = shared[0];

  const float scale = 1 / sum;
  for (int col = thread; col < shape.cols; col += C::kThreads) {
    out[col] = rounded<T>(exponential(as_float(in[col]) - max) * scale);
  }
}

template <class T>
struct BlockPerRow : Level<T> {
  using Config = BlockConfig<T>;
  static constexpr LevelText text{
      .name = "block_per_row",
      .changed = "one block per row: coalesced, two reduction trees in shared memory",
      .expect = "an eighth of the sectors and 256 times the threads; still three reads of the row",
      .cost = "1 KB of shared memory, 19 barriers per row",
  };

  static Claims claims(const Problem<T>& p) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced(),
            global_loads("in").bytes(3 * pass_bytes<T>(p.shape)), shared_loads().conflict_free(),
            faster_than_previous(2)};
  }

  static void run(const PlanOf<T>& plan, Stream stream) {
    launch_rows<T>(block_per_row_softmax<Config>, plan, stream, Config::kThreads);
  }
};

}  // namespace cookbook::softmax
