// SPDX-License-Identifier: MIT
// In place of GoogleTest: runs the tests of one file, and prints how many expectations failed
// (foreign_kernels.py).
#pragma once
#include <cstdio>
#include <vector>

inline int failed_expectations = 0;
inline std::vector<void (*)()>& all_tests() {
  static std::vector<void (*)()> tests;
  return tests;
}

#define TEST(suite, name)                                                                     \
  static void suite##_##name();                                                               \
  static const bool suite##_##name##_is_one = (all_tests().push_back(&suite##_##name), true); \
  static void suite##_##name()
#define EXPECT_TRUE(condition) (failed_expectations += !(condition))

int main() {
  for (const auto test : all_tests()) test();
  std::printf("%d wrong\n", failed_expectations);
  return failed_expectations != 0;
}
