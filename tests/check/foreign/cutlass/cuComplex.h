// SPDX-License-Identifier: MIT
// What CUTLASS's headers need besides, of CUDA and of libcu++ (foreign_kernels.py).
#pragma once
#include <cuda.h>
#include <cuda_fp16.h>

#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cuda {
namespace std {
using namespace ::std;
}
}  // namespace cuda

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;
inline cuFloatComplex make_cuFloatComplex(float x, float y) { return {x, y}; }
inline cuDoubleComplex make_cuDoubleComplex(double x, double y) { return {x, y}; }
inline float cuCrealf(cuFloatComplex a) { return a.x; }
inline float cuCimagf(cuFloatComplex a) { return a.y; }
inline double cuCreal(cuDoubleComplex a) { return a.x; }
inline double cuCimag(cuDoubleComplex a) { return a.y; }
inline __half2 tanh(__half2 a) {
  return __half2(__half(::std::tanh(float(a.x))), __half(::std::tanh(float(a.y))));
}
inline void __brkpt() { __trap(); }

#define CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 CUtensorMapDataType(11)
#define CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B CUtensorMapDataType(13)
#define CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B CUtensorMapDataType(14)
#define CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B CUtensorMapDataType(15)
#define CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B CUtensorMapSwizzle(4)
#define CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B CUtensorMapSwizzle(6)
