// SPDX-License-Identifier: MIT
// The problem: y = A x for a sparse matrix in CSR (compressed sparse rows), fp32.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/backend/device_bytes.hpp"
#include "common/device/ceil_div.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::spmv {

/// Nonzeros of row `row`. One row in 16 is empty. Of the others half have about mean / 6.5, and
/// each doubling of the length is half as frequent, up to 4,096 times that: every class of lengths
/// holds about as many nonzeros. No row has more than `cols`.
inline std::int64_t row_length(std::int64_t row, std::int64_t cols, std::int64_t mean) {
  const std::uint64_t bits = mix_bits(static_cast<std::uint64_t>(row) + 1);
  if (bits % 16 == 0) return 0;
  const int doublings = std::countr_zero(bits >> 32 | 1u << 12);
  const auto rounding = static_cast<std::int64_t>((bits >> 4) % 13);
  return std::min(cols, ((2 * mean << doublings) + rounding) / 13);
}

struct Problem {
  std::int64_t rows = 0, cols = 0;
  std::int64_t mean = 0;  // nonzeros per row, about
  std::int64_t nonzeros = 0;
  // Where the rows begin among the nonzeros, and where the last one ends. Shared by copies.
  std::shared_ptr<const std::vector<std::int32_t>> offsets = {};

  static Problem make(const Size& size, const Variant&) {
    const auto is_bad = [](std::int64_t extent) { return extent < 0 || extent >= 1 << 28; };
    if (size.size() != 3 || std::any_of(size.begin(), size.end(), is_bad)) {
      throw BadSize("SpMV takes rows, columns and mean nonzeros per row, each below 2^28");
    }
    Problem problem{size[0], size[1], size[2]};
    std::vector<std::int32_t> offsets(static_cast<std::size_t>(problem.rows) + 1, 0);
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      problem.nonzeros += row_length(row, problem.cols, problem.mean);
      if (problem.nonzeros + problem.rows >= 1 << 30) {
        throw BadSize("SpMV takes fewer than 2^30 rows and nonzeros together");
      }
      offsets[static_cast<std::size_t>(row) + 1] = static_cast<std::int32_t>(problem.nonzeros);
    }
    problem.offsets = std::make_shared<const std::vector<std::int32_t>>(std::move(offsets));
    return problem;
  }

  std::vector<TensorSpec> tensors() const {
    TensorSpec starts{"offsets", DType::i32, 1, rows + 1, rows + 1, Role::input};
    starts.fill = [all = offsets](HostTensor& tensor, std::uint64_t) {
      std::copy(all->begin(), all->end(), tensor.data<std::int32_t>());
    };
    TensorSpec columns{"columns", DType::i32, 1, nonzeros, nonzeros, Role::input};
    columns.fill = [*this](HostTensor& tensor, std::uint64_t seed) {
      for (std::int64_t row = 0; row < rows; ++row) {
        draw_columns(row, seed, tensor.data<std::int32_t>() + (*offsets)[row]);
      }
    };
    return {{"values", DType::f32, 1, nonzeros, nonzeros, Role::input},
            columns,
            starts,
            {"x", DType::f32, 1, cols, cols, Role::input},
            {"y", DType::f32, 1, rows, rows, Role::output}};
  }

  /// Ascending columns of a row, near the diagonal: every second one, on average. A row that is too
  /// long for that takes all the columns that it needs.
  void draw_columns(std::int64_t row, std::uint64_t seed, std::int32_t* columns) const {
    const std::int64_t length = (*offsets)[row + 1] - (*offsets)[row];
    const std::int64_t span = std::min(cols, 2 * length);
    const std::int64_t first =
        std::clamp<std::int64_t>(row * cols / rows - span / 2, 0, cols - span);
    for (std::int64_t k = 0; k < length; ++k) {
      const std::uint64_t bits =
          mix_bits((seed << 40) + static_cast<std::uint64_t>((*offsets)[row] + k));
      const std::int64_t jitter = span == 2 * length ? static_cast<std::int64_t>(bits % 2) : 0;
      columns[k] = static_cast<std::int32_t>(first + k * span / length + jitter);
    }
  }

  /// The fewest bytes through device memory: everything is read or written once.
  double bytes() const {
    return 8.0 * static_cast<double>(nonzeros) + 8.0 * static_cast<double>(rows) + 4.0 +
           4.0 * static_cast<double>(cols);
  }
  double flops() const { return 2.0 * static_cast<double>(nonzeros); }

  /// y in fp64, and how far fp32 sums in any order may be from it. A row of k nonzeros has at most
  /// 2 k roundings, each of at most the unit roundoff times the sum of |a x|; their signs differ,
  /// so they grow as the root of their number. A term that underflows loses at most half a
  /// denormal.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/,
                     std::int64_t /*row*/, double* value, double* bound) const {
    const float* values = tensors["values"].data<float>();
    const float* x = tensors["x"].data<float>();
    const auto* columns = tensors["columns"].data<std::int32_t>();
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0, magnitude = 0;
      for (std::int64_t k = (*offsets)[row]; k < (*offsets)[row + 1]; ++k) {
        const double term = static_cast<double>(values[k]) * x[columns[k]];
        sum += term, magnitude += std::fabs(term);
      }
      const double length = (*offsets)[row + 1] - (*offsets)[row];
      value[row] = sum;
      bound[row] = 4 * std::sqrt(length) * unit_roundoff(DType::f32) * magnitude +
                   length * half_ulp(DType::f32, 0);
    }
  }
};

struct Buffers {
  const float* values = nullptr;
  const std::int32_t* columns = nullptr;
  const std::int32_t* offsets = nullptr;
  const float* x = nullptr;
  float* y = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("values"), at.get<const std::int32_t>("columns"),
            at.get<const std::int32_t>("offsets"), at.get<const float>("x"), at.get<float>("y")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Blocks for `count` items, so many per block; none if there are no items.
inline dim3 blocks_for(std::int64_t count, std::int64_t per_block) {
  return dim3(static_cast<unsigned>(ceil_div(count, per_block)));
}

}  // namespace cookbook::spmv
