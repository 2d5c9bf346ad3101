// SPDX-License-Identifier: MIT
#include "common/backend/tensor_map.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <stdexcept>
#include <string>

namespace cookbook::detail {
namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// Obtained from the driver at run time, so that programs start (and skip) where there is no
// libcuda.
EncodeTiled encode_tiled() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess || function == nullptr) {
    throw std::runtime_error("tensor map: this driver has no cuTensorMapEncodeTiled");
  }
  return reinterpret_cast<EncodeTiled>(function);
}

CUtensorMapDataType data_type(TensorType type) {
  switch (type) {
    case TensorType::u8: return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case TensorType::u16: return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case TensorType::u32: return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case TensorType::s32: return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case TensorType::u64: return CU_TENSOR_MAP_DATA_TYPE_UINT64;
    case TensorType::s64: return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case TensorType::f16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case TensorType::bf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case TensorType::f32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case TensorType::f64: return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
  }
  throw std::invalid_argument("tensor map: unknown element type");
}

CUtensorMapSwizzle swizzle_mode(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::b32: return CU_TENSOR_MAP_SWIZZLE_32B;
    case Swizzle::b64: return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::b128: return CU_TENSOR_MAP_SWIZZLE_128B;
    default: return CU_TENSOR_MAP_SWIZZLE_NONE;
  }
}

CUtensorMapL2promotion promotion(L2Promotion l2_promotion) {
  switch (l2_promotion) {
    case L2Promotion::b64: return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
    case L2Promotion::b128: return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    case L2Promotion::b256: return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    default: return CU_TENSOR_MAP_L2_PROMOTION_NONE;
  }
}

}  // namespace

TensorMap encode_tensor_map(const TensorMapSpec& spec) {
  static const EncodeTiled encode = encode_tiled();
  const size_t rank = spec.extents.size();
  std::array<cuuint64_t, 5> extents{};
  std::array<cuuint64_t, 5> strides{};
  std::array<cuuint32_t, 5> box{};
  std::array<cuuint32_t, 5> element_strides{};
  for (size_t i = 0; i < rank; ++i) {
    extents[i] = spec.extents[i];
    box[i] = spec.box[i];
    element_strides[i] = 1;
    if (i + 1 < rank) strides[i] = spec.strides_bytes[i];
  }
  TensorMap map;
  const CUresult result =
      encode(&map, data_type(spec.dtype), static_cast<cuuint32_t>(rank),
             const_cast<void*>(spec.base), extents.data(), strides.data(), box.data(),
             element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_mode(spec.swizzle),
             promotion(spec.l2_promotion), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw std::invalid_argument("tensor map: refused by the driver, CUresult " +
                                std::to_string(static_cast<int>(result)));
  }
  return map;
}

}  // namespace cookbook::detail
