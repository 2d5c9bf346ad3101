// SPDX-License-Identifier: MIT
#include "common/harness/verdict/acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/launch.hpp"
#endif

namespace cookbook {
namespace {

enum class At {
  each_size,
  traced,
  checked,
  small,    // the largest size that takes at most a quarter of the traced size's work
  emptied,  // the traced size with an extent of 0, each in turn
};
enum class Inputs {
  mixed,      // integers, whose results are exact, then others; on a GPU these twice
  each_kind,  // a run of each kind
  normal,
  integers,
  once,
  hundred,  // a race that a GPU loses once in a while shows as another hash
};

// Rows longer by an element, rows longer by 16 bytes or more, which stay aligned, bases that are
// not, and both: where 8- and 16-byte accesses go wrong.
const std::vector<Layout> kTight{{}}, kOdd{{5, 3}}, kGraded{{1, 0}, {8, 0}, {0, 1}, {5, 3}};

const std::vector<std::optional<Schedule>> kAsSet{std::nullopt}, kAll{{{0, 0}}, {{1, 1}}, {{2, 2}}},
    kReverse{{{0, 1}}};  // what waits for an earlier block hangs

constexpr unsigned kTests = 1, kExercise = 2, kGrader = 4, kEveryone = 7;

struct Row {
  Axis axis;
  unsigned judges;
  At at;
  Inputs inputs;
  const std::vector<Layout>& layouts;
  const std::vector<std::optional<Schedule>>& schedules;
};
// The grader runs what was compiled for the tracer, so that it takes small sizes where it can.
const Row kMatrix[] = {
    {Axis::shapes, kEveryone, At::each_size, Inputs::mixed, kTight, kAsSet},
    {Axis::inputs, kTests | kExercise, At::traced, Inputs::each_kind, kTight, kAsSet},
    {Axis::inputs, kGrader, At::small, Inputs::each_kind, kTight, kAsSet},
    {Axis::layouts, kTests, At::traced, Inputs::normal, kGraded, kAsSet},
    {Axis::layouts, kExercise | kGrader, At::small, Inputs::normal, kGraded, kAsSet},
    {Axis::empty, kTests, At::emptied, Inputs::normal, kTight, kAsSet},
    {Axis::schedules, kEveryone, At::traced, Inputs::integers, kTight, kAll},
    {Axis::repeats, kTests, At::checked, Inputs::hundred, kTight, kAsSet},
    {Axis::traced, kEveryone, At::traced, Inputs::once, kTight, kAsSet},
    {Axis::odd_layout, kExercise, At::small, Inputs::once, kOdd, kReverse},
};

std::vector<Size> sizes_at(At at, const Ladder& ladder, const AcceptanceScope& scope) {
  switch (at) {
    case At::each_size: return scope.sizes;
    case At::traced: return {scope.traced};
    case At::checked: return {scope.checked};
    case At::small: {
      const double limit = work_of(ladder, scope.traced) / 4;
      Size chosen = scope.traced;
      double largest = 0;
      for (const Size& size : scope.sizes) {
        const double work = work_of(ladder, size);
        if (work <= limit && work > largest) chosen = size, largest = work;
      }
      return {chosen};
    }
    case At::emptied: break;
  }
  std::vector<Size> emptied(scope.traced.size(), scope.traced);
  for (std::size_t dim = 0; dim < emptied.size(); ++dim) emptied[dim][dim] = 0;
  return emptied;
}

// The draws of each run at the `number`-th size.
std::vector<std::vector<Draw>> draws_of(Inputs inputs, std::size_t number,
                                        const std::vector<std::uint64_t>& seeds) {
  const auto seed = [&](std::size_t i) { return seeds[i % seeds.size()]; };
  // On the CPU a second run can differ by what the first left behind, whatever the inputs are.
  const auto twice = [&](InputKind kind) {
    const bool once = device_info().is_simt && kind != InputKind::normal;
    return std::vector<Draw>(once ? 1 : 2, {kind, seed(1)});
  };
  switch (inputs) {
    case Inputs::mixed: {
      const Draw integers{InputKind::integers, seed(2 * number)};
      const Draw normal{InputKind::normal, seed(2 * number + 1)};
      // The second run finds what the first left behind. A third can only differ by chance.
      if (device_info().is_simt) return {{integers, normal}};
      return {{integers, normal, normal}};
    }
    case Inputs::each_kind: {
      std::vector<std::vector<Draw>> all;
      for (const InputKind kind : all_input_kinds()) all.push_back(twice(kind));
      return all;
    }
    case Inputs::normal: return {twice(InputKind::normal)};
    case Inputs::integers: return {twice(InputKind::integers)};
    case Inputs::once: return {{{InputKind::normal, seed(1)}}};
    case Inputs::hundred: break;
  }
  return {std::vector<Draw>(100, {InputKind::normal, seed(1)})};
}

}  // namespace

const char* axis_name(Axis axis) {
  static const char* const names[] = {"shapes",    "inputs",  "layouts", "far_rows",  "empty",
                                      "schedules", "repeats", "traced",  "odd_layout"};
  return names[static_cast<int>(axis)];
}

void set_schedule([[maybe_unused]] const Schedule& schedule, [[maybe_unused]] std::uint64_t seed) {
#if COOKBOOK_SIMT
  simt::set_async_schedule(static_cast<simt::AsyncSchedule>(schedule.copies), seed);
  simt::set_start_order(static_cast<simt::StartOrder>(schedule.blocks), seed);
#endif
}

std::string AcceptanceRun::text() const {
  std::string text = size_text(size);
  if (axis == Axis::inputs) text += fmt::format(", {} inputs", input_kind_name(draws[0].kind));
  if (axis == Axis::layouts || axis == Axis::odd_layout) {
    text += fmt::format(", rows {} elements longer, bases {} elements further", variant.extra_pitch,
                        variant.misalign_elements);
  }
  if (axis == Axis::schedules) {
    static const char* const copies[] = {"late", "early", "in random order"};
    static const char* const blocks[] = {"in order", "in reverse order", "in random order"};
    text += fmt::format(", asynchronous copies {}, blocks {}", copies[schedule->copies],
                        blocks[schedule->blocks]);
  }
  return text;
}

Instance instance_of(const AcceptanceRun& run, const Ladder& ladder) {
  const Draw& first = run.draws.front();
  return Instance(ladder, run.size, first.kind, first.seed, run.variant);
}

AcceptanceScope scope_of(const Ladder& ladder, const std::vector<std::uint64_t>& seeds) {
  return {ladder.test_sizes, ladder.trace_size, ladder.check_size, seeds};
}

std::vector<AcceptanceRun> acceptance_runs(Judge judge, Axis axis, const Ladder& ladder,
                                           const AcceptanceScope& scope) {
  std::vector<AcceptanceRun> runs;
  // Only the model can choose schedules; on a GPU a level runs many times instead.
  if (axis == (device_info().is_simt ? Axis::repeats : Axis::schedules)) return runs;
  for (const Row& row : kMatrix) {
    if (row.axis != axis || (row.judges >> static_cast<int>(judge) & 1) == 0) continue;
    std::size_t number = 0;
    for (const Size& size : sizes_at(row.at, ladder, scope)) {
      for (const auto& draws : draws_of(row.inputs, number, scope.seeds)) {
        for (const Layout& layout : row.layouts) {
          for (const auto& schedule : row.schedules) {
            const Variant variant{layout.extra_pitch, layout.misalign_elements};
            runs.push_back({axis, size, variant, draws, schedule});
          }
        }
      }
      ++number;
    }
  }
  return runs;
}

}  // namespace cookbook
