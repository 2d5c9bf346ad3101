// SPDX-License-Identifier: MIT
#include "common/backend/simt/units/tensor_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace cookbook::simt {
namespace {

// Exponents: of zero so little, and of infinity and NaN so much, that neither is met otherwise.
// The sum of two fits 16 bits; that of zero and infinity, a NaN, is that of no finite numbers.
constexpr int kZero = -4'000, kNotFinite = 16'000;
constexpr int kNone = -2'000;  // below: a sum of zeros only

int least_exponent(Format format) {
  switch (format) {
    case Format::f16:
    case Format::e5m2: return -14;
    case Format::e4m3: return -6;
    case Format::e3m2: return -2;
    case Format::e2m3:
    case Format::e2m1: return 0;
    case Format::bf16:
    case Format::tf32: break;
  }
  return -126;
}

int exponent_of(float value, int least) {
  const auto field = static_cast<int>(std::bit_cast<uint32_t>(value) >> 23 & 0xff);
  if (field == 0xff) return kNotFinite;
  return value == 0 ? kZero : std::max(field - 127, least);
}

bool is_fp8(Format format) { return format == Format::e4m3 || format == Format::e5m2; }

// The multiple of `unit` next to `value` towards 0, or the nearest.
double cut_off(double value, double unit) { return std::trunc(value / unit) * unit; }
double rounded(double value, double unit) { return std::nearbyint(value / unit) * unit; }

// An exact sum as fp32 with `bits` fraction bits: what lies below is cut off.
float to_single(double sum, int bits) {
  if (sum == 0 || !std::isfinite(sum)) return static_cast<float>(sum);
  const double cut = cut_off(sum, std::ldexp(1.0, std::max(std::ilogb(sum) - bits, -149)));
  if (std::fabs(cut) < 0x1p128) return static_cast<float>(cut);
  return static_cast<float>(std::copysign(std::numeric_limits<double>::infinity(), sum));
}

// As fp16, to nearest even; the value.
float to_half(double sum) {
  if (sum == 0 || !std::isfinite(sum)) return static_cast<float>(sum);
  const double value = rounded(sum, std::ldexp(1.0, std::max(std::ilogb(sum), -14) - 10));
  if (std::fabs(value) < 65536) return static_cast<float>(value);
  return static_cast<float>(std::copysign(std::numeric_limits<double>::infinity(), sum));
}

// One group: a[k] b[k] and c aligned, cut off and added, exactly. `c_least`: c's least exponent.
struct Operands {
  const float *a, *b;
  int stride;
  int least_a, least_b;
};
double group_sum(const Operands& x, int begin, int end, float c, int c_least, int fraction_bits) {
  int largest = exponent_of(c, c_least);
  for (int k = begin; k < end; ++k) {
    largest = std::max(largest,
                       exponent_of(x.a[k], x.least_a) + exponent_of(x.b[k * x.stride], x.least_b));
  }
  if (largest < kNone) return 0;
  const bool finite = largest < kNotFinite / 2;
  double sum = 0;
  const auto add = [&](double term) {
    sum += finite ? std::trunc(std::ldexp(term, fraction_bits - largest)) : term;
  };
  add(c);
  for (int k = begin; k < end; ++k) add(static_cast<double>(x.a[k]) * x.b[k * x.stride]);
  return finite ? std::ldexp(sum, largest - fraction_bits) : sum;
}

uint32_t half_bits(float value) {
  if (value != value) return 0x7fff;
  const uint32_t sign = std::bit_cast<uint32_t>(value) >> 16 & 0x8000u;
  const float magnitude = std::fabs(value);
  if (std::isinf(value)) return sign | 0x7c00u;
  if (magnitude < 0x1p-14f) return sign | static_cast<uint32_t>(magnitude * 0x1p24f);
  return sign | ((std::bit_cast<uint32_t>(magnitude) - (112u << 23)) >> 13);
}

using Floats = float __attribute__((vector_size(32), aligned(4), may_alias));
using Ints = int32_t __attribute__((vector_size(32), aligned(4), may_alias));
using Shorts = int16_t __attribute__((vector_size(32), aligned(2), may_alias));
using EightShorts = int16_t __attribute__((vector_size(16), aligned(2), may_alias));
using FourFloats = float __attribute__((vector_size(16)));
using FourInts = int32_t __attribute__((vector_size(16)));
using FourDoubles = double __attribute__((vector_size(32)));
using FourLongs = int64_t __attribute__((vector_size(32)));

// Eight columns of one group; lanes whose exponents are outside these bounds are left to
// group_sum(): terms and sums of the others neither overflow nor lose bits in fp32.
constexpr int kLeastFast = -100, kLargestFast = 125;

struct TermGroup {
  const float* a;
  const int16_t* a_exponents;
  const float* b;
  const int16_t* b_exponents;
  int stride, terms, fraction_bits, result_bits;
};

__attribute__((always_inline)) inline Ints eight_exponents(Floats values, int least) {
  const Ints field = reinterpret_cast<Ints>(values) >> 23 & 0xff, lowest = Ints{} + least;
  Ints exponents = field - 127;
  exponents = exponents > lowest ? exponents : lowest;
  exponents = values == 0 ? Ints{} + kZero : exponents;
  return field == 0xff ? Ints{} + kNotFinite : exponents;
}

/// largest[n], of `columns` rounded up to 16: the largest exponent of a[k] b[k][n].
__attribute__((always_inline)) inline void largest_of_terms(const TermGroup& group, int columns,
                                                            int16_t* largest) {
  for (int n = 0; n < columns; n += 16) {
    Shorts most = Shorts{} + static_cast<int16_t>(2 * kZero);
    for (int k = 0; k < group.terms; ++k) {
      const Shorts exponents =
          *reinterpret_cast<const Shorts*>(group.b_exponents + k * TensorSums::kMaxColumns + n) +
          group.a_exponents[k];
      most = exponents > most ? exponents : most;
    }
    *reinterpret_cast<Shorts*>(largest + n) = most;
  }
}

/// d += the group, of eight columns from `n` on; the lanes that are left out.
__attribute__((always_inline)) inline Ints add_eight(const TermGroup& group, int terms, int n,
                                                     const int16_t* largest_of_term, float* d) {
  const Floats before = *reinterpret_cast<const Floats*>(d + n);
  Ints largest = eight_exponents(before, -126);
  const Ints of_terms =
      __builtin_convertvector(*reinterpret_cast<const EightShorts*>(largest_of_term + n), Ints);
  largest = of_terms > largest ? of_terms : largest;
  const Ints left_out = (largest > kLargestFast) | ((largest < kLeastFast) & (largest > kNone));
  const Ints shift = largest < kLeastFast ? Ints{} : group.fraction_bits - largest;
  const Floats scale = reinterpret_cast<Floats>((shift + 127) << 23);
  // A term is less than 2^27, so eight of them and c fit 32 bits; of 13 fraction bits all do.
  Ints first = __builtin_convertvector(before * scale, Ints), second{}, third{}, fourth{};
  const auto add = [&](Ints & sum, int k) __attribute__((always_inline)) {
    const Floats row = *reinterpret_cast<const Floats*>(group.b + k * group.stride + n);
    sum += __builtin_convertvector(group.a[k] * row * scale, Ints);
  };
  for (int k = 0; k < terms && k < 8; ++k) add(first, k);
  const int end = group.fraction_bits > 13 ? std::min(terms, 16) : terms;
  for (int k = 8; k < end; ++k) add(second, k);
  for (int k = 16; k < terms && end == 16; ++k) add(k < 24 ? third : fourth, k);
  // Cutting off bits of the fraction rounds towards 0; what stays fits fp32.
  const int64_t kept = -(int64_t{1} << (52 - group.result_bits));
  const auto doubles = [](FourInts numbers) __attribute__((always_inline)) {
    return __builtin_convertvector(numbers, FourDoubles);
  };
  const auto four = [&](FourInts one, FourInts two, FourInts three, FourInts last)
      __attribute__((always_inline)) {
    FourDoubles exact = doubles(one);
    if (terms > 8) exact += doubles(two);
    if (terms > 16) exact += doubles(three) + doubles(last);
    const auto cut = reinterpret_cast<FourDoubles>(reinterpret_cast<FourLongs>(exact) & kept);
    return __builtin_convertvector(cut, FourFloats);
  };
  const FourFloats left = four(__builtin_shufflevector(first, first, 0, 1, 2, 3),
                               __builtin_shufflevector(second, second, 0, 1, 2, 3),
                               __builtin_shufflevector(third, third, 0, 1, 2, 3),
                               __builtin_shufflevector(fourth, fourth, 0, 1, 2, 3));
  const FourFloats right = four(__builtin_shufflevector(first, first, 4, 5, 6, 7),
                                __builtin_shufflevector(second, second, 4, 5, 6, 7),
                                __builtin_shufflevector(third, third, 4, 5, 6, 7),
                                __builtin_shufflevector(fourth, fourth, 4, 5, 6, 7));
  const Floats sum = __builtin_shufflevector(left, right, 0, 1, 2, 3, 4, 5, 6, 7) *
                     reinterpret_cast<Floats>((127 - shift) << 23);
  *reinterpret_cast<Floats*>(d + n) = left_out != 0 ? before : sum;
  return left_out;
}

/// d += the group, of all columns. Receives in `left_out` which columns were not added, if any was
/// not; whether all were.
COOKBOOK_SIMT_WIDE bool add_group(const TermGroup& group, int columns, float* d,
                                  int32_t* left_out) {
  int16_t largest[TensorSums::kMaxColumns];
  largest_of_terms(group, columns, largest);
  Ints any{};
  const auto add = [&](int terms) __attribute__((always_inline)) {
    for (int n = 0; n < columns; n += 8) {
      const Ints lanes = add_eight(group, terms, n, largest, d);
      *reinterpret_cast<Ints*>(left_out + n) = lanes;
      any |= lanes;
    }
  };
  // With the most frequent number known, the compiler unrolls the loops over k.
  if (group.terms == 16) {
    add(16);
  } else {
    add(group.terms);
  }
  const auto pairs = reinterpret_cast<FourLongs>(any);
  return (pairs[0] | pairs[1] | pairs[2] | pairs[3]) == 0;
}

/// As exponent_of(), of `count` values: a multiple of eight.
COOKBOOK_SIMT_WIDE void exponents_of(int count, int least, const float* values,
                                     int16_t* exponents) {
  for (int i = 0; i < count; i += 8) {
    *reinterpret_cast<EightShorts*>(exponents + i) = __builtin_convertvector(
        eight_exponents(*reinterpret_cast<const Floats*>(values + i), least), EightShorts);
  }
}

}  // namespace

