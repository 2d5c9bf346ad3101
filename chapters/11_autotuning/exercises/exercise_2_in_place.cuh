// SPDX-License-Identifier: MIT
// Exercise 11.2: a search on separate input and output buffers chose this kernel with one thread
// per element, twice the threads of the others. In place it is wrong. Find and repair the planted
// bug: which thread reads what after which other has written it? The claim: right results and no
// race with input and output in one buffer.
#pragma once

#include "chapters/11_autotuning/rope_problem.hpp"
#include "common/device/math.cuh"

namespace cookbook::rope {

struct InPlaceConfig {
  static constexpr int kThreads = 128;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    in_place_kernel(const bf16* in, bf16* out, const float* __restrict__ cos,
                    const float* __restrict__ sin, Shape shape) {
  const std::int64_t dim = 2 * shape.half;
  const std::int64_t index = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t row = index / dim, col = index % dim, pair = col % shape.half;
  const std::int64_t token = row / shape.heads;
  if (token >= shape.tokens) return;
  const float c = cos[token * shape.table_pitch + pair];
  const float s = sin[token * shape.table_pitch + pair];
  const float low = to_float(in[row * shape.pitch + pair]);
  const float high = to_float(in[row * shape.pitch + pair + shape.half]);
  out[row * shape.pitch + col] =
      from_float<bf16>(col < shape.half ? low * c - high * s : high * c + low * s);
}

struct ExerciseInPlace : LevelOf<ProblemT<false>, BuffersT<false>> {
  using Config = InPlaceConfig;
  static constexpr LevelText text{
      .name = "in_place",
      .changed = "has a bug that a search on split buffers cannot see",
      .expect = "no element is written while another thread still needs it",
      .ladder = "rope",
  };

  static Claims claims(const ProblemT<false>&) {
    return {global_loads("x").coalesced(), global_stores("x").coalesced()};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    if (shape.pairs() == 0) return;
    const std::int64_t blocks = (2 * shape.pairs() + Config::kThreads - 1) / Config::kThreads;
    launch(in_place_kernel<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.out, plan.buffers.cos, plan.buffers.sin, shape);
  }
};

}  // namespace cookbook::rope
