// SPDX-License-Identifier: MIT
#include "common/harness/contract/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace cookbook {
namespace {

// A floating-point format of 8 or 16 bits: conversions written out here, independent of the device
// types that the kernels use, so that an error in those is found.
struct Narrow {
  int bits;
  int mantissa_bits;
  int min_exponent;  // of the smallest normal number
  double largest;
  bool has_infinity = true;
  bool saturates = false;
};
constexpr Narrow kHalf{16, 10, -14, 65504.0};
constexpr Narrow kBfloat{16, 7, -126, 3.3895313892515355e38};
constexpr Narrow kE4m3{8, 3, -6, 448.0, false, true};
constexpr Narrow kE5m2{8, 2, -14, 57344.0, true, true};

struct Traits {
  const char* name;
  std::size_t bytes;
  double unit_roundoff;  // 0: whole numbers
  double largest;
  bool saturates = false;
};
constexpr Traits kTraits[] = {
    // in the order of DType
    {"f32", 4, 0x1p-24, std::numeric_limits<float>::max()},
    {"f16", 2, 0x1p-11, kHalf.largest},
    {"bf16", 2, 0x1p-8, kBfloat.largest},
    {"i32", 4, 0, std::numeric_limits<std::int32_t>::max()},
    {"f64", 8, 0x1p-53, std::numeric_limits<double>::max()},
    {"u32", 4, 0, std::numeric_limits<std::uint32_t>::max()},
    {"i64", 8, 0, 0x1p63},
    {"i8", 1, 0, std::numeric_limits<std::int8_t>::max(), true},
    {"e4m3", 1, 0x1p-4, kE4m3.largest, true},
    {"e5m2", 1, 0x1p-3, kE5m2.largest, true},
};
const Traits& traits_of(DType dtype) { return kTraits[static_cast<std::size_t>(dtype)]; }

// 2^exponent for the exponent of a normal double. As bits: ldexp and ilogb are calls, and
// references take most of their time to decode the same operands again for every row.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// floor(log2 |value|); less than any format's min_exponent for 0 and denormals.
int exponent_of(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) - 1023;
}

double spacing(const Narrow& format, double value) {
  return power_of_two(std::max(exponent_of(value), format.min_exponent) - format.mantissa_bits);
}

std::uint16_t encode(const Narrow& format, double value) {
  const std::uint32_t sign_bit = 1u << (format.bits - 1);
  const int exponent_bits = format.bits - 1 - format.mantissa_bits;
  const std::uint16_t infinity =
      static_cast<std::uint16_t>(((1u << exponent_bits) - 1) << format.mantissa_bits);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? sign_bit : 0);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign_bit - 1);
  double magnitude = std::fabs(value);
  if (format.saturates) magnitude = std::min(magnitude, format.largest);
  const double step = spacing(format, std::isinf(magnitude) ? format.largest : magnitude);
  magnitude = std::nearbyint(magnitude / step) * step;  // ties to even
  if (magnitude > format.largest) return sign | infinity;
  if (magnitude == 0) return sign;
  const int exponent = std::max(exponent_of(magnitude), format.min_exponent);
  const double mantissa = magnitude * power_of_two(format.mantissa_bits - exponent);
  const auto whole = static_cast<std::uint32_t>(mantissa);
  const std::uint32_t hidden = 1u << format.mantissa_bits;
  if (whole < hidden) return sign | static_cast<std::uint16_t>(whole);  // denormal
  const std::uint32_t biased = static_cast<std::uint32_t>(exponent - format.min_exponent + 1);
  return sign | static_cast<std::uint16_t>((biased << format.mantissa_bits) | (whole - hidden));
}