SumRule tcgen05_rule(int depth) { return {depth, 25, 23}; }

SumRule sum_rule(Format format, bool warpgroup, int cc) {
  if (is_fp8(format) && (warpgroup || cc == 89)) return {warpgroup ? 32 : 16, 13, 13};
  const bool converted = is_fp8(format);
  const bool tf32 = format == Format::tf32;
  if (cc < 80) return {4, 23, 23, converted};
  if (cc < 90) return {tf32 ? 4 : 8, 24, 23, converted};
  return {tf32 ? 8 : 16, 25, 23, converted};
}

uint32_t tensor_sum(const SumRule& rule, Format format_a, Format format_b, const float* a,
                    const float* b, int stride, int depth, float c, bool half_result) {
  constexpr int kLeastSingle = -126, kLeastHalf = -14;
  const auto groups = [&](const Operands& x, int count, float sum) {
    for (int k = 0; k < count; k += rule.terms) {
      const double exact = group_sum(x, k, std::min(k + rule.terms, count), sum,
                                     half_result ? kLeastHalf : kLeastSingle, rule.fraction_bits);
      sum = half_result ? to_half(exact) : to_single(exact, rule.result_bits);
    }
    return sum;
  };
  float result;
  if (rule.converted) {
    // e4m3 and e5m2 become fp16 exactly, and none of them is below the smallest normal number.
    const int least = least_exponent(Format::f16);
    float part_a[2][16], part_b[2][16];
    for (int k = 0; k < depth; ++k) {
      const int to = k / 4 * 2 + k % 2;
      part_a[k % 4 / 2][to] = a[k];
      part_b[k % 4 / 2][to] = b[k * stride];
    }
    result = 0;
    for (int part = 0; part < 2; ++part) {
      result = groups({part_a[part], part_b[part], 1, least, least}, depth / 2, result);
    }
    result = half_result ? to_half(static_cast<double>(result) + c) : result + c;
  } else {
    result = groups({a, b, stride, least_exponent(format_a), least_exponent(format_b)}, depth, c);
  }
  if (half_result) return half_bits(result);
  return result != result ? 0x7fffffffu : std::bit_cast<uint32_t>(result);
}

