// SPDX-License-Identifier: MIT
// Level 0: ten passes over global memory, one thread per butterfly (Stockham's order: no pass has
// to reverse bits).
#pragma once

#include "problem.hpp"

namespace cookbook::fft {

struct NaiveConfig {
  static constexpr int kThreads = 256;  // butterflies per block
};

/// One pass. After it, groups of 2 * done elements are transformed; before it, groups of `done`.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    naive_pass(const float* __restrict__ in, std::int64_t in_pitch, const float* __restrict__ roots,
               float* __restrict__ out, std::int64_t out_pitch, std::int64_t rows, int done) {
  const std::int64_t butterfly = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t row = butterfly / (kPoints / 2);
  const int j = static_cast<int>(butterfly % (kPoints / 2));
  if (row >= rows) return;
  const float* first = in + row * in_pitch + 2 * j;
  const float* second = first + kPoints;
  const int k = j % done;
  const float* root = roots + 2 * k * (kPoints / 2 / done);
  const float a_re = first[0], a_im = first[1];    // [element]
  const float b_re = second[0], b_im = second[1];  // [element]
  const float w_re = root[0], w_im = root[1];
  const float t_re = b_re * w_re - b_im * w_im, t_im = b_re * w_im + b_im * w_re;
  float* to = out + row * out_pitch + 2 * ((j - k) * 2 + k);
  to[0] = a_re + t_re, to[1] = a_im + t_im;
  to[2 * done] = a_re - t_re, to[2 * done + 1] = a_im - t_im;
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: a kernel launch per pass, one thread per butterfly",
      .expect =
          "each of ten passes moves as much as the whole problem: at most a tenth of the roof",
      .cost = "a second array, ten launches",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory other{};  // passes alternate between this and `out`
  };

  static Claims claims(const Problem& p) {
    const double floats = 2.0 * kPoints * static_cast<double>(p.shape.rows);
    return {global_loads().on("element").bytes(4 * floats * kPasses),
            // Real and imaginary parts are loaded one after the other: half of each sector is used.
            global_loads().on("element").sectors_over_ideal(2)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const auto floats = static_cast<std::size_t>(problem.shape.rows + 1) * 2 * kPoints;
    return {problem, buffers, DeviceMemory(floats * sizeof(float), "other")};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const std::int64_t butterflies = shape.rows * (kPoints / 2);
    const auto blocks =
        static_cast<unsigned>(ceil_div(butterflies, std::int64_t{Config::kThreads}));
    const float* from = plan.buffers.in;
    std::int64_t from_pitch = shape.in_pitch;
    for (int pass = 0; pass < kPasses; ++pass) {
      const bool to_output = pass % 2 == 1;  // so is the last
      float* to = to_output ? plan.buffers.out : plan.other.as<float>();
      const std::int64_t to_pitch = to_output ? shape.out_pitch : 2 * kPoints;
      launch(naive_pass<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, from, from_pitch,
             plan.buffers.roots, to, to_pitch, shape.rows, 1 << pass);
      from = to, from_pitch = to_pitch;
    }
  }
};

}  // namespace cookbook::fft
