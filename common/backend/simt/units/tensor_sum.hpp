// SPDX-License-Identifier: MIT
// What a tensor core adds up. It does not add one a[k] b[k] after the other in fp32: it aligns a
// group of these terms, which are exact, and what was summed before, to the largest exponent among
// them, cuts off what lies below its last bit, adds exactly, and cuts the sum off to fp32.
// docs/simt.md says how each rule is known. Plain host code, without the backend's own types:
// tests compare it with a GPU as well.
#pragma once

#include <cstdint>

#include "common/backend/simt/units/numbers.hpp"

namespace cookbook::simt {

/// How a GPU adds up the terms a[k] b[k] of one format.
struct SumRule {
  int terms;          // of a group; C, or the groups before, is one more
  int fraction_bits;  // kept of each term, below the largest exponent
  int result_bits;    // fraction bits of an fp32 sum; fp16 results are rounded to nearest even
  /// Two sums of half the depth instead, each from 0, the k with k % 4 < 2 first; C is added to
  /// their sum as numbers are. It is how mma.sync of fp8 is compiled where the hardware has none.
  bool converted = false;
};

/// The rule of an instruction with operands of a format on a GPU of compute capability `cc`.
SumRule sum_rule(Format format, bool warpgroup, int cc);

/// tcgen05.mma with a depth k of `depth` adds up all of it at once.
SumRule tcgen05_rule(int depth);

/// c + sum of a[k] * b[k * stride], as fp32 bits or, if `half_result`, as fp16 bits (and `c` is an
/// fp16 number). Infinities and NaN as usual; a NaN is 0x7fffffff or 0x7fff; a sum of 0 is +0.
uint32_t tensor_sum(const SumRule& rule, Format format_a, Format format_b, const float* a,
                    const float* b, int stride, int depth, float c, bool half_result);

/// What a block-scaled tcgen05.mma adds to one element: terms that are exact, each a significand
/// times 2^exponent. Of fp4 a term is 16 terms a[k] b[k], times both scales' significands.
struct ScaledTerms {
  static constexpr int kMost = 32;
  double significand[kMost];
  int exponent[kMost];
  int count = 0;
  int fraction_bits = 0;
  bool is_nan = false;
};
/// c + the terms, each cut off to the fraction bits below the largest exponent.
float scaled_sum(const ScaledTerms& terms, float c);
/// The exponent by which a tensor core aligns a number: a subnormal one's is the smallest.
int tensor_exponent(Format format, float value);

/// The same for many sums with fp32 results: row by row of A with all columns of B.
class TensorSums {
 public:
  static constexpr int kMaxDepth = 32, kMaxColumns = 256;

  /// b: [depth][stride] of `format`, `columns` of them used, a multiple of 8; `b` outlives the
  /// calls of add().
  void set_b(const SumRule& rule, Format format_a, Format format, const float* b, int stride,
             int columns, int depth);
  /// d[n] += sum of a[k] * b[k][n] for all columns.
  void add(const float* a, float* d) const;

 private:
  SumRule rule_{};
  Format format_a_{}, format_{};
  const float* b_ = nullptr;
  int stride_ = 0, columns_ = 0, depth_ = 0;
  alignas(32) int exponents_[kMaxDepth * kMaxColumns];  // of B
};

}  // namespace cookbook::simt
