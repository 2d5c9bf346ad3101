// SPDX-License-Identifier: MIT
// What ladders over rows share, here and in library/rows.
#pragma once

#include "chapters/09_online_softmax/problem.hpp"

namespace cookbook {

/// A ladder over rows: what all ladders of this chapter share. 1 GiB is moved at `gpu_size`.
template <class P>
Ladder row_ladder(std::string name, std::string title, Size gpu_size, Size check_size) {
  auto ladder = ladder_over<P>(std::move(name), std::move(title), {"rows", "cols"});
  ladder.dtype = dtype_name(softmax::kDType<typename P::Element>);
  ladder.gpu_size = std::move(gpu_size);
  ladder.check_size = std::move(check_size);
  // Rows longer than a block of 512 threads holds, and enough of them that blocks compute several.
  ladder.trace_size = {32, 20480};
  // Around 8, 32, 64 ... threads per row, odd lengths, few and many rows, rows for clusters.
  ladder.test_sizes = {{1, 1},     {3, 7},     {5, 31},    {4, 33},   {33, 8},
                       {67, 256},  {9, 257},   {7, 1000},  {3, 1024}, {5, 1028},
                       {70, 1100}, {2, 2047},  {2, 4097},  {3, 6000}, {2, 16384},
                       {2, 16392}, {1, 40000}, {1, 40003}, {130, 37}};
  return ladder;
}

/// The smaller shapes, for sidebars.
inline Ladder sidebar_ladder(std::string name, std::string title, Size gpu_size) {
  auto ladder = row_ladder<softmax::Problem<float>>(std::move(name), std::move(title),
                                                    std::move(gpu_size), {64, 4096});
  ladder.trace_size = {8, 4096};
  ladder.test_sizes = {{1, 1}, {5, 31}, {4, 36}, {3, 1024}, {2, 4092}};
  return ladder;
}

/// Rows that test the edges of the definition.
inline Ladder special_rows_ladder() {
  auto special = sidebar_ladder(
      "special_rows", "sidebar: rows of -inf, +inf, NaN, huge and equal numbers", {4096, 16384});
  special.make_problem = [](const Size& size, const Variant& variant) {
    auto problem = softmax::Problem<float>::make(size, variant);
    problem.fill = softmax::fill_special_rows;
    return std::shared_ptr<AnyProblem>(
        std::make_shared<ProblemHolder<softmax::Problem<float>>>(problem));
  };
  special.trace_size = {8, 20480};
  special.test_sizes = {{8, 1}, {8, 5}, {16, 100}, {8, 1000}, {9, 4097}, {8, 33000}};
  return special;
}

}  // namespace cookbook
