// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include "common/backend/tensor_map.hpp"
#include "common/device/cuda.cuh"

namespace cookbook {

/// The element type of a map of T. FP8 travels as bytes.
template <class T>
TensorType tensor_type() {
  if (std::is_same_v<T, bf16>) return TensorType::bf16;
  if (std::is_same_v<T, half>) return TensorType::f16;
  if (std::is_same_v<T, float>) return TensorType::f32;
  return TensorType::u8;
}

/// A map of a dense (rows, columns) matrix at `base`.
template <class T>
TensorMap map_2d(const void* base, int rows, int columns, int box_rows, int box_columns,
                 Swizzle swizzle = Swizzle::none) {
  TensorMapSpec spec;
  spec.dtype = tensor_type<T>();
  spec.base = base;
  spec.extents = {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)};
  spec.strides_bytes = {columns * sizeof(T)};
  spec.box = {static_cast<uint32_t>(box_columns), static_cast<uint32_t>(box_rows)};
  spec.swizzle = swizzle;
  return make_tensor_map(spec);
}

}  // namespace cookbook
