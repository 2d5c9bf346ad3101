// SPDX-License-Identifier: MIT
// Level 0: one thread per body. It reads all bodies from global memory.
#pragma once

#include "problem.hpp"

namespace cookbook::n_body {

struct NaiveConfig {
  static constexpr int kThreads = 128;  // bodies per block
  static constexpr int kRun = 64;       // terms that are summed separately
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    naive(const float* __restrict__ bodies, float* __restrict__ accelerations, Shape shape) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (i >= shape.n) return;
  const float* x = bodies;
  const float* y = x + shape.bodies_pitch;
  const float* z = y + shape.bodies_pitch;
  const float* mass = z + shape.bodies_pitch;
  float sum_x = 0, sum_y = 0, sum_z = 0;
  // Runs of limited length: in one long sum, many similar terms would be rounded in the same
  // direction.
  for (std::int64_t begin = 0; begin < shape.n; begin += C::kRun) {
    const std::int64_t end = begin + C::kRun < shape.n ? begin + C::kRun : shape.n;
    float run_x = 0, run_y = 0, run_z = 0;
    for (std::int64_t j = begin; j < end; ++j) {
      const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];  // [body]
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + kSoftening);
      const float scale = mass[j] * inverse * inverse * inverse;  // [body]
      run_x += dx * scale, run_y += dy * scale, run_z += dz * scale;
    }
    sum_x += run_x, sum_y += run_y, sum_z += run_z;
  }
  float* to = accelerations + i * shape.accelerations_pitch;
  to[0] = sum_x, to[1] = sum_y, to[2] = sum_z;
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: one thread per body, all bodies from global memory",
      .expect = "four loads per pair and 12 instructions on the FP32 pipe: the loads are the limit",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    // All lanes of a warp want the same body.
    return {global_loads("bodies").on("body").sectors_per_request(1, Relation::at_least),
            global_stores("accelerations").sectors_per_request(12)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const auto blocks = static_cast<unsigned>(ceil_div(shape.n, std::int64_t{Config::kThreads}));
    launch(naive<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.bodies,
           plan.buffers.accelerations, shape);
  }
};

}  // namespace cookbook::n_body
