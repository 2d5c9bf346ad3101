// SPDX-License-Identifier: MIT
// The problem: the discrete Fourier transform of every row of 1,024 complex numbers, fp32.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::fft {

inline constexpr int kPoints = 1024;
inline constexpr int kPasses = 10;  // log2(kPoints)

/// Rows, and their pitches in floats. A complex number is two floats, real part first.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t in_pitch = 0, out_pitch = 0;  // at least 2 * kPoints
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 1 || size[0] < 0 || size[0] >= std::int64_t{1} << 31) {
      throw BadSize("takes one size, 0 <= rows < 2^31");
    }
    return {{size[0], 2 * kPoints + variant.of("in").extra_pitch,
             2 * kPoints + variant.of("out").extra_pitch}};
  }

  static std::complex<double> root(std::int64_t j) {
    return std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j) / kPoints);
  }

  std::vector<TensorSpec> tensors() const {
    // exp(-2 pi i j / 1024) for j = 0 .. 1023, rounded to fp32. A level may use it or not.
    TensorSpec roots{"roots", DType::f32, 1, 2 * kPoints, 2 * kPoints, Role::input};
    roots.fill = [](HostTensor& tensor, std::uint64_t) {
      for (std::int64_t j = 0; j < kPoints; ++j) {
        tensor.set(0, 2 * j, root(j).real());
        tensor.set(0, 2 * j + 1, root(j).imag());
      }
    };
    return {{"in", DType::f32, shape.rows, 2 * kPoints, shape.in_pitch, Role::input},
            roots,
            {"out", DType::f32, shape.rows, 2 * kPoints, shape.out_pitch, Role::output}};
  }
  static constexpr bool kExactOnIntegers = false;  // roots are no whole numbers

  /// The fewest bytes through device memory: each number is read once and written once.
  double bytes() const { return 16.0 * kPoints * static_cast<double>(shape.rows); }
  /// 5 n log2(n), as it is counted for every algorithm.
  double flops() const { return 5.0 * kPoints * kPasses * static_cast<double>(shape.rows); }

  /// A row in fp64, by the algorithm of Cooley and Tukey. The error of such an algorithm in fp32 is
  /// at most about 7 unit roundoffs per pass, relative to the norm of all results (Higham, Accuracy
  /// and Stability of Numerical Algorithms, chapter 24). It spreads over the results, so one
  /// result's share is 7 passes times the norm of the inputs.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    std::vector<double> in(2 * kPoints);
    tensors["in"].read_row(row, 2 * kPoints, in.data());
    double squares = 0;
    for (const double part : in) squares += part * part;
    if (!std::isfinite(squares)) {  // which results are NaN depends on the algorithm: any will do
      for (int i = 0; i < 2 * kPoints; ++i) value[i] = 0, bound[i] = INFINITY;
      return;
    }
    std::vector<std::complex<double>> x(kPoints), next(kPoints);
    for (int j = 0; j < kPoints; ++j) x[j] = {in[2 * j], in[2 * j + 1]};
    // Decimation in time: the results of the even and of the odd elements, then of both.
    for (int j = 0; j < kPoints; ++j) {
      int reversed = 0;
      for (int bit = 0; bit < kPasses; ++bit) reversed |= (j >> bit & 1) << (kPasses - 1 - bit);
      next[reversed] = x[j];
    }
    for (int half = 1; half < kPoints; half *= 2) {
      for (int begin = 0; begin < kPoints; begin += 2 * half) {
        for (int k = 0; k < half; ++k) {
          const std::complex<double> even = next[begin + k];
          const std::complex<double> odd = root(k * (kPoints / 2 / half)) * next[begin + half + k];
          next[begin + k] = even + odd, next[begin + half + k] = even - odd;
        }
      }
    }
    const double allowed = 8 * kPasses * unit_roundoff(DType::f32) * std::sqrt(squares) +
                           2 * kPoints * half_ulp(DType::f32, 0);
    for (int k = 0; k < kPoints; ++k) {
      value[2 * k] = next[k].real(), value[2 * k + 1] = next[k].imag();
      bound[2 * k] = bound[2 * k + 1] = allowed;
    }
  }
};

struct Buffers {
  const float* in = nullptr;
  const float* roots = nullptr;
  float* out = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("in"), at.get<const float>("roots"), at.get<float>("out")};
  }
};

using Level = LevelOf<Problem, Buffers>;

}  // namespace cookbook::fft
