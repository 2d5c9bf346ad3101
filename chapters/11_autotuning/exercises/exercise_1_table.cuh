// SPDX-License-Identifier: MIT
// Exercise 11.1: read every cosine and sine once. The kernel below is right, but a thread rotates
// one pair of one head, so the tables are read once per head. Fill the hole: let a thread rotate
// the same pair of all heads of its token, with the cosine and the sine in registers. The claim:
// the loads of `cos` and `sin` request tokens * head_dim / 2 floats each, however many heads there
// are.
#pragma once

#include "chapters/11_autotuning/rope_problem.hpp"
#include "common/device/math.cuh"

namespace cookbook::rope {

struct TableConfig {
  static constexpr int kThreads = 128;

  /// The number of threads of a launch; it changes with your kernel.
  static std::int64_t threads(const Shape& shape) {
    return shape.tokens * shape.heads * shape.half;  // Your part, too.
  }
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    table_kernel(bf16* x, const float* __restrict__ cos, const float* __restrict__ sin,
                 Shape shape) {
  const std::int64_t index = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t row = index / shape.half, pair = index % shape.half;  // row: token and head
  const std::int64_t token = row / shape.heads;
  if (token >= shape.tokens) return;
  const float c = cos[token * shape.table_pitch + pair];
  const float s = sin[token * shape.table_pitch + pair];
  // Your part: all heads of `token`, not one.
  bf16* low = x + row * shape.pitch + pair;
  bf16* high = low + shape.half;
  const float a = to_float(*low), b = to_float(*high);
  *low = from_float<bf16>(a * c - b * s);
  *high = from_float<bf16>(b * c + a * s);
}

struct ExerciseTable : LevelOf<ProblemT<false>, BuffersT<false>> {
  using Config = TableConfig;
  static constexpr LevelText text{
      .name = "table",
      .changed = "a thread rotates a pair of every head",
      .expect = "the tables are read once, not once per head",
      .ladder = "rope",
  };

  static Claims claims(const ProblemT<false>& p) {
    const double table = 4.0 * static_cast<double>(p.shape.tokens * p.shape.half);
    return {global_loads("cos").bytes(table), global_loads("sin").bytes(table),
            global_loads("x").coalesced()};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    if (shape.pairs() == 0) return;
    const std::int64_t blocks = (Config::threads(shape) + Config::kThreads - 1) / Config::kThreads;
    launch(table_kernel<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)},
           stream, plan.buffers.out, plan.buffers.cos, plan.buffers.sin, shape);
  }
};

}  // namespace cookbook::rope
