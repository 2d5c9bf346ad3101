// SPDX-License-Identifier: MIT
// The problem: attention in which every query has a list of the keys that it sees. All heads of a
// query share its list, and they share the keys and values, too. bf16.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/backend/device_bytes.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/math.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::sparse_attention {

inline constexpr int kDim = 64;          // of a head
inline constexpr float kScale = 0.125f;  // 1 / sqrt(kDim)

/// Row query * heads + head of `q` and `out`; row key of `k` and `v`; row query of `lists`.
struct Shape {
  std::int64_t queries = 0, heads = 0, keys = 0, listed = 0;
  std::int64_t q_pitch = 0, k_pitch = 0, v_pitch = 0, lists_pitch = 0, out_pitch = 0;
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    const auto is_bad = [](std::int64_t extent) { return extent < 0 || extent >= 1 << 28; };
    if (size.size() != 4 || std::any_of(size.begin(), size.end(), is_bad) || size[3] > size[2]) {
      throw BadSize(
          "takes queries, heads, keys, and keys per list, each below 2^28; no list has "
          "more keys than there are");
    }
    const auto pitch = [&](const char* name, std::int64_t cols) {
      return cols + variant.of(name).extra_pitch;
    };
    return {{size[0], size[1], size[2], size[3], pitch("q", kDim), pitch("k", kDim),
             pitch("v", kDim), pitch("lists", size[3]), pitch("out", kDim)}};
  }

  std::vector<TensorSpec> tensors() const {
    const std::int64_t rows = shape.queries * shape.heads;
    TensorSpec lists{"lists",      DType::i32,        shape.queries,
                     shape.listed, shape.lists_pitch, Role::input};
    lists.fill = [keys = shape.keys](HostTensor& tensor, std::uint64_t seed) {
      draw_lists(tensor, keys, seed);
    };
    return {{"q", DType::bf16, rows, kDim, shape.q_pitch, Role::input},
            {"k", DType::bf16, shape.keys, kDim, shape.k_pitch, Role::input},
            {"v", DType::bf16, shape.keys, kDim, shape.v_pitch, Role::input},
            lists,
            {"out", DType::bf16, rows, kDim, shape.out_pitch, Role::output}};
  }
  static constexpr bool kExactOnIntegers = false;  // exponentials

  /// Ascending keys, none of them twice. A list that is not full ends with entries of -1: of 16
  /// lists one is empty, and three have fewer keys than the others.
  static void draw_lists(HostTensor& lists, std::int64_t keys, std::uint64_t seed) {
    const auto& [rows, cols] = std::pair{lists.spec.rows, lists.spec.cols};
    for (std::int64_t query = 0; query < rows; ++query) {
      const std::uint64_t kind = mix_bits((seed << 40) + static_cast<std::uint64_t>(query));
      const std::int64_t count = kind % 16 == 0 ? 0
                                 : kind % 16 < 4
                                     ? static_cast<std::int64_t>((kind >> 8) % 64) * cols / 64
                                     : cols;
      for (std::int64_t j = 0; j < cols; ++j) {
        const std::int64_t begin = j * keys / cols,
                           end = (j + 1) * keys / cols;  // at least one key
        const std::uint64_t bits = mix_bits(kind + static_cast<std::uint64_t>(j));
        const auto within =
            static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(end - begin));
        lists.set(query, j, j < count ? static_cast<double>(begin + within) : -1);
      }
    }
  }

  /// The fewest bytes through device memory: everything is read or written once.
  double bytes() const {
    const double rows = static_cast<double>(shape.queries) * static_cast<double>(shape.heads);
    return 4.0 * kDim * (rows + static_cast<double>(shape.keys)) +
           4.0 * static_cast<double>(shape.queries) * static_cast<double>(shape.listed);
  }
  /// As if all lists were full.
  double flops() const {
    return 4.0 * kDim * static_cast<double>(shape.queries) * static_cast<double>(shape.heads) *
           static_cast<double>(shape.listed);
  }

  /// A row in fp64, for a kernel that adds in fp32 and may round the weights to bf16 before it
  /// multiplies them by v. A score of `kDim` terms is off by at most E = 4 sqrt(kDim) u sum|q k|
  /// and four more roundings, so a weight is off by the factor exp(2 E), because the largest score
  /// is off, too. That and the rounding of the weights apply to numerator and denominator alike.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor &q = tensors["q"], &k = tensors["k"], &v = tensors["v"];
    const std::int64_t query = row / shape.heads;
    std::vector<double> lists(static_cast<std::size_t>(shape.listed)), scores;
    tensors["lists"].read_row(query, shape.listed, lists.data());
    std::erase(lists, -1.0);
    double largest = -std::numeric_limits<double>::infinity(), magnitude = 0;
    for (const double key : lists) {
      double score = 0, terms = 0;
      for (int x = 0; x < kDim; ++x) {
        const double term = q.at(row, x) * k.at(static_cast<std::int64_t>(key), x);
        score += term, terms += std::fabs(term);
      }
      scores.push_back(kScale * score);
      largest = std::max(largest, kScale * score);
      magnitude = std::max(magnitude, kScale * terms);
    }
    const double u = unit_roundoff(DType::f32);
    const double score_error = (4 * std::sqrt(static_cast<double>(kDim)) + 4) * u * magnitude;
    const double weight_error = std::expm1(std::min(2 * score_error + 0x1p-20, 50.0)) +
                                unit_roundoff(DType::bf16) +
                                4 * std::sqrt(static_cast<double>(lists.size())) * u;
    for (int x = 0; x < kDim; ++x) {
      double sum = 0, weights = 0, absolute = 0;
      for (std::size_t j = 0; j < lists.size(); ++j) {
        const double weight = std::exp(scores[j] - largest);
        const double term = weight * v.at(static_cast<std::int64_t>(lists[j]), x);
        sum += term, weights += weight, absolute += std::fabs(term);
      }
      value[x] = lists.empty() ? 0 : sum / weights;  // no key: 0
      bound[x] = lists.empty() ? 0
                               : weight_error * (absolute / weights + std::fabs(value[x])) +
                                     half_ulp(DType::bf16, value[x]) + half_ulp(DType::bf16, 0);
      // With an infinity or a NaN in reach, what comes out depends on the algorithm: any will do.
      if (!std::isfinite(value[x]) || !std::isfinite(magnitude)) value[x] = 0, bound[x] = INFINITY;
    }
  }
};

struct Buffers {
  const bf16* q = nullptr;
  const bf16* k = nullptr;
  const bf16* v = nullptr;
  const std::int32_t* lists = nullptr;
  bf16* out = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const bf16>("q"), at.get<const bf16>("k"), at.get<const bf16>("v"),
            at.get<const std::int32_t>("lists"), at.get<bf16>("out")};
  }
};

using Level = LevelOf<Problem, Buffers>;

}  // namespace cookbook::sparse_attention
