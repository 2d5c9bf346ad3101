// SPDX-License-Identifier: MIT
// The expected result of every level in fp64, and the error bound of fp32 arithmetic.
#pragma once

#include <cstdint>

#include "common/harness/contract/tensor.hpp"

namespace cookbook::softmax {

/// Added to the mean of the squares, so that a row of zeros has a norm.
constexpr float kEpsilon = 1e-6f;

/// Row `row` of the softmax: value[i] = exp(x[i] - m) / sum over j of exp(x[j] - m), m = max of x.
/// IEEE arithmetic decides the special rows: a NaN, a +inf or only -inf gives a row of NaN; a -inf
/// among finite numbers gives 0.
///
/// The bound, in units u of one fp32 rounding, relative to value[i]:
///   3 |x[i] - m|   the exponent x - m is rounded, and multiplied by a rounded log2(e);
///   3 avg          the same for the terms of the sum, each weighted by its fraction of it;
///   4 sqrt(cols)   additions, whose errors do not all have the same sign;
///   32             up to five approximate exponentials of 4 u each (ex2.approx: 2 units in the
///                  last place) where partial sums are rescaled, and the multiplications between
///                  them.
/// Results below the smallest normal float may be flushed to zero. A 16-bit output is rounded once
/// more.
void softmax_row(const HostTensor& in, DType out_type, std::int64_t row, double* value,
                 double* bound);

/// Row `row` of RMSNorm: value[i] = x[i] w[i] / sqrt(mean of x^2 + kEpsilon). The bound: additions
/// as above, an approximate reciprocal square root and four roundings.
void rmsnorm_row(const HostTensor& in, const HostTensor& weight, DType out_type, std::int64_t row,
                 double* value, double* bound);

}  // namespace cookbook::softmax
