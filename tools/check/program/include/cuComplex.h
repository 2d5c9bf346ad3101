// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "cuda_runtime.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define COOKBOOK_COMPLEX(T, Complex, F, MAKE)                                 \
  __forceinline__ T cuCreal##F(Complex z) { return z.x; }                     \
  __forceinline__ T cuCimag##F(Complex z) { return z.y; }                     \
  __forceinline__ Complex MAKE(T x, T y) { return Complex{x, y}; }            \
  __forceinline__ Complex cuConj##F(Complex z) { return Complex{z.x, -z.y}; } \
  __forceinline__ Complex cuCadd##F(Complex a, Complex b) {                   \
    return Complex{a.x + b.x, a.y + b.y};                                     \
  }                                                                           \
  __forceinline__ Complex cuCsub##F(Complex a, Complex b) {                   \
    return Complex{a.x - b.x, a.y - b.y};                                     \
  }                                                                           \
  __forceinline__ Complex cuCmul##F(Complex a, Complex b) {                   \
    return Complex{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};             \
  }                                                                           \
  /* Scaled, as in CUDA: |b|^2 would overflow earlier. */                     \
  __forceinline__ Complex cuCdiv##F(Complex a, Complex b) {                   \
    const T scale = 1 / (std::fabs(b.x) + std::fabs(b.y));                    \
    const T x = b.x * scale, y = b.y * scale, by = scale / (x * x + y * y);   \
    return Complex{(a.x * x + a.y * y) * by, (a.y * x - a.x * y) * by};       \
  }                                                                           \
  __forceinline__ T cuCabs##F(Complex z) { return std::hypot(z.x, z.y); }     \
  __forceinline__ Complex cuCfma##F(Complex a, Complex b, Complex c) {        \
    return cuCadd##F(cuCmul##F(a, b), c);                                     \
  }
COOKBOOK_COMPLEX(float, cuFloatComplex, f, make_cuFloatComplex)
COOKBOOK_COMPLEX(double, cuDoubleComplex, , make_cuDoubleComplex)
#undef COOKBOOK_COMPLEX
__forceinline__ cuComplex make_cuComplex(float x, float y) { return cuComplex{x, y}; }
__forceinline__ cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) {
  return cuDoubleComplex{z.x, z.y};
}
__forceinline__ cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
  return cuFloatComplex{static_cast<float>(z.x), static_cast<float>(z.y)};
}
