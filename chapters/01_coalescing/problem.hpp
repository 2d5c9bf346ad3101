// SPDX-License-Identifier: MIT
// Chapter 1's problem: out[i] = in[i] for n floats, at any address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "chapters/01_coalescing/reference.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::coalescing {

struct Problem {
  std::int64_t n = 0;  // elements

  static Problem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0) throw BadSize("copy takes one size, n >= 0 elements");
    return {size[0]};
  }

  /// The harness compares row by row. It sees a long array as rows of 4,096 elements if that
  /// divides n, and as a single row otherwise. Memory is contiguous either way.
  TensorSpec vector(const char* name, Role role) const {
    const std::int64_t cols = n > 0 && n % 4096 == 0 ? 4096 : n;
    return {name, DType::f32, cols == 0 ? 0 : n / cols, cols, cols, role};
  }

  std::vector<TensorSpec> tensors() const {
    return {vector("in", Role::input), vector("out", Role::output)};
  }

  double bytes() const { return 2.0 * 4.0 * static_cast<double>(n); }  // each read and written once
  double flops() const { return 0; }

  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    copy_row(tensors["in"], row, value, bound);
  }
};

struct Buffers {
  const float* in = nullptr;
  float* out = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("in"), at.get<float>("out")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Blocks for `work` units of one block each, but at most as many as fit on the GPU at once; one
/// block per unit if `blocks_per_sm` is 0.
inline unsigned resident_blocks(std::int64_t work, int blocks_per_sm) {
  if (blocks_per_sm == 0) return static_cast<unsigned>(work);
  const std::int64_t resident = std::int64_t{device_info().sm_count} * blocks_per_sm;
  return static_cast<unsigned>(std::min(work, resident));
}

/// How to cut n floats for 16-byte accesses: `head` single elements up to the first 16-byte
/// boundary, then `vectors` groups of four. If `in` and `out` do not reach a boundary at the same
/// element, no cut fits both, and every element is copied singly (`vectors` = 0).
struct Split {
  std::int64_t head = 0;
  std::int64_t vectors = 0;
};

inline Split split_for_vectors(const Buffers& buffers, std::int64_t n) {
  const auto in = reinterpret_cast<std::uintptr_t>(buffers.in);
  const auto out = reinterpret_cast<std::uintptr_t>(buffers.out);
  if (in % 16 != out % 16) return {};
  const std::int64_t head = std::min<std::int64_t>((16 - in % 16) % 16 / 4, n);
  return {head, (n - head) / 4};
}

}  // namespace cookbook::coalescing
