// SPDX-License-Identifier: MIT
#include "common/harness/verdict/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/backend/device_bytes.hpp"
#include "common/harness/verdict/parallel.hpp"

namespace cookbook {
namespace {

// A counter-based generator: element i of a tensor is a pure function of (seed, i), so drawing can
// be spread over threads and a single element can be drawn again.

double uniform(std::uint64_t bits) {  // in (0, 1)
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

double normal(std::uint64_t bits) {
  // The sum of four uniform numbers is near enough to a normal one for testing, and fast.
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>((bits >> (16 * i)) & 0xffff) + 0.5;
  return (sum / 65536.0 - 2.0) * std::sqrt(3.0);
}

// Padding of a type of one byte: NaN; as i8, which has none, 112 or more. e4m3's other NaN is the
// poison pattern.
std::byte padding_byte(DType dtype, std::uint32_t bits) {
  if (dtype == DType::e4m3) return std::byte{0x7f};
  return static_cast<std::byte>(dtype == DType::e5m2 ? 0x7e | (bits & 0x81) : 0x70 | (bits & 0x0f));
}

// The range of exponents of `wide` inputs, and the smallest normal number.
int wide_range(DType dtype) {
  if (dtype == DType::e4m3) return 4;
  return dtype == DType::f16 || dtype == DType::e5m2 ? 6 : 12;
}
double smallest_normal_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::e5m2: return 0x1p-14;
    case DType::e4m3: return 0x1p-6;
    case DType::f64: return 0x1p-1022;
    default: return 0x1p-126;
  }
}

// NaNs, so that reading them changes the result. Never the poison pattern, so that copying them
// onto the padding of an output is found, too. They differ from place to place, as in the guard
// bands.
void fill_padding(HostTensor& tensor) {
  const TensorSpec& spec = tensor.spec;
  const auto width = static_cast<std::int64_t>(dtype_bytes(spec.dtype));
  for (std::int64_t row = 0; row + 1 < spec.rows; ++row) {
    for (std::int64_t at = row * spec.pitch + spec.cols; at < (row + 1) * spec.pitch; ++at) {
      const auto bits = static_cast<std::uint32_t>(mix_bits(static_cast<std::uint64_t>(at)));
      if (width == 1) {
        tensor.storage[static_cast<std::size_t>(at)] = padding_byte(spec.dtype, bits);
        continue;
      }
      const bool is_wide = width == 8;  // a NaN of 64 bits has more ones at its top
      const std::uint32_t nan = (is_wide ? 0x7ff17ff1 : 0x7f817f81) | (bits & 0x805e805e);
      const std::uint64_t twice = std::uint64_t{nan} << 32 | nan;
      std::memcpy(tensor.storage.data() + at * width, &twice, static_cast<std::size_t>(width));
    }
  }
}

/// Element `col` of a row whose first element is number `first` of the tensor; `seed` is the
/// tensor's.
double value_of(InputKind kind, DType dtype, std::uint64_t seed, std::int64_t first,
                std::int64_t col) {
  const auto bits_of = [seed](std::int64_t i) {
    return mix_bits(seed + static_cast<std::uint64_t>(i));
  };
  const std::uint64_t bits = bits_of(first + col);
  switch (kind) {
    case InputKind::integers:
      return static_cast<double>(static_cast<int>(bits % 7)) - (dtype == DType::u32 ? 0 : 3);
    case InputKind::wide: {
      const int range = wide_range(dtype);
      return std::ldexp(normal(bits), static_cast<int>(mix_bits(bits) % (2 * range + 1)) - range);
    }
    case InputKind::cancellation: {
      // Pairs (x, -x(1 + small)): long sums lose their leading digits.
      const double x = 1 + uniform(mix_bits(bits_of(first + col / 2 * 2)));
      return col % 2 ? -x * (1 + 0.01 * uniform(bits)) : x;
    }
    case InputKind::denormals: {
      const double smallest_normal = smallest_normal_of(dtype);
      return bits % 4 == 0 ? normal(bits) : normal(bits) * smallest_normal * 0.25;
    }
    case InputKind::signed_zeros:
      return bits % 4 == 0 ? 0.0 : bits % 4 == 1 ? -0.0 : normal(mix_bits(bits));
    case InputKind::one_hot: return 0;
    case InputKind::normal:
    case InputKind::one_nan:
    case InputKind::one_inf: return normal(bits);
  }
  return 0;
}

}  // namespace