double decode_byte(const Narrow& format, std::uint8_t bits) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits & 0x7f) >> format.mantissa_bits;
  const int all_ones = 0x7f >> format.mantissa_bits;
  double magnitude = 0;
  if (exponent == all_ones && format.has_infinity) {
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if ((bits & 0x7f) == 0x7f) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else {  // denormals have the smallest exponent and no hidden bit
    const int hidden = exponent == 0 ? 0 : 1 << format.mantissa_bits;
    magnitude = (hidden + mantissa) * power_of_two(format.min_exponent + std::max(exponent, 1) - 1 -
                                                   format.mantissa_bits);
  }
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

std::int8_t to_i8(double value) {
  if (std::isnan(value)) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(value), -128.0, 127.0));
}

double decode_half(std::uint16_t bits) {
  const std::uint64_t mantissa = bits & 0x3ff, sign = std::uint64_t{bits} >> 15 << 63;
  const int exponent = (bits & 0x7fff) >> 10;
  if (exponent == 31) {
    if (mantissa) return std::numeric_limits<double>::quiet_NaN();
    return sign ? -std::numeric_limits<double>::infinity()
                : std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) {  // zero or denormal
    const double magnitude =
        static_cast<double>(mantissa) * power_of_two(kHalf.min_exponent - kHalf.mantissa_bits);
    return sign ? -magnitude : magnitude;
  }
  const auto biased = static_cast<std::uint64_t>(exponent - 1 + kHalf.min_exponent + 1023);
  return std::bit_cast<double>(sign | biased << 52 | mantissa << 42);
}

// bf16 is the upper half of an fp32.
double decode_bfloat(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::size_t dtype_bytes(DType dtype) { return traits_of(dtype).bytes; }
bool is_integer(DType dtype) { return traits_of(dtype).unit_roundoff == 0; }
bool saturates(DType dtype) { return traits_of(dtype).saturates; }
const char* dtype_name(DType dtype) { return traits_of(dtype).name; }
double unit_roundoff(DType dtype) { return traits_of(dtype).unit_roundoff; }
double largest(DType dtype) { return traits_of(dtype).largest; }

double half_ulp(DType dtype, double value) {
  if (!std::isfinite(value)) return 0;
  switch (dtype) {
    case DType::f32: return 0.5 * spacing({32, 23, -126, 0}, value);
    case DType::f16: return 0.5 * spacing(kHalf, value);
    case DType::bf16: return 0.5 * spacing(kBfloat, value);
    case DType::f64:  // half the smallest denormal is no double: the whole of it
      return std::max(std::ldexp(1.0, std::max(exponent_of(value), -1022) - 53),
                      std::numeric_limits<double>::denorm_min());
    case DType::e4m3: return 0.5 * spacing(kE4m3, value);
    case DType::e5m2: return 0.5 * spacing(kE5m2, value);
    default: return 0;  // whole numbers
  }
}

double rounded(DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return static_cast<double>(static_cast<float>(value));
    case DType::f16: return decode_half(encode(kHalf, value));
    case DType::bf16: return decode_bfloat(encode(kBfloat, value));
    case DType::i32: return static_cast<double>(static_cast<std::int32_t>(value));
    case DType::f64: return value;
    case DType::u32: return static_cast<double>(static_cast<std::uint32_t>(value));
    case DType::i64: return static_cast<double>(static_cast<std::int64_t>(value));
    case DType::i8: return to_i8(value);
    case DType::e4m3: return decode_byte(kE4m3, static_cast<std::uint8_t>(encode(kE4m3, value)));
    case DType::e5m2: return decode_byte(kE5m2, static_cast<std::uint8_t>(encode(kE5m2, value)));
  }
  return value;
}

HostTensor::HostTensor(TensorSpec tensor_spec)
    : spec(std::move(tensor_spec)), storage(spec.bytes()) {}

