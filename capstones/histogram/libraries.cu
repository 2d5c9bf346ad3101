// SPDX-License-Identifier: MIT
// needs: nvcc
// The library call for the same task: cub::DeviceHistogram.
#include <cub/device/device_histogram.cuh>

#include "problem.hpp"

namespace cookbook {

namespace {

struct CubDeviceHistogram : histogram::Level {
  static constexpr LevelText text{
      .name = "cub::DeviceHistogram",
      .changed = "HistogramEven: bins of width 1 from 0 on",
      .expect = "the library's own histograms in shared memory",
  };

  struct Plan {
    histogram::Problem problem;
    histogram::Buffers buffers;
    DeviceMemory workspace{};
  };

  static Support supports(const histogram::Problem& p, const DeviceInfo&) {
    return p.n > 0 && p.bins > 0 ? Support::yes() : Support::no("takes at least one key and bin");
  }

  static void histogram_even(void* workspace, std::size_t& bytes, const histogram::Problem& p,
                             const histogram::Buffers& at, cudaStream_t stream) {
    const auto bins = static_cast<std::uint32_t>(p.bins);
    const cudaError_t error = cub::DeviceHistogram::HistogramEven(
        workspace, bytes, at.keys, at.counts, static_cast<int>(bins) + 1, std::uint32_t{0}, bins,
        p.n, stream);
    if (error != cudaSuccess) throw LaunchError(cudaGetErrorString(error));
  }

  static Plan prepare(const histogram::Problem& problem, const histogram::Buffers& at) {
    std::size_t bytes = 0;
    histogram_even(nullptr, bytes, problem, at, nullptr);
    return {problem, at, DeviceMemory(bytes, "workspace")};
  }

  static void run(const Plan& plan, Stream stream) {
    std::size_t bytes = plan.workspace.bytes();
    histogram_even(plan.workspace.data(), bytes, plan.problem, plan.buffers, stream.handle);
  }
};

}  // namespace

Libraries capstone_libraries() {
  return {{"uniform", make_level<CubDeviceHistogram>()},
          {"skewed", make_level<CubDeviceHistogram>()}};
}

}  // namespace cookbook