const std::vector<InputKind>& all_input_kinds() {
  static const std::vector<InputKind> kinds = {
      InputKind::normal,       InputKind::integers,  InputKind::wide,
      InputKind::cancellation, InputKind::denormals, InputKind::signed_zeros,
      InputKind::one_nan,      InputKind::one_inf,   InputKind::one_hot};
  return kinds;
}

const char* input_kind_name(InputKind kind) {
  static const char* const names[] = {"normal",       "integers",  "wide",
                                      "cancellation", "denormals", "signed_zeros",
                                      "one_nan",      "one_inf",   "one_hot"};
  return names[static_cast<int>(kind)];
}

const char* input_kind_text(InputKind kind) {
  static const char* const texts[] = {"ordinary numbers, few are equal",
                                      "whole numbers from -3 to 3: many are equal",
                                      "exponents over a wide range",
                                      "neighbours that almost cancel",
                                      "mostly denormals",
                                      "-0 and +0 among ordinary numbers: equal ones",
                                      "one NaN per input",
                                      "one infinity per input",
                                      "zeros and a single 1: all but one are equal"};
  return texts[static_cast<int>(kind)];
}

void draw(HostTensor& tensor, InputKind kind, std::uint64_t seed) {
  const TensorSpec& spec = tensor.spec;
  if (spec.pitch != spec.cols) {
    spec.role == Role::in_out ? poison(tensor) : fill_padding(tensor);
  }
  if (spec.fill) {
    spec.fill(tensor, seed);
    return;
  }
  // Integers have neither NaN nor infinity: what these convert to is no number that a problem has.
  if (is_integer(spec.dtype) && kind != InputKind::one_hot) kind = InputKind::integers;
  for (char c : spec.name) seed = mix_bits(seed ^ static_cast<unsigned char>(c));
  if (spec.rows == 0 || spec.cols == 0) return;
  parallel_for(spec.rows * spec.cols, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t col = index % spec.cols;
      tensor.set(index / spec.cols, col, value_of(kind, spec.dtype, seed, index - col, col));
    }
  });
  const auto special = static_cast<std::int64_t>(mix_bits(~seed) %
                                                 static_cast<std::uint64_t>(spec.rows * spec.cols));
  const std::int64_t row = special / spec.cols;
  const std::int64_t col = special % spec.cols;
  if (kind == InputKind::one_nan) {
    tensor.set(row, col, std::numeric_limits<double>::quiet_NaN());
  } else if (kind == InputKind::one_inf) {
    tensor.set(row, col, std::numeric_limits<double>::infinity());
  } else if (kind == InputKind::one_hot) {
    tensor.set(row, col, 1);
  }
}

std::uint32_t poison_bits(DType dtype) {
  switch (dtype) {
    case DType::i8: return 0xad;
    case DType::e4m3: return 0xff;
    case DType::e5m2: return 0x7d;
    case DType::f16: return 0x7dad;
    case DType::bf16: return 0x7fad;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 0x7fadbeef;
    case DType::f64:
    case DType::i64: return 0x7ff4beef;
  }
  return 0;
}

void poison(HostTensor& tensor) {
  const std::uint32_t bits = poison_bits(tensor.spec.dtype);
  const std::size_t width = std::min<std::size_t>(dtype_bytes(tensor.spec.dtype), 4);
  for (std::size_t at = 0; at + width <= tensor.storage.size(); at += width) {
    std::memcpy(tensor.storage.data() + at, &bits, width);
  }
}

bool is_poison(const HostTensor& tensor, std::int64_t row, std::int64_t col) {
  const std::uint32_t mark = poison_bits(tensor.spec.dtype);
  const std::int64_t at = row * tensor.spec.pitch + col;
  // Loads of known widths: this is called for every element of every output.
  const auto holds = [&](auto expected) {
    decltype(expected) bits;
    std::memcpy(&bits, tensor.storage.data() + at * std::int64_t{sizeof bits}, sizeof bits);
    return bits == expected;
  };
  switch (dtype_bytes(tensor.spec.dtype)) {
    case 1: return holds(static_cast<std::uint8_t>(mark));
    case 2: return holds(static_cast<std::uint16_t>(mark));
    case 4: return holds(mark);
    default: return holds(std::uint64_t{mark} << 32 | mark);
  }
}

}  // namespace cookbook
