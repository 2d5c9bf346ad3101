// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace cookbook::simt {

// In every TensorMap that make_tensor_map made.
inline constexpr uint64_t kTensorMapTag = 0x54656e736f724d70ull;

// In a map's `swizzle`, which has a Swizzle otherwise: that of 128 bytes, which moves 32 bytes as
// one. No kernel of the book uses it; ./run check knows it.
inline constexpr uint8_t kSwizzleOf32Bytes = 4;

}  // namespace cookbook::simt
