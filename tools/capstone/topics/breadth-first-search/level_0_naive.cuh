// SPDX-License-Identifier: MIT
// Level 0: every step looks at every vertex. One kernel marks the targets of those found in the
// step before; a second one gives the marked vertices their distance, if they have none.
#pragma once

#include "problem.hpp"

namespace cookbook::bfs {

struct NaiveConfig {
  static constexpr int kThreads = 256;  // vertices per block
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    start(std::int32_t* __restrict__ distances, std::int32_t* __restrict__ marks,
          std::int64_t vertices) {
  const std::int64_t v = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (v >= vertices) return;
  distances[v] = v == 0 ? 0 : -1;
  marks[v] = 0;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    mark(const std::int32_t* __restrict__ offsets, const std::int32_t* __restrict__ targets,
         const std::int32_t* __restrict__ distances, std::int32_t* marks, std::int64_t vertices,
         std::int32_t step) {
  const std::int64_t v = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (v >= vertices || distances[v] != step - 1) return;  // [distance]
  // Several threads may mark one vertex, so the store is an atomic one.
  for (std::int32_t e = offsets[v]; e < offsets[v + 1]; ++e) atomicExch(&marks[targets[e]], 1);
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    settle(std::int32_t* __restrict__ distances, std::int32_t* __restrict__ marks,
           std::int64_t vertices, std::int32_t step) {
  const std::int64_t v = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (v >= vertices || marks[v] == 0) return;
  marks[v] = 0;
  if (distances[v] < 0) distances[v] = step;
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: two kernels per step, each with one thread per vertex",
      .expect =
          "every step reads all distances, however few vertices it finds; a vertex with many "
          "edges keeps one lane busy and 31 waiting",
      .cost = "a mark per vertex, two launches per step",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory marks{};
  };

  static Claims claims(const Problem& p) {
    const double all = 4.0 * static_cast<double>(p.vertices) * static_cast<double>(p.steps);
    return {global_loads("distances").on("distance").bytes(all),
            global_loads("distances").on("distance").coalesced(),
            global_atomics("marks").bytes(4.0 * static_cast<double>(p.edges), Relation::at_most)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const auto bytes = static_cast<std::size_t>(problem.vertices + 1) * sizeof(std::int32_t);
    return {problem, buffers, DeviceMemory(bytes, "marks")};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, at, memory] = plan;
    auto* marks = memory.as<std::int32_t>();
    const LaunchConfig each{
        dim3(static_cast<unsigned>(ceil_div(problem.vertices, std::int64_t{Config::kThreads}))),
        dim3(Config::kThreads)};
    launch(start<Config>, each, stream, at.distances, marks, problem.vertices);
    for (std::int32_t step = 1; step <= problem.steps; ++step) {
      launch(mark<Config>, each, stream, at.offsets, at.targets, at.distances, marks,
             problem.vertices, step);
      launch(settle<Config>, each, stream, at.distances, marks, problem.vertices, step);
    }
  }
};

}  // namespace cookbook::bfs