int tensor_exponent(Format format, float value) {
  return exponent_of(value, least_exponent(format));
}

namespace {

constexpr int kWidest = 256;

// 2^exponent, of which doubles have more than is asked for.
double power(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(std::clamp(exponent, -1022, 1023) + 1023)
                               << 52);
}

// Adds trunc(term[n] * unit[n]) to sum[n].
COOKBOOK_SIMT_WIDE void add_cut_off(int columns, float a, const float* b, const double* unit,
                                    double* sum) {
  for (int n = 0; n < columns; ++n) {
    const double term = static_cast<double>(a) * b[n] * unit[n];
    sum[n] += static_cast<double>(static_cast<int64_t>(term));
  }
}
COOKBOOK_SIMT_WIDE void largest_exponents(int columns, int a, const int* b, const int* scale,
                                          int* largest) {
  for (int n = 0; n < columns; ++n) largest[n] = std::max(largest[n], a + b[n] + scale[n]);
}
COOKBOOK_SIMT_WIDE void add_terms(int columns, float a, const float* b, float* sum) {
  for (int n = 0; n < columns; ++n) sum[n] += a * b[n];
}

}  // namespace

void ScaledSums::add(const float* a, const BlockScale* scales_a, float* d) const {
  const int scales = depth / per_scale;
  const auto scale_b = [&](int n, int block) { return scales_b[n * scales + block]; };
  const int fraction_bits = fp4 ? 35 : 25;
  int largest[kWidest];
  for (int n = 0; n < columns; ++n) largest[n] = exponent_of(d[n], -126);
  float part[4][kWidest];  // of fp4: sums of 16 terms
  const int groups = fp4 ? depth / 16 : 0;
  for (int g = 0; g < groups; ++g) {
    std::fill_n(part[g], columns, 0.0f);
    for (int k = 16 * g; k < 16 * g + 16; ++k) add_terms(columns, a[k], b + k * stride, part[g]);
    const int block = 16 * g / per_scale;
    for (int n = 0; n < columns; ++n) {
      if (part[g][n] == 0) continue;
      largest[n] = std::max(largest[n], scales_a[block].exponent + scale_b(n, block).exponent);
    }
  }
  bool special = false;
  if (!fp4) {
    int scale[kWidest];
    for (int n = 0; n < columns; ++n) scale[n] = scales_a[0].exponent + scale_b(n, 0).exponent;
    for (int k = 0; k < depth; ++k) {
      const int own = tensor_exponent(format_a, a[k]);
      largest_exponents(columns, own, exponents_b + k * stride, scale, largest);
    }
    special = *std::max_element(largest, largest + columns) > kNotFinite / 2;
  }
  double unit[kWidest], sum[kWidest];
  for (int n = 0; n < columns; ++n) {
    const int shift = largest[n] < kNone ? 0 : fraction_bits - largest[n];
    sum[n] = std::isfinite(d[n]) ? std::trunc(static_cast<double>(d[n]) * power(shift)) : d[n];
    unit[n] = fp4 ? shift : power(shift + scales_a[0].exponent + scale_b(n, 0).exponent);
  }
  for (int k = 0; k < depth && !fp4; ++k) {
    if (special) {
      // An infinity or a NaN of B is one column's; the others are summed as ever.
      for (int n = 0; n < columns; ++n) {
        const double term = static_cast<double>(a[k]) * b[k * stride + n];
        sum[n] += largest[n] > kNotFinite / 2 ? term : std::trunc(term * unit[n]);
      }
    } else {
      add_cut_off(columns, a[k], b + k * stride, unit, sum);
    }
  }
  for (int g = 0; g < groups; ++g) {
    const BlockScale& one = scales_a[16 * g / per_scale];
    for (int n = 0; n < columns; ++n) {
      const BlockScale other = scale_b(n, 16 * g / per_scale);
      const double term = static_cast<double>(part[g][n]) * one.significand * other.significand;
      sum[n] += std::trunc(term * power(static_cast<int>(unit[n]) + one.exponent + other.exponent));
    }
  }
  for (int n = 0; n < columns; ++n) {
    bool is_nan = d[n] != d[n] || sum[n] != sum[n];
    for (int v = 0; v < scales; ++v) is_nan = is_nan || scales_a[v].is_nan || scale_b(n, v).is_nan;
    const int shift = largest[n] < kNone ? 0 : fraction_bits - largest[n];
    d[n] = is_nan                   ? std::bit_cast<float>(0x7fffffffu)
           : !std::isfinite(sum[n]) ? static_cast<float>(sum[n])
                                    : to_single(std::ldexp(sum[n], -shift), 23);
  }
}

