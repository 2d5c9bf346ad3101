// SPDX-License-Identifier: MIT
// What makes a traced level of the book wrong.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/harness/run/traced.hpp"

namespace cookbook {

/// Fails once if something was found or advised or the result is wrong: with the first of these,
/// and how many more there are.
inline void expect_right(const TracedRun& traced, const std::string& at,
                         const std::string& command) {
  std::vector<std::string> wrong;
  for (const FoundFault& finding : traced.findings) wrong.push_back(finding.message);
  wrong.insert(wrong.end(), traced.advice.begin(), traced.advice.end());
  if (traced.check.is_failure()) wrong.push_back(traced.check.text());
  if (wrong.empty()) return;
  ADD_FAILURE() << wrong[0] << " at " << at
                << (wrong.size() > 1 ? fmt::format(" [and {} more]", wrong.size() - 1) : "")
                << "; to see lines: " << command;
}

}  // namespace cookbook
