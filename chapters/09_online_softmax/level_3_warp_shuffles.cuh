// SPDX-License-Identifier: MIT
// Level 3: lanes of a warp merge through shuffles; shared memory only merges the warps.
#pragma once

#include "chapters/09_online_softmax/partial.cuh"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/row_io.cuh"

namespace cookbook::softmax {

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    warp_shuffles_softmax(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                          Shape shape) {
  using T = typename C::T;
  constexpr int kWarps = C::kThreads / kWarpSize;
  const std::int64_t row = blockIdx.x;
  const int thread = threadIdx.x;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  __shared__ uint2 shared[kWarps];  // (max, sum) of each warp

  MaxSum part;
  for (int col = thread; col < shape.cols; col += C::kThreads) add(part, as_float(in[col]));
  // [quote warp_shuffles]
  part = merge_lanes(part);
  if (lane_idx() == 0) store_vector(&shared[warp_idx()], part);
  __syncthreads();  // every warp's pair is in the table: the only barrier
  part = merge_lanes<kWarps>(load_vector<MaxSum>(&shared[lane_idx() % kWarps]));
  // [end quote]

  const float scale = 1 / part.sum;
  for (int col = thread; col < shape.cols; col += C::kThreads) {
    out[col] = rounded<T>(exponential(as_float(in[col]) - part.max) * scale);
  }
}

template <class T>
struct WarpShuffles : Level<T> {
  using Config = BlockConfig<T>;
  static constexpr LevelText text{
      .name = "warp_shuffles",
      .changed = "reductions by shuffle; one barrier per row",
      .expect =
          "8 stores to shared memory per row instead of 20, one barrier instead of nine: matters "
          "to short rows only",
      .cost = "64 bytes of shared memory",
  };

  static Claims claims(const Problem<T>& p) {
    return {global_loads("in").coalesced(),
            global_stores("out").coalesced(),
            global_loads("in").bytes(2 * pass_bytes<T>(p.shape)),
            shared_stores().requests(8 * static_cast<double>(p.shape.rows)),
            shared_loads().conflict_free(),
            at_least_previous(0.95, "a row of this length hides its barriers")};
  }

  static void run(const PlanOf<T>& plan, Stream stream) {
    launch_rows<T>(warp_shuffles_softmax<Config>, plan, stream, Config::kThreads);
  }
};

}  // namespace cookbook::softmax
