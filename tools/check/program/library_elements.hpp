// SPDX-License-Identifier: MIT
// Elements of the types that a parameter of a library call names.
#pragma once

#include "tools/check/program/include/cuda_bf16.h"
#include "tools/check/program/include/cuda_fp16.h"
#include "tools/check/program/include/library_types.h"
#include "tools/check/program/library_call.hpp"

namespace cookbook::simt::program {

inline size_t bytes_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I: return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_64F: return 8;
    default: return 4;
  }
}

/// Element `i`, as a Number.
template <class Number>
Number element(const void* data, cudaDataType type, size_t i) {
  switch (type) {
    case CUDA_R_8I: return static_cast<Number>(static_cast<const int8_t*>(data)[i]);
    case CUDA_R_16F: return static_cast<Number>(float(static_cast<const __half*>(data)[i]));
    case CUDA_R_16BF: return static_cast<Number>(float(static_cast<const __nv_bfloat16*>(data)[i]));
    case CUDA_R_64F: return static_cast<Number>(static_cast<const double*>(data)[i]);
    case CUDA_R_32I: return static_cast<Number>(static_cast<const int32_t*>(data)[i]);
    default: return static_cast<Number>(static_cast<const float*>(data)[i]);
  }
}

template <class Number>
void set_element(void* data, cudaDataType type, size_t i, Number value) {
  switch (type) {
    case CUDA_R_16F: static_cast<__half*>(data)[i] = __half(static_cast<float>(value)); break;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(data)[i] = __nv_bfloat16(static_cast<float>(value));
      break;
    case CUDA_R_64F: static_cast<double*>(data)[i] = static_cast<double>(value); break;
    case CUDA_R_32I: static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value); break;
    default: static_cast<float*>(data)[i] = static_cast<float>(value);
  }
}

/// A scalar on the host or in device memory.
template <class Number>
Number scalar(const void* at, cudaDataType type, LibraryCall& call) {
  if (is_in_device_memory(at) && !call.reads(at, bytes_of(type))) return 0;
  return element<Number>(at, type, 0);
}

}  // namespace cookbook::simt::program
