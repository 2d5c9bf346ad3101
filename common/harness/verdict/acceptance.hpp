// SPDX-License-Identifier: MIT
// What a level has to pass: one table of sizes, inputs, layouts and schedules, from which the tests
// of levels, the exercises and the grader of a class take their runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/contract/level.hpp"
#include "common/harness/verdict/check.hpp"

namespace cookbook {

/// What is varied. far_rows: tests/far_rows.hpp has its own runs.
enum class Axis {
  shapes,
  inputs,
  layouts,
  far_rows,
  empty,
  schedules,
  repeats,
  traced,
  odd_layout
};
const char* axis_name(Axis axis);

/// Who asks.
enum class Judge { tests, exercise, grader };

/// In which order the SIMT backend lets asynchronous copies land and blocks start.
struct Schedule {
  int copies = 0;  ///< a simt::AsyncSchedule
  int blocks = 0;  ///< a simt::StartOrder
};
/// On the SIMT backend: from the next launch on. Elsewhere it does nothing.
void set_schedule(const Schedule& schedule, std::uint64_t seed);

/// One run of a level, or several with one plan: what a run leaves behind must not reach the next.
struct AcceptanceRun {
  Axis axis = Axis::shapes;
  Size size;
  Variant variant;
  std::vector<Draw> draws;           ///< of each run
  std::optional<Schedule> schedule;  ///< none: as the environment says
  std::string text() const;          ///< "256x192, integers inputs"
};

/// Its problem with the inputs of its first draw.
Instance instance_of(const AcceptanceRun& run, const Ladder& ladder);

/// What a judge may choose from.
struct AcceptanceScope {
  std::vector<Size> sizes;  ///< every one is a run of Axis::shapes
  Size traced, checked;
  std::vector<std::uint64_t> seeds;  ///< of the inputs, used in turn; at least one
};
/// The sizes of a ladder.
AcceptanceScope scope_of(const Ladder& ladder, const std::vector<std::uint64_t>& seeds);

/// The runs of the table for one axis; none where the judge does not ask for it, or where the
/// backend has no such axis: schedules on a GPU, repeats on the SIMT backend.
std::vector<AcceptanceRun> acceptance_runs(Judge judge, Axis axis, const Ladder& ladder,
                                           const AcceptanceScope& scope);

}  // namespace cookbook
