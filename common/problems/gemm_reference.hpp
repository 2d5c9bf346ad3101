// SPDX-License-Identifier: MIT
// The fp64 GEMM that every level is compared with, and the error bound of each element.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/device/cuda.cuh"
#include "common/harness/contract/tensor.hpp"

namespace cookbook::gemm {

/// The element types of this book's tensor-core GEMMs, as the harness names them.
template <class T>
struct ElementOf;
template <>
struct ElementOf<bf16> {
  static constexpr DType dtype = DType::bf16;
  static constexpr const char* name = "bf16";
  /// bf16 is the upper half of an fp32: exact.
  static double value(bf16 x) {
    std::uint16_t bits16;
    std::memcpy(&bits16, &x, sizeof bits16);
    const std::uint32_t bits32 = std::uint32_t{bits16} << 16;
    float f;
    std::memcpy(&f, &bits32, sizeof f);
    return f;
  }
};
template <>
struct ElementOf<half> {
  static constexpr DType dtype = DType::f16;
  static constexpr const char* name = "f16";
  static double value_of_bits(int bits) {
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const double sign = (bits >> 15) ? -1.0 : 1.0;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    return sign * std::ldexp(1024 + fraction, exponent - 25);
  }
  static double value(half x) {
    static const std::vector<double> values = [] {  // looked up: a GEMM asks for each K times
      std::vector<double> all;
      for (int bits = 0; bits < 1 << 16; ++bits) all.push_back(value_of_bits(bits));
      return all;
    }();
    std::uint16_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return values[bits];
  }
};

/// Row `row` of C = A B in fp64, and the error bound of a tensor-core kernel.
///
/// a: element (row, p) at a[row * a_row + p * a_col], p < k; b likewise; value, bound: n elements.
/// Every term is added, zeros too: 0 * inf is NaN and must appear in the result.
///
/// The bound: tensor cores align the terms of a step to the largest one and truncate, so each of
/// the K additions may lose a whole ulp of the fp32 sum (u32 = 2^-24, twice that for truncation).
/// Then comes one rounding to the output type, at the value that the accumulated error may have
/// reached.
template <class T>
void gemm_row(const T* a, std::int64_t a_row, std::int64_t a_col, const T* b, std::int64_t b_row,
              std::int64_t b_col, std::int64_t n, std::int64_t k, std::int64_t row, double* value,
              double* bound);

}  // namespace cookbook::gemm
