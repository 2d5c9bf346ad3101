// SPDX-License-Identifier: MIT
// The fp64 result that every level is compared with, and the error bound of each element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/harness/contract/tensor.hpp"

namespace cookbook::fp8 {

/// Row `row` of C in fp64, and the error bound of a kernel that multiplies with tensor cores.
/// value, bound: n elements.
///
/// The bound. A tensor core adds 32 terms and the accumulator. It keeps 13 bits below the largest
/// exponent among them, and 13 fraction bits of the result (docs/simt.md, "What tensor cores add
/// up"). So each term may lose all of itself or one unit of the last bit kept, and the accumulator
/// and the result one unit each. A level that sums in fp32 rounds each of the 128 additions of a
/// block instead. Every block is multiplied by its scale and added to an fp32 sum. Then comes one
/// rounding to bf16.
void scaled_row(const HostTensor& a, const HostTensor& b, const HostTensor& scale_a,
                const HostTensor& scale_b, std::int64_t row, std::int64_t n, std::int64_t k,
                double* value, double* bound);

}  // namespace cookbook::fp8
