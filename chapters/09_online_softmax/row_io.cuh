// SPDX-License-Identifier: MIT
// Rows of fp32 or bf16 in memory, fp32 in registers: one element or 16 bytes per access.
#pragma once

#include <type_traits>

#include "common/device/cuda.cuh"
#include "common/device/math.cuh"
#include "common/device/vector.cuh"

namespace cookbook::softmax {

template <class T>
__device__ __forceinline__ float as_float(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <class T>
__device__ __forceinline__ T rounded(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return from_float<T>(value);
  }
}

/// Elements of T in a 16-byte access.
template <class T>
constexpr int kPackOf = 16 / static_cast<int>(sizeof(T));

/// Loads kCount elements as floats in one access; kCount is 1, or kPackOf<T> on a 16-byte boundary.
template <class T, int kCount>
__device__ __forceinline__ void load_pack(float (&x)[kCount], const T* from) {
  if constexpr (kCount == 1) {
    x[0] = as_float(*from);
  } else {
    const auto pack = load_vector<Pack<T, kCount>>(from);
#pragma unroll
    for (int j = 0; j < kCount; ++j) x[j] = as_float(pack[j]);
  }
}

/// The same for data that is read once: it allocates no line in L1.
template <class T, int kCount>
__device__ __forceinline__ void load_pack_streaming(float (&x)[kCount], const T* from) {
  if constexpr (kCount == 1) {
    x[0] = as_float(__ldg(from));
  } else {
    const auto pack = load_vector_streaming<Pack<T, kCount>>(from);
#pragma unroll
    for (int j = 0; j < kCount; ++j) x[j] = as_float(pack[j]);
  }
}

/// Rounds kCount floats to T and stores them in one access.
template <class T, int kCount>
__device__ __forceinline__ void store_pack(T* to, const float (&x)[kCount]) {
  if constexpr (std::is_same_v<T, float> || kCount == 1) {
    Pack<T, kCount> pack;
#pragma unroll
    for (int j = 0; j < kCount; ++j) pack[j] = rounded<T>(x[j]);
    store_vector(to, pack);
  } else {
    Pack<uint32_t, kCount / 2> pack;
#pragma unroll
    for (int j = 0; j < kCount / 2; ++j) pack[j] = pack_pair<T>(x[2 * j], x[2 * j + 1]);
    store_vector(to, pack);
  }
}

}  // namespace cookbook::softmax
