// SPDX-License-Identifier: MIT
// What a TMA store does with rows that are no multiple of 16 bytes, on either backend.
#pragma once

#include <vector>

namespace cookbook::tests {

inline constexpr int kBoxRows = 16, kBoxCols = 8;

/// Stores a box of kBoxRows x kBoxCols floats, of which each is its index + 1, to a tensor of
/// kBoxRows rows of `width` floats (1 to kBoxCols) with a pitch of kBoxCols. Returns the memory of
/// the tensor, which held zeros. Needs sm_90.
std::vector<float> store_box(int width);

}  // namespace cookbook::tests
