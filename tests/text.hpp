// SPDX-License-Identifier: MIT
// What a test expects of texts.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace cookbook {

inline testing::AssertionResult holds_part(const std::string& text, const std::string& part,
                                           bool expected) {
  if ((text.find(part) != std::string::npos) == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "'" << part << (expected ? "' is not in:\n" : "' is in:\n") << text;
}

#define EXPECT_CONTAINS(text, part) EXPECT_TRUE(::cookbook::holds_part(text, part, true))
#define EXPECT_LACKS(text, part) EXPECT_TRUE(::cookbook::holds_part(text, part, false))

}  // namespace cookbook
