// SPDX-License-Identifier: MIT
// A small capstone with types of one byte: y = scale * a * b for i8 `a`, e4m3 `b` and a scalar,
// written twice, as e5m2 `wide` and as i8 `whole`.
#pragma once

#include <algorithm>
#include <cmath>

#include "common/device/fp8.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::planted::small_types {

struct Problem {
  std::int64_t n = 0;
  float scale = 12;  // large enough that some results are beyond an i8

  static Problem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0) throw BadSize("takes one size, n >= 0 elements");
    return {size[0]};
  }
  std::vector<TensorSpec> tensors() const {
    return {{"a", DType::i8, 1, n, n, Role::input},
            {"b", DType::e4m3, 1, n, n, Role::input},
            {"wide", DType::e5m2, 1, n, n, Role::output},
            {"whole", DType::i8, 1, n, n, Role::output}};
  }
  double bytes() const { return 4.0 * static_cast<double>(n); }
  double flops() const { return 0; }

  /// Products of 7 and 4 bits are exact in fp32, so only the conversion of the result rounds.
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t,
                     double* value, double* bound) const {
    for (std::int64_t i = 0; i < n; ++i) {
      value[i] = static_cast<double>(scale) * tensors["a"].at(0, i) * tensors["b"].at(0, i);
      bound[i] = output == "whole" ? 0.5 : half_ulp(DType::e5m2, value[i]);
    }
  }
};

struct Buffers {
  const std::int8_t* a;
  const fp8_e4m3* b;
  fp8_e5m2* wide;
  std::int8_t* whole;
  static Buffers bind(const DevicePointers& at) {
    return {at.get<const std::int8_t>("a"), at.get<const fp8_e4m3>("b"), at.get<fp8_e5m2>("wide"),
            at.get<std::int8_t>("whole")};
  }
};

enum class Bug { none, read_as_unsigned, wraps, truncates, unwritten_tail, scale_forgotten };

template <Bug kBug>
struct Scaled : LevelOf<Problem, Buffers> {
  static constexpr LevelText text{.name = "scaled", .changed = "at most one planted bug"};
  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads("a").bytes(n), global_loads("b").bytes(n), global_loads("b").coalesced(),
            global_stores("wide").bytes(n), global_stores("whole").bytes(n)};
  }
  static void run(const Plan& plan, Stream stream);  // small_types.cu
};

template <Bug kBug>
Ladder ladder() {
  Ladder ladder = ladder_over<Problem>("small_types", "scale * a * b, i8 and e4m3", {"n"});
  ladder.dtype = "i8";
  ladder.gpu_size = ladder.check_size = ladder.trace_size = {1024};
  ladder.test_sizes = {{1}, {33}, {1000}, {4096}};
  ladder.levels = rows<Scaled<kBug>>();
  return ladder;
}

}  // namespace cookbook::planted::small_types
