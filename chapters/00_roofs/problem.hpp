// SPDX-License-Identifier: MIT
// Chapter 0's problems. A roof kernel keeps only one unit of the GPU busy. Each still computes a
// result that can be checked, because the compiler deletes a kernel whose result is never used.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
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

  static SharedProblem make(const Size& size, const Variant& variant) {
    require_dims(size, 2, "shared takes blocks x repeats");
    (void)variant;
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

/// Chains of fused multiply-adds: every thread of `blocks` x 256 runs 16 chains
/// x = x * a + b, `repeats` steps each; out[block][thread] = the sum of its chains.
struct FmaProblem {
  static constexpr std::int64_t kThreads = 256;
  static constexpr int kChains = 16;
  static constexpr bool kExactOnIntegers = false;  // fills `a` with fractions
  std::int64_t blocks, repeats;

  static FmaProblem make(const Size& size, const Variant&) {
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
    return {{"a", DType::f32, 1, kThreads, kThreads, Role::input, fill},
            {"out", DType::f32, blocks, kThreads, kThreads, Role::output}};
  }
  double bytes() const { return 4.0 * static_cast<double>(blocks * kThreads); }
  double flops() const { return 2.0 * static_cast<double>(blocks * kThreads * kChains * repeats); }
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t, double* value,
                     double* bound) const {
    for (std::int64_t t = 0; t < kThreads; ++t) {
      const double a = tensors["a"].at(0, t);
      value[t] = 0;
      for (int chain = 0; chain < kChains; ++chain) {
        double x = chain;
        for (std::int64_t r = 0; r < repeats; ++r) x = x * a + 0.5;
        value[t] += x;
      }
      // Each step rounds once and damps the error so far by a <= 3/4.
      bound[t] = 64 * 0x1p-24 * (kChains * (kChains + 2.0));
    }
  }
};

struct FmaBuffers {
  const float* a;
  float* out;
  static FmaBuffers bind(const DevicePointers& at) {
    return {at.get<const float>("a"), at.get<float>("out")};
  }
};

/// The same matrix multiplication repeatedly: every unit (a warp, a block) adds A * B to its
/// accumulators `repeats` times. A is kM x kK, B is kK x kN (stored n-major: B[n][k]), bf16; out
/// holds repeats * A * B once per unit, fp32.
template <int kM_, int kN_, int kK_>
struct ProductProblem {
  static constexpr int kM = kM_, kN = kN_, kK = kK_;
  std::int64_t units, repeats;

  static ProductProblem make(const Size& size, const Variant&) {
    require_dims(size, 2, "product takes units x repeats");
    return {size[0], size[1]};
  }
  std::vector<TensorSpec> tensors() const {
    return {{"a", DType::bf16, kM, kK, kK, Role::input},
            {"b", DType::bf16, kN, kK, kK, Role::input},
            {"out", DType::f32, units * kM, kN, kN, Role::output}};
  }
  double bytes() const { return 4.0 * static_cast<double>(units * kM * kN); }
  double flops() const { return 2.0 * kM * kN * kK * static_cast<double>(units * repeats); }
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor &a = tensors["a"], &b = tensors["b"];
    for (int n = 0; n < kN; ++n) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < kK; ++k) {
        const double product = a.at(row % kM, k) * b.at(n, k);
        sum += product;
        magnitude += std::fabs(product);
      }
      const double passes = static_cast<double>(repeats);
      value[n] = repeats == 0 ? 0 : sum * passes;
      bound[n] = 2 * kK * passes * 0x1p-24 * magnitude * passes + 0x1p-149;
    }
  }
};

struct ProductBuffers {
  const bf16* a;
  const bf16* b;
  float* out;
  static ProductBuffers bind(const DevicePointers& at) {
    return {at.get<const bf16>("a"), at.get<const bf16>("b"), at.get<float>("out")};
  }
};

using MmaProblem = ProductProblem<64, 32, 16>;
using WgmmaProblem = ProductProblem<128, 256, 64>;

}  // namespace cookbook::roofs
