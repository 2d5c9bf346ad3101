// SPDX-License-Identifier: MIT
// The problem: sorts n pairs of a 32-bit key and a 32-bit value by key. Equal keys keep their
// order, so exactly one result is right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "common/backend/device_bytes.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::radix_sort {

struct Problem {
  std::int64_t n = 0;                     // pairs
  std::vector<std::uint32_t> order = {};  // the reference: which pair comes where

  static Problem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0 || size[0] >= std::int64_t{1} << 30) {
      throw BadSize("takes one size, 0 <= n < 2^30 pairs");
    }
    return {size[0]};
  }

  std::vector<TensorSpec> tensors() const {
    TensorSpec keys{"keys", DType::u32, 1, n, n, Role::input};
    keys.fill = [](HostTensor& tensor, std::uint64_t seed) {
      draw_keys(tensor.data<std::uint32_t>(), tensor.spec.cols, seed);
    };
    // The value of a pair is its place, so that a sort that is not stable is found.
    TensorSpec values{"values", DType::u32, 1, n, n, Role::input};
    values.fill = [](HostTensor& tensor, std::uint64_t) {
      auto* places = tensor.data<std::uint32_t>();
      std::iota(places, places + tensor.spec.cols, 0u);
    };
    return {keys,
            values,
            {"sorted_keys", DType::u32, 1, n, n, Role::output},
            {"sorted_values", DType::u32, 1, n, n, Role::output}};
  }

  /// Three keys in four are random in all 32 bits. The others are among eight, so many are equal.
  static void draw_keys(std::uint32_t* keys, std::int64_t n, std::uint64_t seed) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t bits = mix_bits((seed << 40) + static_cast<std::uint64_t>(i));
      keys[i] = static_cast<std::uint32_t>(bits % 4 == 0 ? mix_bits(bits >> 61) : bits >> 32);
      if (keys[i] == poisoned) keys[i] = 0;
    }
  }
  // What the harness writes into outputs, to find elements that a level does not write.
  static constexpr std::uint32_t poisoned = 0x7fadbeef;

  /// The fewest bytes through device memory: each pair is read once and written once. No sort by
  /// digits does it in one pass; the README says what passes cost.
  double bytes() const { return 16.0 * static_cast<double>(n); }
  double flops() const { return 0; }

  void begin_reference(const HostTensors& tensors) {
    const auto* keys = tensors["keys"].data<std::uint32_t>();
    order.resize(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [keys](std::uint32_t i, std::uint32_t j) { return keys[i] < keys[j]; });
  }

  /// Pairs are moved and never computed, so the bounds are 0.
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t /*row*/,
                     double* value, double* bound) const {
    const auto* from = tensors[output == "sorted_keys" ? "keys" : "values"].data<std::uint32_t>();
    for (std::size_t i = 0; i < order.size(); ++i) value[i] = from[order[i]], bound[i] = 0;
  }
};

struct Buffers {
  const std::uint32_t* keys = nullptr;
  const std::uint32_t* values = nullptr;
  std::uint32_t* sorted_keys = nullptr;
  std::uint32_t* sorted_values = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const std::uint32_t>("keys"), at.get<const std::uint32_t>("values"),
            at.get<std::uint32_t>("sorted_keys"), at.get<std::uint32_t>("sorted_values")};
  }
};

using Level = LevelOf<Problem, Buffers>;

}  // namespace cookbook::radix_sort
