// SPDX-License-Identifier: MIT
// What calls print and how they end.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cookbook {

/// What `call` writes to the standard output.
template <class Call>
std::string stdout_of(const Call& call) {
  testing::internal::CaptureStdout();
  call();
  return testing::internal::GetCapturedStdout();
}
/// What `call` writes to the standard error.
template <class Call>
std::string stderr_of(const Call& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

struct Ended {
  int status = -1;
  std::string out, err;
};

/// What `call` prints, and the status that it returns.
template <class Call>
Ended ended_of(const Call& call) {
  Ended ended;
  ended.err = stderr_of([&] { ended.out = stdout_of([&] { ended.status = call(); }); });
  return ended;
}

/// What `main` returns, called with these words as its arguments; the first is the program's name.
template <class Main>
auto called_with(std::vector<std::string> words, const Main& main) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return main(static_cast<int>(argv.size()), argv.data());
}

}  // namespace cookbook
