// SPDX-License-Identifier: MIT
// Level 2: maximum and sum in one pass: a running sum is rescaled whenever the maximum grows.
#pragma once

#include "chapters/09_online_softmax/partial.cuh"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/row_io.cuh"

namespace cookbook::softmax {

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    online_softmax(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                   Shape shape) {
  using T = typename C::T;
  const std::int64_t row = blockIdx.x;
  const int thread = threadIdx.x;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  __shared__ uint2 shared[C::kThreads];  // (max, sum) of each thread

  MaxSum part;
  for (int col = thread; col < shape.cols; col += C::kThreads) add(part, as_float(in[col]));
  store_vector(&shared[thread], part);
  for (int half = C::kThreads / 2; half > 0; half /= 2) {
    __syncthreads();  // the previous step of the tree is complete
    if (thread < half) {
      part = merge(part, load_vector<MaxSum>(&shared[thread + half]));
      store_vector(&shared[thread], part);
    }
  }
  __syncthreads();
  part = load_vector<MaxSum>(&shared[0]);

  const float scale = 1 / part.sum;
  for (int col = thread; col < shape.cols; col += C::kThreads) {
    out[col] = rounded<T>(exponential(as_float(in[col]) - part.max) * scale);
  }
}

template <class T>
struct Online : Level<T> {
  using Config = BlockConfig<T>;
  static constexpr LevelText text{
      .name = "online",
      .changed = "maximum and sum in one pass, merged as pairs in one reduction tree",
      .expect =
          "two reads instead of three where rows exceed the caches; a second exponential per "
          "element",
      .cost = "2 KB of shared memory, 9 barriers per row",
  };

  static Claims claims(const Problem<T>& p) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced(),
            global_loads("in").bytes(2 * pass_bytes<T>(p.shape)), shared_loads().conflict_free(),
            at_least_previous(0.8, "the pass that it saves was served by L1 and L2")};
  }

  static void run(const PlanOf<T>& plan, Stream stream) {
    launch_rows<T>(online_softmax<Config>, plan, stream, Config::kThreads);
  }
};

}  // namespace cookbook::softmax
