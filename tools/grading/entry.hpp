// SPDX-License-Identifier: MIT
// What an object file of a submission or of a teacher's file offers: its level, and the problem
// that it solves. Included after that file.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "common/harness/contract/level.hpp"

namespace cookbook::grading {

/// A level and what makes its problem, with the types erased.
struct Entry {
  LevelEntry level;
  std::function<std::shared_ptr<AnyProblem>(const Size&, const Variant&)> make_problem;
};

/// Defined by COOKBOOK_GRADED_LEVEL, once per executable.
Entry entry();

template <class L>
Entry entry_of() {
  static_assert(__is_base_of(LevelOf<typename L::Problem, typename L::Buffers>, L),
                "the level must keep its problem and its buffers");
  auto ladder = ladder_over<typename L::Problem>("graded", "", {});
  return {make_level<L>(), std::move(ladder.make_problem)};
}

}  // namespace cookbook::grading

#define COOKBOOK_GRADED_LEVEL(level) \
  cookbook::grading::Entry cookbook::grading::entry() { return entry_of<level>(); }
