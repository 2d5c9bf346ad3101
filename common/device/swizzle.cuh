// SPDX-License-Identifier: MIT
/// @file
/// The shared-memory swizzles that TMA writes and wgmma reads (PTX ISA, "Swizzling modes").
#pragma once

#include <cstdint>

#include "common/device/cuda.cuh"

namespace cookbook {

/// Swizzle of a tile in shared memory. The number is the span: the bytes of one row within which
/// 16-byte chunks are permuted.
enum class Swizzle : uint32_t { none, b32, b64, b128 };

/// Bytes of a row that the swizzle permutes: 16 (none), 32, 64 or 128.
__host__ __device__ constexpr uint32_t swizzle_span_bytes(Swizzle swizzle) {
  return 16u << static_cast<uint32_t>(swizzle);
}

/// The address to which the swizzle moves the byte at `address` of an unswizzled tile. The chunk
/// index within the span (bits 4..6) is XORed with the index of the 128-byte row (bits 7..9).
/// `address` is a shared-memory address, or an offset from a point aligned to eight rows: 256, 512
/// or 1,024 bytes.
template <Swizzle kSwizzle>
__host__ __device__ constexpr uint32_t swizzle_address(uint32_t address) {
  constexpr uint32_t kMask = swizzle_span_bytes(kSwizzle) - 16;
  return address ^ ((address >> 3) & kMask);
}

}  // namespace cookbook
