// SPDX-License-Identifier: MIT
// The reference that every level is compared with: one row of C = A B in double precision.
#pragma once

#include <cstdint>

namespace cookbook::sgemm {

/// value[j] = sum over p of a_row[p] * b[p][j] for the `n` columns of one row of C, and bound[j],
/// how far an fp32 sum of the same terms may lie from it:
///   4 sqrt(k) u * sum over p of |a_row[p] * b[p][j]|,   u = 2^-24,
/// the statistical growth of k roundings, plus the underflow of k multiplications whose results are
/// denormal. Every term is added, zeros too, so that the NaN of 0 * Inf appears where IEEE 754
/// requires it.
void product_row(const float* a_row, const float* b, std::int64_t ldb, std::int64_t n,
                 std::int64_t k, double* value, double* bound);

}  // namespace cookbook::sgemm
