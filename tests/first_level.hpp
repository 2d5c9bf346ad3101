// SPDX-License-Identifier: MIT
// Checks of ladders with one level, which most planted bugs have.
#pragma once

#include <string>

#include "common/harness/verdict/check.hpp"
#include "tests/text.hpp"

namespace cookbook {

inline CheckResult check_first(const Ladder& ladder, const Size& size, int runs,
                               InputKind kind = InputKind::normal, const Variant& variant = {}) {
  Instance instance(ladder, size, kind, 1, variant);
  return check_level(ladder.levels[0], instance, instance.drawn(runs));
}

inline void expect_caught(const CheckResult& result, const std::string& words) {
  EXPECT_EQ(result.status, CheckResult::Status::mismatch);
  EXPECT_CONTAINS(result.reason, words);
}

}  // namespace cookbook
