// SPDX-License-Identifier: MIT
// Chapter 0's problems. A roof kernel keeps only one unit of the GPU busy. Each still computes a
// result that can be checked, because the compiler deletes a kernel whose result is never used.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::roofs {

inline void require_dims(const Size& size, std::size_t dims, const char* what) {
  if (size.size() != dims) throw BadSize(what);
  for (std::int64_t extent : size) {
    if (extent < 0) throw BadSize(what);
  }
}

/// Reads n floats `repeats` times: out[r] = the sum of row r of 1,024 floats, times repeats. A
/// block reads one row at a time.
struct ReadProblem {
  static constexpr std::int64_t kRow = 1024;
  std::int64_t rows_, repeats;

  static ReadProblem make(const Size& size, const Variant&) {
    require_dims(size, 2, "read takes rows x repeats");
    return {size[0], size[1]};
  }
  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, rows_, kRow, kRow, Role::input},
            {"out", DType::f32, rows_, 1, 1, Role::output}};
  }
  double bytes() const { return 4.0 * static_cast<double>(rows_ * kRow * repeats); }
  double flops() const { return 0; }
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& in = tensors["in"];
    double sum = 0, magnitude = 0;
    for (std::int64_t c = 0; c < kRow; ++c) {
      sum += in.at(row, c);
      magnitude += std::fabs(in.at(row, c));
    }
    const double passes = static_cast<double>(repeats);
    *value = sum * passes;
    *bound = passes * (magnitude * 16 * (8 + passes) * 0x1p-24 + 0x1p-149);
    if (repeats == 0) *value = *bound = 0;
  }
};

struct ReadBuffers {
  const float* in;
  float* out;
  static ReadBuffers bind(const DevicePointers& at) {
    return {at.get<const float>("in"), at.get<float>("out")};
  }
};

/// Each thread of `blocks` x 256 reads four floats from a ring of 1,024 floats in shared memory,
/// `repeats` times, and moves on by 256 threads each time: out[block][thread] = the sum.
struct SharedProblem {
  static constexpr std::int64_t kThreads = 256;
  std::int64_t blocks, repeats;

  static SharedProblem make(const Size& size, const Variant&) {
    require_dims(size, 2, "shared takes blocks x repeats");
    return {size[0], size[1]};
  }
  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, 1, 4 * kThreads, 4 * kThreads, Role::input},
            {"out", DType::f32, blocks, kThreads, kThreads, Role::output}};
  }
  double bytes() const { return 16.0 * static_cast<double>(blocks * kThreads * repeats); }
  double flops() const { return 0; }
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t, double* value,
                     double* bound) const {
    const HostTensor& in = tensors["in"];
    for (std::int64_t t = 0; t < kThreads; ++t) {
      // Thread t reads vector (t + 32 r) mod 256 in step r: eight distinct vectors, in turn.
      double sum = 0, magnitude = 0;
      for (std::int64_t step = 0; step < 8; ++step) {
        const std::int64_t times = repeats / 8 + (step < repeats % 8 ? 1 : 0);
        for (std::int64_t i = 0; i < 4 && times > 0; ++i) {
          const double x = in.at(0, 4 * ((t + 32 * step) % kThreads) + i);
          sum += x * static_cast<double>(times);
          magnitude += std::fabs(x) * static_cast<double>(times);
        }
      }
      value[t] = sum;
      bound[t] = magnitude * (static_cast<double>(repeats) + 8) * 0x1p-24 + 0x1p-149;
    }
  }
};
using SharedBuffers = ReadBuffers;

/// Chains of fused multiply-adds in fp32 or fp64: every thread of `blocks` x 256 runs kChains
/// chains x = x * a + b, `repeats` steps each; out[block][thread] = the sum of its chains.
template <class T, int kChainsValue>
struct FmaProblemOf {
  using Element = T;
  static constexpr DType kType = std::is_same_v<T, float> ? DType::f32 : DType::f64;
  static constexpr std::int64_t kThreads = 256;
  static constexpr int kChains = kChainsValue;
  static constexpr bool kExactOnIntegers = false;  // fills `a` with fractions
  std::int64_t blocks, repeats;

