// SPDX-License-Identifier: MIT
// The main program of levels-test and levels-traced-test. Where `./run test` asks for a line per
// failure, on the SIMT backend the tests run in a child process: one that ends it gets a line, too,
// and the others run in another child.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>

#include "common/harness/verdict/isolate.hpp"
#include "tests/failures.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/crash.hpp"
#endif

#if COOKBOOK_SIMT
namespace cookbook {
namespace {

std::string full_name(const testing::TestSuite& suite, int i) {
  return fmt::format("{}.{}", suite.name(), suite.GetTestInfo(i)->name());
}

/// Leaves out the test that ended the process, and those before it; after a hang the level's
/// others, too, each of which would take as long.
void leave_out(const RunningCase& ended, bool with_level, std::string& left_out) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const std::string suite_of_it =
      std::string(ended.test).substr(0, std::string(ended.test).find('.'));
  bool before = true;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int i = 0; i < suite.total_test_count(); ++i) {
      const std::string name = full_name(suite, i);
      const bool same = with_level && ended.level[0] != 0 && suite.name() == suite_of_it &&
                        name.find(ended.level) == suite_of_it.size() + 1;
      if (before || same) left_out += (left_out.empty() ? "" : ":") + name;
      if (name == ended.test) before = false;
    }
  }
}

int run_all() {
  void* memory =
      mmap(nullptr, sizeof(RunningCase), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  running = new (memory) RunningCase;
  const std::string chosen = testing::GTEST_FLAG(filter);
  std::string left_out;
  int status = 0;
  while (true) {
    *running = {};
    nlohmann::json result;
    const Isolation isolation{.seconds = simt::time_limit()};
    const Outcome outcome = run_isolated(
        isolation, [] { return RUN_ALL_TESTS(); }, result);
    if (outcome.fault == Fault::none) return std::max(status, result.get<int>());
    status = 1;
    const std::string command =
        running->command[0] ? running->command : command_of_test(running->test);
    fmt::print("{}: {}{}{}; to repeat: {}\n", running->test, outcome.reason,
               running->at[0] ? " at " : "", running->at, command);
    std::fflush(stdout);
    if (running->test[0] == 0) return status;  // before any test
    leave_out(*running, outcome.fault == Fault::hang, left_out);
    const char* separator = chosen.find('-') == std::string::npos ? "-" : ":";
    testing::GTEST_FLAG(filter) = chosen + separator + left_out;
  }
}

}  // namespace
}  // namespace cookbook
#endif

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
#if COOKBOOK_SIMT
  cookbook::simt::install_crash_handler();
#endif
  // A maintainer's tools read GoogleTest's own lines.
  if (!std::getenv("COOKBOOK_LINE_PER_FAILURE") || testing::GTEST_FLAG(list_tests)) {
    return RUN_ALL_TESTS();
  }
  cookbook::print_line_per_failure();
#if COOKBOOK_SIMT
  return cookbook::run_all();
#else
  return RUN_ALL_TESTS();
#endif
}
