// SPDX-License-Identifier: MIT
// Sidebar: three ways to add an element to a running (max, sum): branch when the maximum grows,
// always compute both exponentials, or compute the one that is not 1 and select.
#pragma once

#include "chapters/09_online_softmax/partial.cuh"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/row_io.cuh"

namespace cookbook::softmax {

/// Most lanes take the short path; a warp takes the long one if any lane does.
struct BranchUpdate {
  static constexpr const char* name = "branch";
  static constexpr const char* changed = "start: rescale in a branch, only when the maximum grows";
  static constexpr const char* expect =
      "an exponential per element, and a second path through the warp while any lane's maximum "
      "still grows: about log(length) times a lane, early in the row";
  __device__ static void add(MaxSum& part, float x) {
    if (x > part.max) {
      part.sum *= exponential(part.max - x);
      part.max = x;
    }
    part.sum += exponential(x - part.max);
  }
};

struct BothUpdate {
  static constexpr const char* name = "both";
  static constexpr const char* changed = "no branch: always rescale, usually by 1";
  static constexpr const char* expect = "two exponentials per element, none of them divergent";
  __device__ static void add(MaxSum& part, float x) { softmax::add(part, x); }
};

/// One of e^(max - new max) and e^(x - new max) is 1; the other is e^-|x - max|.
struct SelectUpdate {
  static constexpr const char* name = "select";
  static constexpr const char* changed =
      "no branch, one exponential: e^-|x - max| serves both cases";
  static constexpr const char* expect = "half the exponentials of `both`, no divergence";
  __device__ static void add(MaxSum& part, float x) {
    const float e = exponential(-fabsf(x - part.max));
    const float one = fmaf(x, 0.0f, 1.0f);  // e^(x - x); NaN for +inf, as the definition says
    part.sum = x > part.max ? fmaf(part.sum, e, one) : part.sum + e;
    part.max = fmaxf(part.max, x);
  }
};

template <class UpdateValue>
struct UpdateConfig : BlockConfig<float> {
  using Update = UpdateValue;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    update_softmax(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  constexpr int kWarps = C::kThreads / kWarpSize;
  const std::int64_t row = blockIdx.x;
  const int thread = threadIdx.x;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  __shared__ uint2 shared[kWarps];  // (max, sum) of each warp

  MaxSum part;
  for (int col = thread; col < shape.cols; col += C::kThreads) C::Update::add(part, in[col]);
  part = merge_lanes(part);
  if (lane_idx() == 0) store_vector(&shared[warp_idx()], part);
  __syncthreads();  // every warp's pair is in the table
  part = merge_lanes<kWarps>(load_vector<MaxSum>(&shared[lane_idx() % kWarps]));

  const float scale = 1 / part.sum;
  for (int col = thread; col < shape.cols; col += C::kThreads) {
    out[col] = exponential(in[col] - part.max) * scale;
  }
}

template <class Update>
struct Updated : Level<float> {
  using Config = UpdateConfig<Update>;
  static constexpr LevelText text{
      .name = Update::name,
      .changed = Update::changed,
      .expect = Update::expect,
      .cost = "nothing",
  };

  static Claims claims(const Problem& p) {
    return {global_stores("out").coalesced(),
            global_loads("in").bytes(2 * pass_bytes<float>(p.shape))};
  }

  static void run(const Plan& plan, Stream stream) {
    launch_rows<float>(update_softmax<Config>, plan, stream, Config::kThreads);
  }
};

}  // namespace cookbook::softmax
