// SPDX-License-Identifier: MIT
// Rotary position embedding (RoPE): every pair (x[i], x[i + dim / 2]) of a head is rotated by an
// angle that grows with the token's position. In place, as models do it, and with separate buffers
// for searching.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::rope {

struct Shape {
  std::int64_t tokens = 0, heads = 0, half = 0;  // half: pairs of a head
  std::int64_t pitch = 0;                        // elements between heads
  std::int64_t table_pitch = 0;                  // of cos and sin: one row per token
  std::int64_t pairs() const { return tokens * heads * half; }
};

/// x: (tokens * heads) x dim, bf16. cos, sin: tokens x dim / 2, fp32.
/// kSplit: the result goes to `out` and `in` is unchanged; otherwise both are `x`.
template <bool kSplit>
struct ProblemT {
  Shape shape;
  static constexpr bool kExactOnIntegers = false;  // sines and cosines

  static ProblemT make(const Size& size, const Variant& variant) {
    if (size.size() != 3 || size[0] < 0 || size[1] < 0 || size[2] < 0 || size[2] % 2 != 0) {
      throw BadSize("RoPE takes three sizes, tokens x heads x head_dim, head_dim even");
    }
    // `in` and `out` share a pitch, and so do the tables.
    return {{size[0], size[1], size[2] / 2, size[2] + variant.of(kSplit ? "in" : "x").extra_pitch,
             size[2] / 2 + variant.of("cos").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    const std::int64_t rows = shape.tokens * shape.heads, cols = 2 * shape.half;
    const auto table = [this](const char* name, double (*of)(double)) {
      return TensorSpec{name,
                        DType::f32,
                        shape.tokens,
                        shape.half,
                        shape.table_pitch,
                        Role::input,
                        [of](HostTensor& tensor, std::uint64_t) {
                          const double half = static_cast<double>(tensor.spec.cols);
                          for (std::int64_t t = 0; t < tensor.spec.rows; ++t) {
                            for (std::int64_t i = 0; i < tensor.spec.cols; ++i) {
                              const double turn = std::pow(10000.0, -static_cast<double>(i) / half);
                              tensor.set(t, i, of(static_cast<double>(t + 1) * turn));
                            }
                          }
                        }};
    };
    const auto cosine = [](double x) { return std::cos(x); };
    const auto sine = [](double x) { return std::sin(x); };
    if (kSplit) {
      return {{"in", DType::bf16, rows, cols, shape.pitch, Role::input},
              {"out", DType::bf16, rows, cols, shape.pitch, Role::output},
              table("cos", cosine),
              table("sin", sine)};
    }
    return {{"x", DType::bf16, rows, cols, shape.pitch, Role::in_out},
            table("cos", cosine),
            table("sin", sine)};
  }

  double bytes() const {  // x read and written, the tables read once
    return 8.0 * static_cast<double>(shape.pairs()) +
           8.0 * static_cast<double>(shape.tokens * shape.half);
  }
  double flops() const { return 0; }

  /// Two multiplications and an addition in fp32, then one rounding to bf16.
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& x = tensors[kSplit ? "in" : "x"];
    const std::int64_t token = row / shape.heads;
    for (std::int64_t i = 0; i < shape.half; ++i) {
      const double low = x.at(row, i), high = x.at(row, i + shape.half);
      const double c = tensors["cos"].at(token, i), s = tensors["sin"].at(token, i);
      const auto put = [&](std::int64_t col, double a, double b) {
        value[col] = a + b;
        const double error = 2 * unit_roundoff(DType::f32) * (std::fabs(a) + std::fabs(b)) +
                             4 * half_ulp(DType::f32, 0);
        bound[col] = error + half_ulp(DType::bf16, std::fabs(value[col]) + error);
      };
      put(i, low * c, -high * s);
      put(i + shape.half, high * c, low * s);
    }
  }
};

template <bool kSplit>
struct BuffersT {
  const bf16* in = nullptr;
  bf16* out = nullptr;  // the same address as `in` unless split
  const float* cos = nullptr;
  const float* sin = nullptr;

  static BuffersT bind(const DevicePointers& at) {
    return {at.get<bf16>(kSplit ? "in" : "x"), at.get<bf16>(kSplit ? "out" : "x"),
            at.get<float>("cos"), at.get<float>("sin")};
  }
};

}  // namespace cookbook::rope
