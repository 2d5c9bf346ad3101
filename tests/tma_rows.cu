// SPDX-License-Identifier: MIT
#include "tests/tma_rows.hpp"

#include "common/backend/backend.hpp"
#include "common/device/tma.cuh"

namespace cookbook::tests {
namespace {

__global__ void store_box_kernel(const __grid_constant__ TensorMap map) {
  float* box = dynamic_shared<float>();
  for (int i = static_cast<int>(threadIdx.x); i < kBoxRows * kBoxCols; i += 32) {
    box[i] = static_cast<float>(i + 1);
  }
  fence_proxy_async();
  __syncwarp();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, box, 0, 0);
    tma_store_commit();
    tma_store_wait<0>();
  }
}

}  // namespace

std::vector<float> store_box(int width) {
  std::vector<float> result(kBoxRows * kBoxCols);
  DeviceMemory out(result.size() * sizeof(float), "out");
  out.fill(0);
  TensorMapSpec spec;
  spec.dtype = TensorType::f32;
  spec.base = out.data();
  spec.extents = {static_cast<std::uint64_t>(width), kBoxRows};
  spec.strides_bytes = {kBoxCols * sizeof(float)};
  spec.box = {kBoxCols, kBoxRows};
  launch(store_box_kernel, {dim3(1), dim3(32), kBoxRows * kBoxCols * sizeof(float)}, Stream{},
         make_tensor_map(spec));
  out.copy_to_host(result.data(), result.size() * sizeof(float));
  return result;
}

}  // namespace cookbook::tests
