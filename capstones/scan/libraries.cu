// SPDX-License-Identifier: MIT
// needs: nvcc
// The library call for the same task: cub::DeviceScan, which is a look-back as well.
#include <cub/device/device_scan.cuh>

#include "problem.hpp"

namespace cookbook {

namespace {

struct CubDeviceScan : scan::Level {
  static constexpr LevelText text{
      .name = "cub::DeviceScan",
      .changed = "InclusiveSum",
      .expect = "the library's own look-back",
  };

  struct Plan {
    scan::Problem problem;
    scan::Buffers buffers;
    DeviceMemory workspace{};
  };

  static void check(cudaError_t error) {
    if (error != cudaSuccess) throw LaunchError(cudaGetErrorString(error));
  }

  static Plan prepare(const scan::Problem& problem, const scan::Buffers& at) {
    std::size_t bytes = 0;
    check(cub::DeviceScan::InclusiveSum(nullptr, bytes, at.in, at.out, problem.n));
    return {problem, at, DeviceMemory(bytes, "workspace")};
  }

  static void run(const Plan& plan, Stream stream) {
    std::size_t bytes = plan.workspace.bytes();
    check(cub::DeviceScan::InclusiveSum(plan.workspace.data(), bytes, plan.buffers.in,
                                        plan.buffers.out, plan.problem.n, stream.handle));
  }
};

}  // namespace

Libraries capstone_libraries() { return {{"scan", make_level<CubDeviceScan>()}}; }

}  // namespace cookbook