namespace {

// Calls `use` with what turns the i-th element of `tensor` into a double.
template <class Use>
auto with_decoder(const HostTensor& tensor, Use&& use) {
  const std::byte* base = tensor.storage.data();
  const auto number = [base, &use](auto type) {
    return use([base](std::int64_t i) {
      using T = decltype(type);
      return static_cast<double>(load<T>(base + i * static_cast<std::int64_t>(sizeof(T))));
    });
  };
  switch (tensor.spec.dtype) {
    case DType::bf16:
      return use(
          [base](std::int64_t i) { return decode_bfloat(load<std::uint16_t>(base + i * 2)); });
    case DType::f16:
      return use([base](std::int64_t i) { return decode_half(load<std::uint16_t>(base + i * 2)); });
    case DType::e4m3:
      return use(
          [base](std::int64_t i) { return decode_byte(kE4m3, load<std::uint8_t>(base + i)); });
    case DType::e5m2:
      return use(
          [base](std::int64_t i) { return decode_byte(kE5m2, load<std::uint8_t>(base + i)); });
    case DType::f32: return number(float());
    case DType::i32: return number(std::int32_t());
    case DType::f64: return number(double());
    case DType::u32: return number(std::uint32_t());
    case DType::i64: return number(std::int64_t());
    case DType::i8: return number(std::int8_t());
  }
  return use([](std::int64_t) { return 0.0; });
}

}  // namespace

double HostTensor::at(std::int64_t row, std::int64_t col) const {
  return with_decoder(*this, [&](auto decode) { return decode(row * spec.pitch + col); });
}

void HostTensor::read_row(std::int64_t row, std::int64_t count, double* to) const {
  with_decoder(*this, [&](auto decode) {
    for (std::int64_t col = 0; col < count; ++col) to[col] = decode(row * spec.pitch + col);
  });
}

void HostTensor::set(std::int64_t row, std::int64_t col, double value) {
  std::byte* to = storage.data() + (row * spec.pitch + col) * dtype_bytes(spec.dtype);
  const auto store = [to](auto element) { std::memcpy(to, &element, sizeof element); };
  switch (spec.dtype) {
    case DType::f32: return store(static_cast<float>(value));
    case DType::f16: return store(encode(kHalf, value));
    case DType::bf16: return store(encode(kBfloat, value));
    case DType::i32: return store(static_cast<std::int32_t>(value));
    case DType::f64: return store(value);
    case DType::u32: return store(static_cast<std::uint32_t>(value));
    case DType::i64: return store(static_cast<std::int64_t>(value));
    case DType::i8: return store(to_i8(value));
    case DType::e4m3: return store(static_cast<std::uint8_t>(encode(kE4m3, value)));
    case DType::e5m2: return store(static_cast<std::uint8_t>(encode(kE5m2, value)));
  }
}

void sort_elements(HostTensor& tensor, std::int64_t row, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  // By keys that sort as unsigned numbers: NaNs have no order that std::sort could use, and an i64
  // is more than a double holds.
  const std::size_t width = dtype_bytes(tensor.spec.dtype);
  const std::uint64_t sign = std::uint64_t{1} << (8 * width - 1);
  const std::uint64_t all = sign | (sign - 1);
  const bool is_float = !is_integer(tensor.spec.dtype);
  const bool is_signed = is_float || tensor.spec.dtype != DType::u32;
  const auto key = [&](std::uint64_t bits) {
    if (is_float && (bits & sign) != 0) return bits ^ all;
    return is_signed ? bits ^ sign : bits;
  };
  const auto bits_of = [&](std::uint64_t of) {
    if (is_float && (of & sign) == 0) return of ^ all;
    return is_signed ? of ^ sign : of;
  };
  std::byte* first =
      tensor.storage.data() + static_cast<std::size_t>(row * tensor.spec.pitch + begin) * width;
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(end - begin));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, first + i * width, width);
    keys[i] = key(bits);
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t bits = bits_of(keys[i]);
    std::memcpy(first + i * width, &bits, width);
  }
}

const HostTensor& HostTensors::operator[](const std::string& name) const {
  for (const HostTensor& tensor : list) {
    if (tensor.spec.name == name) return tensor;
  }
  throw std::out_of_range("no tensor called " + name);
}

HostTensor& HostTensors::operator[](const std::string& name) {
  return const_cast<HostTensor&>(static_cast<const HostTensors&>(*this)[name]);
}

}  // namespace cookbook
