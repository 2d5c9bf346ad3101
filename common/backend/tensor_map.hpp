// SPDX-License-Identifier: MIT
/// @file
/// Tensor maps: what the TMA unit knows about a tensor in global memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/device/swizzle.cuh"

#if defined(COOKBOOK_SIMT)
/// Stands in for CUtensorMap: the same name (a kernel's holds it), size and alignment, opaque to
/// kernels.
struct alignas(64) CUtensorMap_st {
  uint64_t tag;         // tells an initialised map from any 128 bytes
  uint64_t base;        // address of element (0, 0, ...)
  uint64_t extents[5];  // elements, innermost first; 1 beyond the rank
  uint64_t strides[4];  // bytes, from dimension 1 on; 0 beyond the rank
  uint16_t box[5];      // elements; 1 beyond the rank
  uint8_t rank;
  uint8_t element_bytes;
  uint8_t type;     // TensorType
  uint8_t swizzle;  // Swizzle
};
static_assert(sizeof(CUtensorMap_st) == 128 && alignof(CUtensorMap_st) == 64, "as CUDA's");
#else
#include <cuda.h>  // needs no library to declare its type
#endif

namespace cookbook {

using TensorMap = CUtensorMap_st;

/// Element types of a tensor map. FP8 travels as u8.
enum class TensorType : uint8_t { u8, u16, u32, s32, u64, s64, f16, bf16, f32, f64 };

/// Bytes of one element.
size_t tensor_type_bytes(TensorType type);

/// Granularity with which TMA loads fetch into L2.
enum class L2Promotion : uint8_t { none, b64, b128, b256 };

/// A box of a tensor, tiled mode; out-of-bounds elements are zero-filled. Lists start with the
/// innermost of 1 to 5 dimensions.
struct TensorMapSpec {
  TensorType dtype = TensorType::bf16;
  const void* base = nullptr;           ///< device address, 16-byte aligned
  std::vector<uint64_t> extents;        ///< elements, each 1 .. 2^32
  std::vector<uint64_t> strides_bytes;  ///< rank - 1, multiples of 16; the innermost is dense
  std::vector<uint32_t> box;            ///< elements, each 1 .. 256
  Swizzle swizzle = Swizzle::none;      ///< inner box at most the swizzle's span
  L2Promotion l2_promotion = L2Promotion::b128;
};

/// Makes the map; the same rules on both backends (CUDA Driver API, "cuTensorMapEncodeTiled").
/// Throws std::invalid_argument naming the rule broken, and std::runtime_error where the driver has
/// no tensor maps. A kernel takes the result as `const __grid_constant__ TensorMap`.
TensorMap make_tensor_map(const TensorMapSpec& spec);

namespace detail {

/// Throws std::invalid_argument if `spec` breaks a rule.
void check_tensor_map_spec(const TensorMapSpec& spec);

/// The backend's part: encodes a spec that was checked.
TensorMap encode_tensor_map(const TensorMapSpec& spec);

}  // namespace detail

}  // namespace cookbook
