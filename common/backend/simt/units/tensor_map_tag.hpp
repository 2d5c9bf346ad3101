// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace cookbook::simt {

// In every TensorMap that make_tensor_map made.
inline constexpr uint64_t kTensorMapTag = 0x54656e736f724d70ull;

}  // namespace cookbook::simt
