// SPDX-License-Identifier: MIT
// The library call for the same task: cudaMemcpyAsync, device to device.
#include <cuda_runtime.h>

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook {

namespace {

struct CudaMemcpy : coalescing::Level {
  static constexpr LevelText text{
      .name = "cudaMemcpy",
      .changed = "cudaMemcpyAsync, device to device",
      .expect = "the driver's own copy kernel",
  };

  static void run(const Plan& plan, Stream stream) {
    const std::size_t bytes = static_cast<std::size_t>(plan.problem.n) * sizeof(float);
    const cudaError_t error = cudaMemcpyAsync(plan.buffers.out, plan.buffers.in, bytes,
                                              cudaMemcpyDeviceToDevice, stream.handle);
    if (error != cudaSuccess) throw LaunchError(cudaGetErrorString(error));
  }
};

}  // namespace

Libraries chapter_1_libraries() { return {{"copy", make_level<CudaMemcpy>()}}; }

}  // namespace cookbook