void TensorSums::set_b(const SumRule& rule, Format format_a, Format format, const float* b,
                       int stride, int columns, int depth) {
  rule_ = rule;
  format_a_ = format_a;
  format_ = format;
  b_ = b;
  stride_ = stride;
  columns_ = columns;
  depth_ = depth;
  const int least = least_exponent(format);
  for (int k = 0; k < depth; ++k) {
    exponents_of(columns, least, b + k * stride, exponents_ + k * kMaxColumns);
  }
}

void TensorSums::add(const float* a, float* d) const {
  int16_t a_exponents[kMaxDepth];
  exponents_of(depth_, least_exponent(format_a_), a, a_exponents);
  const int terms = std::min(rule_.terms, depth_);
  for (int k = 0; k < depth_; k += terms) {
    const float* const b = b_ + k * stride_;
    int32_t left_out[kMaxColumns];
    if (add_group({a + k, a_exponents + k, b, exponents_ + k * kMaxColumns, stride_, terms,
                   rule_.fraction_bits, rule_.result_bits},
                  columns_, d, left_out)) {
      continue;
    }
    for (int n = 0; n < columns_; ++n) {
      if (left_out[n] == 0) continue;
      d[n] = std::bit_cast<float>(
          tensor_sum(rule_, format_a_, format_, a + k, b + n, stride_, terms, d[n], false));
    }
  }
}

}  // namespace cookbook::simt
