// SPDX-License-Identifier: MIT
// In place of CUTLASS's, which forgets the kernel's type (foreign_kernels.py).
#pragma once
#include <utility>

#include "cutlass/cutlass.h"

namespace cutlass {

struct ClusterLaunchParams {
  dim3 grid_dims, block_dims, cluster_dims;
  int smem_size_in_bytes = 0;
  cudaStream_t cuda_stream = nullptr;
};

template <class... P, class... A>
Status launch_kernel_on_cluster(const ClusterLaunchParams& params, void (*kernel)(P...),
                                A&&... arguments) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {params.cluster_dims.x, params.cluster_dims.y, params.cluster_dims.z};
  cudaLaunchConfig_t config;
  config.gridDim = params.grid_dims;
  config.blockDim = params.block_dims;
  config.dynamicSmemBytes = static_cast<size_t>(params.smem_size_in_bytes);
  config.stream = params.cuda_stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...) == cudaSuccess ? Status::kSuccess
                                                                          : Status::kErrorInternal;
}

struct ClusterLauncher {
  template <class... P>
  static Status launch(dim3 grid, dim3 cluster, dim3 block, size_t shared_bytes,
                       cudaStream_t stream, void (*kernel)(P...), void** arguments) {
    const ClusterLaunchParams params{grid, block, cluster, static_cast<int>(shared_bytes), stream};
    return with(params, kernel, arguments, std::index_sequence_for<P...>());
  }

 private:
  template <class... P, size_t... I>
  static Status with(const ClusterLaunchParams& params, void (*kernel)(P...), void** arguments,
                     std::index_sequence<I...>) {
    return launch_kernel_on_cluster(params, kernel, *static_cast<P*>(arguments[I])...);
  }
};

}  // namespace cutlass
