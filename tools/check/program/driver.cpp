// SPDX-License-Identifier: MIT
// Tensor maps by the driver API.
#include <stdexcept>
#include <string>

#include "common/backend/simt/units/tensor_map_tag.hpp"
#include "common/backend/tensor_map.hpp"
#include "tools/check/program/include/cuda.h"

using cookbook::TensorType;

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* extents, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  constexpr TensorType kTypes[] = {
      TensorType::u8,  TensorType::u16, TensorType::u32, TensorType::s32, TensorType::u64,
      TensorType::s64, TensorType::f16, TensorType::f32, TensorType::f64, TensorType::bf16};
  if (map == nullptr || rank < 1 || rank > 5 || type > CU_TENSOR_MAP_DATA_TYPE_BFLOAT16) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool has_wide_atoms = swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B;
  bool is_modelled = interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
                     fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE &&
                     (swizzle <= CU_TENSOR_MAP_SWIZZLE_128B || has_wide_atoms);
  for (cuuint32_t i = 0; i < rank; ++i) is_modelled &= element_strides[i] == 1;
  if (!is_modelled) {
    fprintf(stderr,
            "cuTensorMapEncodeTiled: only tiles without interleave, with element strides "
            "of 1, filled with zeros, swizzled in units of 16 or 32 bytes, are modelled\n");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const auto span =
      has_wide_atoms ? cookbook::Swizzle::b128 : static_cast<cookbook::Swizzle>(swizzle);
  try {
    *map = cookbook::make_tensor_map({kTypes[type],
                                      address,
                                      {extents, extents + rank},
                                      {strides, strides + rank - 1},
                                      {box, box + rank},
                                      span,
                                      static_cast<cookbook::L2Promotion>(promotion)});
    if (has_wide_atoms) map->swizzle = cookbook::simt::kSwizzleOf32Bytes;
  } catch (const std::invalid_argument& broken) {
    fprintf(stderr, "cuTensorMapEncodeTiled: %s\n", broken.what());
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS               ? "no error"
          : error == CUDA_ERROR_INVALID_VALUE ? "invalid argument"
                                              : "operation not supported";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS               ? "CUDA_SUCCESS"
          : error == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
                                              : "CUDA_ERROR_NOT_SUPPORTED";
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  const bool is_known = std::string(symbol) == "cuTensorMapEncodeTiled";
  *function = is_known ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  if (result != nullptr) {
    *result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return cudaSuccess;
}
