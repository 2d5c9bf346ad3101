// SPDX-License-Identifier: MIT
// The kernels that can transpose a matrix: what a choice ranks and what the measuring program
// times.
#pragma once

#include <string>
#include <vector>

#include "chapters/03_bank_conflicts/level_2_padded.cuh"
#include "chapters/03_bank_conflicts/level_5_vectorised.cuh"

#include "chapters/03_bank_conflicts/level_7_narrow.cuh"

namespace cookbook::transpose {

struct Candidate {
  std::string name;
  void (*run)(const Level::Plan& plan, Stream stream);
};

template <int kElements, bool kFewRows>
void run_narrow_with(const Level::Plan& plan, Stream stream) {
  const Shape& s = plan.problem.shape;
  NarrowShape shape;
  shape.lines = Divisor::of(static_cast<int>(kFewRows ? s.rows : s.cols));
  shape.length = kFewRows ? s.cols : s.rows;
  shape.long_pitch = kFewRows ? s.in_pitch : s.out_pitch;
  shape.short_pitch = kFewRows ? s.out_pitch : s.in_pitch;
  Narrow::launch_narrow<NarrowConfig<kElements>, kFewRows>(plan, shape, stream);
}

/// Every candidate that supports the matrix of `plan`, in a fixed order.
inline std::vector<Candidate> candidates(const Level::Plan& plan) {
  const Shape& s = plan.problem.shape;
  std::vector<Candidate> list;
  if (s.rows <= kNarrow) {
    list.push_back({"few_rows_1", run_narrow_with<1, true>});
    list.push_back({"few_rows_4", run_narrow_with<4, true>});
  }
  if (s.cols <= kNarrow) {
    list.push_back({"few_cols_1", run_narrow_with<1, false>});
    list.push_back({"few_cols_4", run_narrow_with<4, false>});
  }
  list.push_back({"small_tiles", Padded::run});
  list.push_back({"in_flight", InFlight::run});
  if (Vectorised::aligned(plan)) list.push_back({"vectorised", Vectorised::run});
  list.push_back({"on_lines", Aligned::run_with<Aligned::OnLines>});
  list.push_back({"aligned", Aligned::run_with<Aligned::Config>});
  return list;
}

/// The name of what level 7 runs.
inline const char* chosen_before(const Level::Plan& plan) {
  const Shape& s = plan.problem.shape;
  const bool tiny = s.rows * s.cols <= kTinyMatrix;
  switch (choose_transpose(s.rows, s.cols, Vectorised::aligned(plan), Narrow::on_sectors(plan),
                           Aligned::on_lines(plan), device_info().sm_count)) {
    case TransposeKernel::few_rows: return tiny ? "few_rows_1" : "few_rows_4";
    case TransposeKernel::few_cols: return tiny ? "few_cols_1" : "few_cols_4";
    case TransposeKernel::small_tiles: return "small_tiles";
    case TransposeKernel::tiles: return Vectorised::aligned(plan) ? "vectorised" : "in_flight";
    case TransposeKernel::on_lines: return "on_lines";
    default: return "aligned";
  }
}

}  // namespace cookbook::transpose