  static FmaProblemOf make(const Size& size, const Variant&) {
    require_dims(size, 2, "fma takes blocks x repeats");
    return {size[0], size[1]};
  }
  std::vector<TensorSpec> tensors() const {
    // |a| < 1, so the chains stay bounded, and so does the error.
    auto fill = [](HostTensor& tensor, std::uint64_t seed) {
      for (std::int64_t c = 0; c < tensor.spec.cols; ++c) {
        const auto bits = (static_cast<std::uint64_t>(c) + 1) * (2654435761u + 2 * seed);
        tensor.set(0, c, 0.25 + 0.5 * static_cast<double>((bits >> 13) % 1024) / 1024);
      }
    };
    return {{"a", kType, 1, kThreads, kThreads, Role::input, fill},
            {"out", kType, blocks, kThreads, kThreads, Role::output}};
  }
  double bytes() const { return sizeof(T) * static_cast<double>(blocks * kThreads); }
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
      // Each step rounds once and damps the error so far by a <= 3/4. In fp64 the reference rounds
      // as often, in the same places.
      bound[t] = 64 * unit_roundoff(kType) * (kChains * (kChains + 2.0));
    }
  }
};

template <class T>
struct FmaBuffers {
  const T* a;
  T* out;
  static FmaBuffers bind(const DevicePointers& at) {
    return {at.get<const T>("a"), at.get<T>("out")};
  }
};

using FmaProblem = FmaProblemOf<float, 16>;
using Fma64Problem = FmaProblemOf<double, 8>;  // each twice as wide

/// An element type of the tensor cores: `Element` in memory, `Sum` in the output, `Register` of an
/// accumulator. kLost: what one step can lose of the accumulator, relative to it. types.hpp has the
/// others.
struct Bf16 {
  using Element = bf16;
  using Sum = float;
  using Register = float;
  static constexpr DType kIn = DType::bf16, kOut = DType::f32;
  static constexpr double kLost = 16 * 0x1p-24;  // of 16 terms, a rounding each
};

/// The same matrix multiplication repeatedly, for element type T: every unit (a warp, a block) adds
/// A * B to its accumulators `repeats` times. A is kM x kK, B is kK x kN (stored n-major: B[n][k]);
/// a row of each has kRowBytes. out holds repeats * A * B once per unit.
template <class T, int kM_, int kN_, int kRowBytes>
struct ProductProblem {
  static constexpr int kM = kM_, kN = kN_,
                       kK = kRowBytes / static_cast<int>(sizeof(typename T::Element));
  static constexpr bool kDraws = requires { T::draw(0u); };  // its operands: see types.hpp
  static constexpr bool kExactOnIntegers = !kDraws;
  std::int64_t units, repeats;

  static ProductProblem make(const Size& size, const Variant&) {
    require_dims(size, 2, "product takes units x repeats");
    return {size[0], size[1]};
  }
  std::vector<TensorSpec> tensors() const {
    std::vector<TensorSpec> specs = {{"a", T::kIn, kM, kK, kK, Role::input},
                                     {"b", T::kIn, kN, kK, kK, Role::input},
                                     {"out", T::kOut, units * kM, kN, kN, Role::output}};
    if constexpr (kDraws) specs[0].fill = specs[1].fill = fill;
    return specs;
  }
  static void fill(HostTensor& tensor, std::uint64_t seed) {
    auto state = static_cast<std::uint32_t>(seed * 2 + (tensor.spec.name == "a" ? 1 : 0));
    for (std::int64_t r = 0; r < tensor.spec.rows; ++r) {
      for (std::int64_t c = 0; c < tensor.spec.cols; ++c) {
        state = state * 1664525u + 1013904223u;
        tensor.set(r, c, T::draw((state >> 9) * 2654435761u >> 1));
      }
    }
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
      bound[n] = 2 * steps * T::kLost * magnitude * passes + (T::kLost > 0 ? 0x1p-149 : 0);
    }
  }
};

template <class T>
struct ProductBuffers {
  const typename T::Element* a;
  const typename T::Element* b;
  typename T::Sum* out;
  static ProductBuffers bind(const DevicePointers& at) {
    return {at.get<const typename T::Element>("a"), at.get<const typename T::Element>("b"),
            at.get<typename T::Sum>("out")};
  }
};

template <class T>
using MmaTypeProblem = ProductProblem<T, 64, 32, 32>;
template <class T>
using WgmmaTypeProblem = ProductProblem<T, 128, 256, 128>;
using MmaProblem = MmaTypeProblem<Bf16>;
using WgmmaProblem = WgmmaTypeProblem<Bf16>;

}  // namespace cookbook::roofs
