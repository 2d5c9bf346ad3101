// SPDX-License-Identifier: MIT
// Element types of the tensor cores other than bf16, for chapter 0's problems.
#pragma once

#include <cmath>
#include <cstdint>

#include "chapters/00_roofs/problem.hpp"
#include "common/device/tensor_types.cuh"

namespace cookbook::roofs {

// As Bf16. Any bits make an operand, so that they change as in a GEMM: draw() turns them into a
// value that the type has exactly.
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

}  // namespace cookbook::roofs
