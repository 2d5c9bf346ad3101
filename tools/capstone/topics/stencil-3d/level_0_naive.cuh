// SPDX-License-Identifier: MIT
// Level 0: one thread per point, in the order of memory. It reads its seven points.
#pragma once

#include "problem.hpp"

namespace cookbook::stencil {

struct NaiveConfig {
  static constexpr int kThreads = 256;  // points per block
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    naive(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const std::int64_t point = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (point >= shape.nz * shape.ny * shape.nx) return;
  const std::int64_t x = point % shape.nx, row = point / shape.nx;
  const std::int64_t y = row % shape.ny, z = row / shape.ny;
  const float* at = in + row * shape.in_pitch + x;
  const std::int64_t plane = shape.ny * shape.in_pitch;
  const float centre = *at;  // [centre]
  float sum = 0;
  if (z > 0) sum += at[-plane];                     // [z]
  if (z + 1 < shape.nz) sum += at[plane];           // [z]
  if (y > 0) sum += at[-shape.in_pitch];            // [y]
  if (y + 1 < shape.ny) sum += at[shape.in_pitch];  // [y]
  if (x > 0) sum += at[-1];                         // [x]
  if (x + 1 < shape.nx) sum += at[1];               // [x]
  out[row * shape.out_pitch + x] = centre + kRate * (sum - 6 * centre);
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: one thread per point, seven loads",
      .expect =
          "seven loads of a warp per store: L1 and L2 catch the neighbours, so device memory "
          "moves less than that",
      .cost = "two divisions per point",
  };

  static Claims claims(const Problem& p) {
    const auto& [nz, ny, nx, in_pitch, out_pitch] = p.shape;
    const auto points = [](std::int64_t z, std::int64_t y, std::int64_t x) {
      return static_cast<double>(z * y * x);
    };
    return {global_loads("in").on("centre").coalesced(),
            global_loads("in").on("z").bytes(8 * points(nz - 1, ny, nx)),
            global_loads("in").on("y").bytes(8 * points(nz, ny - 1, nx)),
            global_loads("in").on("x").bytes(8 * points(nz, ny, nx - 1)),
            global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const std::int64_t points = shape.nz * shape.ny * shape.nx;
    const auto blocks = static_cast<unsigned>(ceil_div(points, std::int64_t{Config::kThreads}));
    launch(naive<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, shape);
  }
};

}  // namespace cookbook::stencil
