// SPDX-License-Identifier: MIT
// Chapter 0's problems for other element types than bf16 and fp32.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "chapters/00_roofs/problem.hpp"
#include "common/device/tensor_types.cuh"

namespace cookbook::roofs {

// An element type of the tensor cores: `Element` in memory, `Sum` in the output, `Register` of an
// accumulator. Any bits make an operand, so that they change as in a GEMM: draw() turns them into a
// value that the type has exactly. lost_bits: what one step can lose of the accumulator, relative
// to it.
struct Tf32 {
  using Element = float;
  using Sum = float;
  using Register = float;
  static constexpr DType kIn = DType::f32, kOut = DType::f32;
  static constexpr double kLost = 0x1p-23;
  static double draw(std::uint32_t bits) {
    return (static_cast<double>(bits % 2048) - 1024) / 1024;
  }
};
struct E4m3 {
  using Element = unsigned char;
  using Sum = float;
  using Register = float;
  static constexpr DType kIn = DType::e4m3, kOut = DType::f32;
  static constexpr double kLost = 0x1p-13;  // see chapter 8's sidebar
  static double draw(std::uint32_t bits) {
    return (static_cast<double>(bits % 32) - 15.5) / 16 *
           std::ldexp(1, static_cast<int>(bits >> 29));
  }
};
struct Int8 {
  using Element = signed char;
  using Sum = int;
  using Register = uint32_t;
  static constexpr DType kIn = DType::i8, kOut = DType::i32;
  static constexpr double kLost = 0;
  static double draw(std::uint32_t bits) { return static_cast<double>(bits % 256) - 128; }
};

/// As ProductProblem, for element type T: every unit adds A * B to its accumulators `repeats`
/// times. A is kM x kK, B is kK x kN (stored n-major: B[n][k]); a row of each has kRowBytes. out
/// holds repeats * A * B once per unit.
template <class T, int kM_, int kN_, int kRowBytes>
struct TypeProblem {
  static constexpr int kM = kM_, kN = kN_,
                       kK = kRowBytes / static_cast<int>(sizeof(typename T::Element));
  static constexpr bool kExactOnIntegers = false;  // fills its operands
  std::int64_t units, repeats;

  static TypeProblem make(const Size& size, const Variant&) {
    require_dims(size, 2, "product takes units x repeats");
    return {size[0], size[1]};
  }
  std::vector<TensorSpec> tensors() const {
    auto fill = [](HostTensor& tensor, std::uint64_t seed) {
      auto state = static_cast<std::uint32_t>(seed * 2 + (tensor.spec.name == "a" ? 1 : 0));
      for (std::int64_t r = 0; r < tensor.spec.rows; ++r) {
        for (std::int64_t c = 0; c < tensor.spec.cols; ++c) {
          state = state * 1664525u + 1013904223u;
          tensor.set(r, c, T::draw((state >> 9) * 2654435761u >> 1));
        }
      }
    };
    return {{"a", T::kIn, kM, kK, kK, Role::input, fill},
            {"b", T::kIn, kN, kK, kK, Role::input, fill},
            {"out", T::kOut, units * kM, kN, kN, Role::output}};
  }
  double bytes() const { return 4.0 * static_cast<double>(units * kM * kN); }
  double flops() const { return 2.0 * kM * kN * kK * static_cast<double>(units * repeats); }
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    // An instruction takes 32 bytes of k, and adds them to the accumulator in one step.
    const double passes = static_cast<double>(repeats), steps = passes * kRowBytes / 32;
    const HostTensor &a = tensors["a"], &b = tensors["b"];
    for (int n = 0; n < kN; ++n) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < kK; ++k) {
        const double product = a.at(row % kM, k) * b.at(n, k);
        sum += product;
        magnitude += std::fabs(product);
      }
      value[n] = repeats == 0 ? 0 : sum * passes;
      bound[n] = 2 * steps * T::kLost * magnitude * passes;
    }
  }
};

template <class T>
struct TypeBuffers {
  const typename T::Element* a;
  const typename T::Element* b;
  typename T::Sum* out;
  static TypeBuffers bind(const DevicePointers& at) {
    return {at.get<const typename T::Element>("a"), at.get<const typename T::Element>("b"),
            at.get<typename T::Sum>("out")};
  }
};

template <class T>
using MmaTypeProblem = TypeProblem<T, 64, 32, 32>;
template <class T>
using WgmmaTypeProblem = TypeProblem<T, 128, 256, 128>;

/// FmaProblem in fp64.
struct Fma64Problem {
  static constexpr std::int64_t kThreads = FmaProblem::kThreads;
  static constexpr int kChains = 8;                // each half as wide
  static constexpr bool kExactOnIntegers = false;  // fills `a` with fractions
  std::int64_t blocks, repeats;

  static Fma64Problem make(const Size& size, const Variant&) {
    require_dims(size, 2, "fma takes blocks x repeats");
    return {size[0], size[1]};
  }
  std::vector<TensorSpec> tensors() const {
    std::vector<TensorSpec> specs = FmaProblem{blocks, repeats}.tensors();
    for (TensorSpec& spec : specs) spec.dtype = DType::f64;
    return specs;
  }
  double bytes() const { return 8.0 * static_cast<double>(blocks * kThreads); }
  double flops() const { return 2.0 * static_cast<double>(blocks * kThreads * kChains * repeats); }
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t, double* value,
                     double* bound) const {
    for (std::int64_t t = 0; t < kThreads; ++t) {
      const double a = tensors["a"].at(0, t);
      value[t] = 0;
      for (int chain = 0; chain < kChains; ++chain) {
        double x = chain;
        for (std::int64_t r = 0; r < repeats; ++r) x = std::fma(x, a, 0.5);
        value[t] += x;
      }
      // As in FmaProblem; the reference rounds as often, in the same places.
      bound[t] = 64 * 0x1p-53 * (kChains * (kChains + 2.0));
    }
  }
};

struct Fma64Buffers {
  const double* a;
  double* out;
  static Fma64Buffers bind(const DevicePointers& at) {
    return {at.get<const double>("a"), at.get<double>("out")};
  }
};

}  // namespace cookbook::roofs
