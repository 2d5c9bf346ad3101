// SPDX-License-Identifier: MIT
// A copy of rows with bugs that show only in some layout, at some number of SMs, on a later run or
// where rows are far apart.
#pragma once

#include "tests/planted/reverse.hpp"

namespace cookbook::planted::rows_copy {

struct Problem : planted::Problem {
  static Problem make(const Size& size, const Variant& variant) {
    return {planted::Problem::make(size, variant)};
  }
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    for (std::int64_t c = 0; c < cols; ++c) value[c] = tensors["in"].at(row, c), bound[c] = 0;
  }
};

enum class Bug {
  none,
  no_bounds_check,       // copies whole warps
  padding_copied,        // the same, but for the last row
  load_past_the_end,     // reads one row more, and does not use it
  vectors_without_out,   // the vector path does not ask for the pitch of `out`
  vectors_without_base,  // nor for the base of `out`
  short_tail,            // the vector path ends one element early
  row_in_int,            // row * pitch in 32 bits
  row_in_unsigned,       // the same without a sign
  remainder_of_sms,      // rows are distributed as if the number of SMs divided them
  flag_stays,            // the second run finds the flag of the first
  keeps_first_inputs,    // the second run writes what the first one read
  refuses_odd_pitch,
};

template <Bug kBug>
struct CopyRows : LevelOf<Problem, Buffers> {
  static constexpr LevelText text{.name = "copy_rows", .changed = "one planted bug"};

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory flag, kept;
  };
  static Support supports(const Problem& p, const DeviceInfo&) {
    if (kBug == Bug::refuses_odd_pitch && p.out_pitch % 2 != 0) return Support::no("odd pitch");
    return Support::yes();
  }
  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    Plan plan{problem, buffers, DeviceMemory(sizeof(int), "flag"),
              DeviceMemory(static_cast<size_t>(problem.rows) * sizeof(float), "kept")};
    plan.flag.fill(0);
    return plan;
  }
  static void run(const Plan& plan, Stream stream);  // rows.cu
};

template <Bug kBug>
Ladder ladder() {
  Ladder ladder = ladder_over<Problem>("copy_rows", "copy rows", {"rows", "cols"});
  ladder.gpu_size = ladder.check_size = ladder.trace_size = {64, 256};
  ladder.test_sizes = {{1, 1}, {1, 33}, {3, 64}, {4, 32}, {8, 128}, {12, 40}};
  ladder.levels = cookbook::rows<CopyRows<kBug>>();
  return ladder;
}

}  // namespace cookbook::planted::rows_copy
