// SPDX-License-Identifier: MIT
// What is asked of tensor cores, and of the arithmetic that stands for them: inputs are drawn from
// a seed, so that a file of vectors holds results only.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "common/backend/simt/units/tensor_sum.hpp"

namespace cookbook::tensor_cores {

using simt::Format;

/// One instruction: 16 rows of A (of wgmma's 64 the first 16), 8 columns of B, k terms a sum.
struct Form {
  std::string_view name;
  Format a, b;
  int k;
  bool half_result;  // D and C are fp16, not fp32
  bool wgmma;
};

inline constexpr Form kForms[] = {
    {"mma.m16n8k8.f32.f16", Format::f16, Format::f16, 8, false, false},
    {"mma.m16n8k16.f32.f16", Format::f16, Format::f16, 16, false, false},
    {"mma.m16n8k8.f16.f16", Format::f16, Format::f16, 8, true, false},
    {"mma.m16n8k16.f16.f16", Format::f16, Format::f16, 16, true, false},
    {"mma.m16n8k8.f32.bf16", Format::bf16, Format::bf16, 8, false, false},
    {"mma.m16n8k16.f32.bf16", Format::bf16, Format::bf16, 16, false, false},
    {"mma.m16n8k4.f32.tf32", Format::tf32, Format::tf32, 4, false, false},
    {"mma.m16n8k8.f32.tf32", Format::tf32, Format::tf32, 8, false, false},
    {"mma.m16n8k32.f32.e4m3", Format::e4m3, Format::e4m3, 32, false, false},
    {"mma.m16n8k32.f32.e5m2", Format::e5m2, Format::e5m2, 32, false, false},
    {"mma.m16n8k32.f32.e4m3.e5m2", Format::e4m3, Format::e5m2, 32, false, false},
    {"mma.m16n8k32.f16.e4m3", Format::e4m3, Format::e4m3, 32, true, false},
    {"mma.m16n8k32.f16.e5m2", Format::e5m2, Format::e5m2, 32, true, false},
    {"wgmma.m64n8k16.f32.f16", Format::f16, Format::f16, 16, false, true},
    {"wgmma.m64n8k16.f16.f16", Format::f16, Format::f16, 16, true, true},
    {"wgmma.m64n8k16.f32.bf16", Format::bf16, Format::bf16, 16, false, true},
    {"wgmma.m64n8k8.f32.tf32", Format::tf32, Format::tf32, 8, false, true},
    {"wgmma.m64n8k32.f32.e4m3", Format::e4m3, Format::e4m3, 32, false, true},
    {"wgmma.m64n8k32.f32.e5m2", Format::e5m2, Format::e5m2, 32, false, true},
    {"wgmma.m64n8k32.f32.e4m3.e5m2", Format::e4m3, Format::e5m2, 32, false, true},
    {"wgmma.m64n8k32.f16.e4m3", Format::e4m3, Format::e4m3, 32, true, true},
    {"wgmma.m64n8k32.f16.e5m2", Format::e5m2, Format::e5m2, 32, true, true},
};

/// What is special about the values of a case.
enum class Kind {
  plain,       // four binades
  spread,      // 24 binades, or what the format has
  cancelling,  // terms come in pairs that almost cancel
  huge,        // about the largest: sums overflow
  tiny,        // about the smallest normal number
  subnormal,   // many are below it
  infinite,
  not_a_number,
  zeros,  // of both signs, many
  no_c,   // as plain, C is 0
  small_c,
  large_c,
  single_bits,  // powers of two, far apart: where does the adder end?
  any,          // any bits
};
inline constexpr std::string_view kKinds[] = {
    "plain",        "spread", "cancelling", "huge",    "tiny",    "subnormal",   "infinite",
    "not_a_number", "zeros",  "no_c",       "small_c", "large_c", "single_bits", "any"};
inline constexpr int kKindCount = 14;

/// The bits of one instruction's operands: of an element, the lowest.
struct Case {
  std::vector<uint32_t> a;        // 16 x k
  std::vector<uint32_t> b;        // k x 8
  std::array<uint32_t, 128> c{};  // 16 x 8
};

struct Layout {
  int exponent_bits, mantissa_bits, unused_low_bits;
};
constexpr Layout layout_of(Format format) {
  switch (format) {
    case Format::bf16: return {8, 7, 0};
    case Format::f16: return {5, 10, 0};
    case Format::tf32: return {8, 10, 13};
    case Format::e4m3: return {4, 3, 0};
    case Format::e5m2: return {5, 2, 0};
    default: return {};  // sm_100 only
  }
}
inline constexpr Layout kSingle = {8, 23, 0};
inline constexpr Layout kHalf = {5, 10, 0};

/// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
struct Random {
  uint64_t state;
  uint64_t operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  int below(int n) { return static_cast<int>((*this)() % static_cast<uint64_t>(n)); }
};

/// A number +-1.m * 2^exponent, m random or 0; exponents out of range become the nearest.
inline uint32_t normal(Random& random, Layout layout, int exponent, bool power_of_two = false) {
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  const int largest = (1 << layout.exponent_bits) - 2;
  const int field = exponent + bias < 1 ? 1 : exponent + bias > largest ? largest : exponent + bias;
  const uint64_t bits = random();
  const uint32_t mantissa =
      power_of_two ? 0 : static_cast<uint32_t>(bits & ((1u << layout.mantissa_bits) - 1));
  const uint32_t sign = static_cast<uint32_t>(bits >> 40 & 1);
  const uint32_t low = static_cast<uint32_t>(bits >> 41) & ((1u << layout.unused_low_bits) - 1);
  return ((sign << layout.exponent_bits | static_cast<uint32_t>(field)) << layout.mantissa_bits |
          mantissa)
             << layout.unused_low_bits |
         low;
}

inline uint32_t any_bits(Random& random, Layout layout) {
  const int bits = 1 + layout.exponent_bits + layout.mantissa_bits + layout.unused_low_bits;
  return static_cast<uint32_t>(random() & ((uint64_t{1} << bits) - 1));
}

inline uint32_t with_fields(Random& random, Layout layout, uint32_t exponent, uint32_t mantissa) {
  const uint32_t sign = static_cast<uint32_t>(random() >> 50 & 1);
  return ((sign << layout.exponent_bits | exponent) << layout.mantissa_bits | mantissa)
         << layout.unused_low_bits;
}

/// An element of a kind.
inline uint32_t element(Random& random, Layout layout, Kind kind) {
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  const uint32_t all_ones = (1u << layout.exponent_bits) - 1;
  const uint32_t mantissa_mask = (1u << layout.mantissa_bits) - 1;
  const int rare = random.below(16);
  switch (kind) {
    case Kind::plain:
    case Kind::no_c:
    case Kind::small_c:
    case Kind::large_c:
    case Kind::cancelling: return normal(random, layout, random.below(4) - 3);
    case Kind::spread: return normal(random, layout, random.below(25) - 12);
    case Kind::huge: return normal(random, layout, (bias + 1) / 2 + random.below(bias / 2 + 1));
    case Kind::tiny: return normal(random, layout, -(bias - 1) / 2 - random.below(bias / 2 + 1));
    case Kind::subnormal:
      if (rare < 12) {
        return with_fields(random, layout, 0, static_cast<uint32_t>(random()) & mantissa_mask);
      }
      return normal(random, layout, rare < 14 ? -bias + 1 + random.below(3) : random.below(3));
    case Kind::infinite:
      if (rare == 0) return with_fields(random, layout, all_ones, 0);
      return rare == 1 ? with_fields(random, layout, 0, 0)
                       : normal(random, layout, random.below(4) - 3);
    case Kind::not_a_number:
      if (rare == 0 && random.below(4) == 0) {
        return with_fields(random, layout, all_ones,
                           static_cast<uint32_t>(random()) & mantissa_mask);
      }
      return normal(random, layout, random.below(4) - 3);
    case Kind::zeros:
      return rare < 13 ? with_fields(random, layout, 0, 0)
                       : normal(random, layout, random.below(4) - 3);
    case Kind::single_bits: return normal(random, layout, -random.below(18), true);
    case Kind::any: return any_bits(random, layout);
  }
  return 0;
}

/// The operands of a form's case number `index` of a kind. Forms of the same formats, results and k
/// get the same, so wgmma and mma.sync can be compared.
inline Case draw(const Form& form, Kind kind, int index) {
  const auto number = static_cast<uint64_t>(index) * kKindCount + static_cast<uint64_t>(kind);
  Random random{(number * 64 + static_cast<uint64_t>(form.k)) * 64 +
                static_cast<uint64_t>(form.a) * 8 + static_cast<uint64_t>(form.b) +
                (form.half_result ? 1u << 30 : 0)};
  Case drawn;
  const Layout a = layout_of(form.a), b = layout_of(form.b);
  const auto k = static_cast<size_t>(form.k);
  for (size_t i = 0; i < 16 * k; ++i) drawn.a.push_back(element(random, a, kind));
  for (size_t i = 0; i < 8 * k; ++i) drawn.b.push_back(element(random, b, kind));
  if (kind ==
      Kind::cancelling) {  // rows of B in pairs, equal but for the sign and, at times, a bit
    const uint32_t sign = 1u << (b.exponent_bits + b.mantissa_bits + b.unused_low_bits);
    const uint32_t unit = 1u << b.unused_low_bits;
    for (size_t row = 0; row < 16; ++row) {
      for (size_t i = 0; i + k / 2 < k; ++i) drawn.a[row * k + i + k / 2] = drawn.a[row * k + i];
    }
    for (size_t i = 0; i + k / 2 < k; ++i) {
      for (size_t n = 0; n < 8; ++n) {
        const uint32_t bit = random.below(4) == 0 ? unit : 0;
        drawn.b[(i + k / 2) * 8 + n] = (drawn.b[i * 8 + n] ^ sign) ^ bit;
      }
    }
  }
  const Layout c = form.half_result ? kHalf : kSingle;
  for (uint32_t& each : drawn.c) {
    switch (kind) {
      case Kind::no_c: each = 0; break;
      case Kind::small_c: each = normal(random, c, -random.below(30)); break;
      case Kind::large_c: each = normal(random, c, random.below(30)); break;
      case Kind::cancelling: each = normal(random, c, -6 - random.below(16)); break;
      case Kind::single_bits:
        each = normal(random, c, -random.below(34), random.below(2) == 0);
        break;
      case Kind::huge: {
        const int bias = (1 << (c.exponent_bits - 1)) - 1;
        each = normal(random, c, bias - random.below(8));
        break;
      }
      case Kind::tiny: {
        const int low = 2 - (1 << (layout_of(form.a).exponent_bits - 1));
        each = normal(random, c, low - random.below(40));
        break;
      }
      default: each = element(random, c, kind);
    }
  }
  return drawn;
}

/// The number that the bits mean; `is_e4m3`: without infinities.
inline float value_of(uint32_t bits, Layout layout, bool is_e4m3 = false) {
  bits >>= layout.unused_low_bits;
  const int mantissa = static_cast<int>(bits & ((1u << layout.mantissa_bits) - 1));
  const int all_ones = (1 << layout.exponent_bits) - 1;
  const int field = static_cast<int>(bits >> layout.mantissa_bits) & all_ones;
  const int unit = 1 - (all_ones >> 1) - layout.mantissa_bits;
  const bool negative = (bits >> (layout.mantissa_bits + layout.exponent_bits) & 1) != 0;
  double value = field == 0 ? std::ldexp(mantissa, unit)
                            : std::ldexp(mantissa + (1 << layout.mantissa_bits), unit + field - 1);
  if (field == all_ones && !(is_e4m3 && mantissa != 7)) {
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  }
  return static_cast<float>(negative ? -value : value);
}

/// What the rules say of a case on a GPU of compute capability `cc`: 16 x 8 results as bits. Both
/// ways of computing them must agree; where they do not, a result is 0xbad.
inline std::array<uint32_t, 128> modelled(const Form& form, const Case& asked, int cc) {
  const simt::SumRule rule = simt::sum_rule(form.a, form.wgmma, cc);
  const auto values = [](const std::vector<uint32_t>& bits, Format format) {
    std::vector<float> list;
    for (const uint32_t each : bits) {
      list.push_back(value_of(each, layout_of(format), format == Format::e4m3));
    }
    return list;
  };
  const std::vector<float> a = values(asked.a, form.a), b = values(asked.b, form.b);
  const bool by_rows = !form.half_result && !rule.converted && form.a == form.b;
  static thread_local simt::TensorSums sums;
  if (by_rows) sums.set_b(rule, form.a, form.b, b.data(), 8, 8, form.k);
  std::array<uint32_t, 128> results{};
  for (int row = 0; row < 16; ++row) {
    std::array<float, 8> d{};
    for (int n = 0; n < 8; ++n) {
      const uint32_t c = asked.c[static_cast<size_t>(row * 8 + n)];
      d[static_cast<size_t>(n)] = value_of(c, form.half_result ? kHalf : kSingle);
    }
    const float* const a_row = a.data() + row * form.k;
    for (int n = 0; n < 8; ++n) {
      results[static_cast<size_t>(row * 8 + n)] =
          simt::tensor_sum(rule, form.a, form.b, a_row, b.data() + n, 8, form.k,
                           d[static_cast<size_t>(n)], form.half_result);
    }
    if (!by_rows) continue;
    sums.add(a_row, d.data());
    for (size_t n = 0; n < 8; ++n) {
      uint32_t& result = results[static_cast<size_t>(row) * 8 + n];
      if (std::bit_cast<uint32_t>(d[n]) != result) result = 0xbad;
    }
  }
  return results;
}

}  // namespace cookbook::tensor_cores
