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

/// The scale of one block of k: significand times 2^exponent.
struct BlockScale {
  float significand;  // 1 for UE8M0
  int exponent;
  bool is_nan;
};

/// What a block-scaled tcgen05.mma adds up, for one row of A and all columns of B. A group of terms
/// is exact, is cut off to the fraction bits below the largest exponent, and is added. Of fp8 and
/// fp6 a group is one a[k] b[k], with 25 fraction bits; of fp4 it is 16 of them times the scales'
/// significands, with 35.
struct ScaledSums {
  Format format_a;
  bool fp4;
  int columns, depth, per_scale;  // k per scale
  const float* b;                 // [depth][stride]
  const int* exponents_b;         // the same, by tensor_exponent(); of fp4 not needed
  int stride;
  const BlockScale* scales_b;  // [columns][depth / per_scale]
  /// d[n] += sum of a[k] b[k][n], scaled.
  void add(const float* a, const BlockScale* scales_a, float* d) const;
};
/// The exponent by which a tensor core aligns a number: a subnormal one's is the smallest.
int tensor_exponent(Format format, float value);

/// The same for many sums with fp32 results: row by row of A with all columns of B.
class TensorSums {
 public:
  static constexpr int kMaxDepth = 32, kMaxColumns = 256;

  /// b: [depth][stride] of `format`, `columns` of them used; columns and depth are multiples of 8;
  /// `b` outlives the calls of add().
  void set_b(const SumRule& rule, Format format_a, Format format, const float* b, int stride,
             int columns, int depth);
  /// d[n] += sum of a[k] * b[k][n] for all columns.
  void add(const float* a, float* d) const;

 private:
  SumRule rule_{};
  Format format_a_{}, format_{};
  const float* b_ = nullptr;
  int stride_ = 0, columns_ = 0, depth_ = 0;
  alignas(32) int16_t exponents_[kMaxDepth * kMaxColumns]{};  // of B
};

}  // namespace cookbook::simt
