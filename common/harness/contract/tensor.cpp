// SPDX-License-Identifier: MIT
#include "common/harness/contract/tensor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace cookbook {
namespace {

struct Format {  // of a floating-point type
  int mantissa_bits;
  int min_exponent;  // of the smallest normal number
  double largest;
  bool has_infinity = true;
  bool saturates = false;
};
constexpr Format kFloat{23, -126, std::numeric_limits<float>::max()};
constexpr Format kDouble{52, -1022, std::numeric_limits<double>::max()};
constexpr Format kHalf{10, -14, 65504.0};
constexpr Format kBfloat{7, -126, 3.3895313892515355e38};
constexpr Format kE4m3{3, -6, 448.0, false, true};
constexpr Format kE5m2{2, -14, 57344.0, true, true};

struct Traits {
  const char* name;
  std::size_t bytes;
  const Format* format;  // null: whole numbers
  double largest;
  bool saturates = false;
};
constexpr Traits kTraits[] = {
    // in the order of DType
    {"f32", 4, &kFloat, kFloat.largest},
    {"f16", 2, &kHalf, kHalf.largest},
    {"bf16", 2, &kBfloat, kBfloat.largest},
    {"i32", 4, nullptr, std::numeric_limits<std::int32_t>::max()},
    {"f64", 8, &kDouble, kDouble.largest},
    {"u32", 4, nullptr, std::numeric_limits<std::uint32_t>::max()},
    {"i64", 8, nullptr, 0x1p63},
    {"i8", 1, nullptr, std::numeric_limits<std::int8_t>::max(), true},
    {"e4m3", 1, &kE4m3, kE4m3.largest, true},
    {"e5m2", 1, &kE5m2, kE5m2.largest, true},
};
const Traits& traits_of(DType dtype) { return kTraits[static_cast<std::size_t>(dtype)]; }

// 2^exponent for the exponent of a normal double. As bits: ldexp and ilogb are calls, and
// references take most of their time to decode the same operands again for every row.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// floor(log2 |value|); less than any format's min_exponent for 0 and denormals.
int exponent_of(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) - 1023;
}

// What follows stores doubles as elements, and reads elements as doubles: of the types of C++,
template <class T>
struct Number {
  static double decode(T stored) { return static_cast<double>(stored); }
  static T encode(double value) { return static_cast<T>(value); }
  static std::strong_ordering order(T a, T b) { return std::strong_order(a, b); }
};

struct Saturated : Number<std::int8_t> {
  static std::int8_t encode(double value) {
    if (std::isnan(value)) return 0;
    return static_cast<std::int8_t>(std::clamp(std::nearbyint(value), -128.0, 127.0));
  }
};

// and of a floating-point format of 8 or 16 bits. Its conversions are written out here, independent
// of the device types that the kernels use, so that an error in those is found.
template <const Format& kFormat, class Bits>
struct Narrow {
  static constexpr std::uint32_t kSign = 1u << (8 * sizeof(Bits) - 1);
  static constexpr std::uint32_t kHidden = 1u << kFormat.mantissa_bits;
  static constexpr std::uint32_t kInfinity = kSign - kHidden;

  static Bits encode(double value) {
    if (std::isnan(value)) return static_cast<Bits>(kSign - 1);
    const std::uint32_t sign = std::signbit(value) ? kSign : 0;
    double magnitude = std::fabs(value);
    if (kFormat.saturates) magnitude = std::min(magnitude, kFormat.largest);
    const double about = std::isinf(magnitude) ? kFormat.largest : magnitude;
    const double step =
        power_of_two(std::max(exponent_of(about), kFormat.min_exponent) - kFormat.mantissa_bits);
    magnitude = std::nearbyint(magnitude / step) * step;  // ties to even
    if (magnitude > kFormat.largest) return static_cast<Bits>(sign | kInfinity);
    const int exponent = std::max(exponent_of(magnitude), kFormat.min_exponent);
    const auto whole =
        static_cast<std::uint32_t>(magnitude * power_of_two(kFormat.mantissa_bits - exponent));
    if (whole < kHidden) return static_cast<Bits>(sign | whole);  // zero or denormal
    const auto biased = static_cast<std::uint32_t>(exponent - kFormat.min_exponent + 1);
    return static_cast<Bits>(sign | biased << kFormat.mantissa_bits | (whole - kHidden));
  }

