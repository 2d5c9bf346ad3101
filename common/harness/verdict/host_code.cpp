// SPDX-License-Identifier: MIT
#include "common/harness/verdict/host_code.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/watchdog.hpp"
#endif

namespace cookbook {
namespace {

std::string called_for;

// What the thread below reads of it: the number is odd while the text changes.
std::atomic<std::uint64_t> changes{0};
char text_for_watch[200];

#if COOKBOOK_SIMT
std::uint64_t limit_seconds() { return simt::time_limit(); }
std::string place_of_main_thread() {
  const std::string line = simt::line_of_thread(getpid());
  return line.empty() ? "" : ", at " + line;
}
#else
std::uint64_t limit_seconds() {
  const char* set = std::getenv("COOKBOOK_TIME_LIMIT");
  return set ? std::strtoull(set, nullptr, 10) : 60;
}
std::string place_of_main_thread() { return ""; }
#endif

// Says where host code is that takes long. Whether it will end, nobody can know. Seconds are
// counted rather than time: a process that is stopped has none.
[[noreturn]] void watch() {
  std::uint64_t seen = 0, seconds = 0, next = 0;
  while (true) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const std::uint64_t now = changes;
    if (now != seen || now % 2 != 0 || text_for_watch[0] == 0) {
      seen = now;
      seconds = next = 0;
      continue;
    }
    if (next == 0) next = limit_seconds();
    if (++seconds < next || next == 0) continue;
    next *= 2;
    const std::string line = fmt::format("note: {} has not returned for {} s{}\n", text_for_watch,
                                         seconds, place_of_main_thread());
    if (changes == now) (void)!write(STDERR_FILENO, line.data(), line.size());
  }
}

void note_called_for() {
  ++changes;
  text_for_watch[called_for.copy(text_for_watch, sizeof(text_for_watch) - 1)] = 0;
  ++changes;
  static pid_t watched = 0;  // a fork has no other threads
  if (watched != getpid()) {
    watched = getpid();
    try {
      std::thread(watch).detach();
    } catch (const std::system_error&) {  // no more threads are allowed: nobody watches
    }
  }
#if COOKBOOK_SIMT
  simt::note_host_code(called_for);
#endif
}

}  // namespace

HostCode::HostCode(const std::string& what) : before_(std::move(called_for)) {
  called_for = what;
  note_called_for();
}
HostCode::~HostCode() {
  called_for = std::move(before_);
  note_called_for();
}

std::string thrown_text(const std::string& what, const std::exception_ptr& thrown) {
  std::string text = what;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    text += std::string(" threw: ") + error.what();
  } catch (...) {
    text += ": an exception was thrown that is no std::exception";
  }
#if COOKBOOK_SIMT
  const std::string line = simt::last_throw();
  if (!line.empty()) text += ", at " + line;
#endif
  return text;
}

Prepared prepared(const LevelEntry& level, const AnyProblem& problem,
                  const DevicePointers& pointers) {
  return in_host_code("prepare()", [&]() -> Prepared {
    try {
      return {level.prepare(problem, pointers), ""};
    } catch (const std::invalid_argument& rule) {
      return {nullptr, rule.what()};
    }
  });
}

std::string text_of_run(const std::exception& error) {
  const bool known = dynamic_cast<const FaultError*>(&error) != nullptr;
  return known ? error.what() : thrown_text("run()", std::current_exception());
}

}  // namespace cookbook
