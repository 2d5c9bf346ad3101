// SPDX-License-Identifier: MIT
// Inputs that the harness draws: never zeros, always repeatable from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "common/harness/contract/tensor.hpp"

namespace cookbook {

enum class InputKind {
  normal,    ///< N(0, 1)
  integers,  ///< small whole numbers: sums are exact, and results must be, see Instance::compare
  wide,      ///< exponents spread over a wide range
  cancellation,  ///< neighbours of opposite sign that almost cancel
  denormals,     ///< mostly below the smallest normal number
  signed_zeros,  ///< -0 and +0 among ordinary values
  one_nan,       ///< one NaN in each input
  one_inf,       ///< one infinity in each input
  one_hot,       ///< a single 1 in each input
};

/// Every kind, in the order of the enumeration.
const std::vector<InputKind>& all_input_kinds();
const char* input_kind_name(InputKind kind);
/// What is special about them, in a few words: "whole numbers from -3 to 3: many are equal".
const char* input_kind_text(InputKind kind);

/// Fills `tensor` (its padding between rows with NaN, so that reading it changes the result). A
/// tensor of integers gets small whole numbers whatever the kind, or the single 1 of one_hot. Those
/// of u32 are not negative. e4m3 and e5m2 saturate, so the infinity of one_inf is their largest
/// number.
void draw(HostTensor& tensor, InputKind kind, std::uint64_t seed);

/// The bit pattern that marks an element as never written: a NaN no arithmetic produces. An element
/// of eight bytes has it twice. i8 has no NaN: its mark, -83, may be a result, so an element that
/// was not written is found where its result is another.
std::uint32_t poison_bits(DType dtype);
/// Sets every element and all padding of `tensor` to the poison pattern.
void poison(HostTensor& tensor);
/// Whether element (row, col) - or padding, for col >= cols - still holds the poison pattern.
bool is_poison(const HostTensor& tensor, std::int64_t row, std::int64_t col);

}  // namespace cookbook