  static double decode(Bits bits) {
    if constexpr (sizeof(Bits) == 1) {  // looked up: a GEMM's reference decodes B for every row
      static constexpr auto kValues = [] {
        std::array<double, 256> values{};
        for (int i = 0; i < 256; ++i) values[i] = value_of(static_cast<Bits>(i));
        return values;
      }();
      return kValues[bits];
    } else {
      return value_of(bits);
    }
  }
  static constexpr double value_of(Bits bits) {
    const std::uint32_t magnitude = bits & (kSign - 1);
    const int exponent = static_cast<int>(magnitude >> kFormat.mantissa_bits);
    double value = 0;
    if (kFormat.has_infinity ? magnitude > kInfinity : magnitude == kSign - 1) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (kFormat.has_infinity && magnitude == kInfinity) {
      value = std::numeric_limits<double>::infinity();
    } else {  // denormals have the smallest exponent and no hidden bit
      const std::uint32_t mantissa = magnitude % kHidden + (exponent == 0 ? 0 : kHidden);
      value =
          static_cast<int>(mantissa) *
          power_of_two(kFormat.min_exponent + std::max(exponent, 1) - 1 - kFormat.mantissa_bits);
    }
    return (bits & kSign) != 0 ? -value : value;
  }

  static std::strong_ordering order(Bits a, Bits b) {
    const auto key = [](int bits) { return bits < int{kSign} ? bits : int{kSign} - 1 - bits; };
    return key(a) <=> key(b);
  }
};

struct Bfloat : Narrow<kBfloat, std::uint16_t> {
  static double decode(std::uint16_t bits) {  // the upper half of an fp32
    return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
  }
};

// Calls `use` with the one of these that stores elements of `dtype`.
template <class Use>
auto with_codec(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::f32: return use(Number<float>());
    case DType::f16: return use(Narrow<kHalf, std::uint16_t>());
    case DType::bf16: return use(Bfloat());
    case DType::i32: return use(Number<std::int32_t>());
    case DType::f64: return use(Number<double>());
    case DType::u32: return use(Number<std::uint32_t>());
    case DType::i64: return use(Number<std::int64_t>());
    case DType::i8: return use(Saturated());
    case DType::e4m3: return use(Narrow<kE4m3, std::uint8_t>());
    case DType::e5m2: return use(Narrow<kE5m2, std::uint8_t>());
  }
  throw std::logic_error("no type of elements");
}

template <class Codec>
double decoded(Codec codec, const HostTensor& tensor, std::int64_t i) {
  decltype(codec.encode(0)) stored;
  std::memcpy(&stored, tensor.storage.data() + i * std::int64_t{sizeof stored}, sizeof stored);
  return codec.decode(stored);
}

}  // namespace

std::size_t dtype_bytes(DType dtype) { return traits_of(dtype).bytes; }
bool is_integer(DType dtype) { return traits_of(dtype).format == nullptr; }
bool saturates(DType dtype) { return traits_of(dtype).saturates; }
const char* dtype_name(DType dtype) { return traits_of(dtype).name; }
double unit_roundoff(DType dtype) {
  const Format* format = traits_of(dtype).format;
  return format ? power_of_two(-format->mantissa_bits - 1) : 0;
}
double largest(DType dtype) { return traits_of(dtype).largest; }

double half_ulp(DType dtype, double value) {
  const Format* format = traits_of(dtype).format;
  if (!format || !std::isfinite(value)) return 0;
  const int exponent =
      std::max(exponent_of(value), format->min_exponent) - format->mantissa_bits - 1;
  if (exponent >= kDouble.min_exponent) return power_of_two(exponent);
  // Half the smallest denormal of f64 is no double: the whole of it.
  return std::max(std::ldexp(1.0, exponent), std::numeric_limits<double>::denorm_min());
}

double rounded(DType dtype, double value) {
  return with_codec(dtype, [&](auto codec) { return codec.decode(codec.encode(value)); });
}

HostTensor::HostTensor(TensorSpec tensor_spec)
    : spec(std::move(tensor_spec)), storage(spec.bytes()) {}

double HostTensor::at(std::int64_t row, std::int64_t col) const {
  return with_codec(spec.dtype,
                    [&](auto codec) { return decoded(codec, *this, row * spec.pitch + col); });
}

void HostTensor::read_row(std::int64_t row, std::int64_t count, double* to) const {
  with_codec(spec.dtype, [&](auto codec) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = decoded(codec, *this, row * spec.pitch + i);
  });
}

void HostTensor::set(std::int64_t row, std::int64_t col, double value) {
  with_codec(spec.dtype, [&](auto codec) {
    const auto stored = codec.encode(value);
    const std::int64_t at = (row * spec.pitch + col) * std::int64_t{sizeof stored};
    std::memcpy(storage.data() + at, &stored, sizeof stored);
  });
}

void sort_elements(HostTensor& tensor, std::int64_t row, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  with_codec(tensor.spec.dtype, [&](auto codec) {
    using T = decltype(codec.encode(0));
    T* first = tensor.data<T>() + row * tensor.spec.pitch;
    std::sort(first + begin, first + end, [&](T a, T b) { return codec.order(a, b) < 0; });
  });
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
