// SPDX-License-Identifier: MIT
#include "common/harness/verdict/isolate.hpp"

#include <nlohmann/json.hpp>

#if COOKBOOK_SIMT
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <vector>

#include "common/backend/simt/runtime/crash.hpp"
#endif

namespace cookbook {

#if COOKBOOK_SIMT
namespace {

using nlohmann::json;
using simt::CrashRecord;

constexpr int kPollMilliseconds = 100;

// Memory that the child fills in and the parent reads.
class SharedRecord {
 public:
  SharedRecord() {
    void* memory = mmap(nullptr, sizeof(CrashRecord), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    record_ = new (memory) CrashRecord;
  }
  ~SharedRecord() { munmap(record_, sizeof(CrashRecord)); }
  SharedRecord(const SharedRecord&) = delete;
  SharedRecord& operator=(const SharedRecord&) = delete;
  CrashRecord* operator->() const { return record_; }
  CrashRecord& operator*() const { return *record_; }

 private:
  CrashRecord* record_;
};

// The child: works, writes the result, and exits without running destructors. No exception leaves
// it: a caller that catches it would run twice.
[[noreturn]] void run_child(const std::function<json()>& work, CrashRecord& record, int out,
                            pid_t parent) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a kernel that hangs must not outlive the parent
  if (getppid() != parent) _exit(1);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // keeps what a kernel prints before it crashes
  simt::record_crashes(&record);
  json message;
  try {
    message["result"] = work();
  } catch (const std::exception& error) {
    message["error"] = error.what();
  } catch (...) {
    message["crashed"] = "an exception was thrown that is no std::exception";
    const std::string line = simt::last_throw();
    if (!line.empty()) message["crashed"] = message["crashed"].get<std::string>() + ", at " + line;
  }
  const std::vector<std::uint8_t> bytes = json::to_cbor(message);  // JSON has no NaN
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = write(out, bytes.data() + sent, bytes.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(1);
    sent += static_cast<std::size_t>(count);
  }
  std::fflush(stdout);
  _exit(0);
}

// How long a child may go without progress of any kind, host code included.
std::uint64_t patience(std::uint64_t seconds) { return 2 * seconds + 2; }

// Reads until the child closes its end. False if the child made no progress of any kind for that
// time. By then its own watchdog, which can name lines, should have ended it.
bool read_all(int in, const CrashRecord& record, std::uint64_t seconds,
              std::vector<std::uint8_t>& bytes) {
  const std::uint64_t limit = patience(seconds) * 1000 / kPollMilliseconds;
  std::uint64_t progress = record.progress, idle = 0;
  while (true) {
    pollfd ready{in, POLLIN, 0};
    const int count = poll(&ready, 1, kPollMilliseconds);
    if (count > 0) {
      std::uint8_t buffer[1 << 16];
      const ssize_t got = read(in, buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return true;
      bytes.insert(bytes.end(), buffer, buffer + got);
    } else if (count == 0) {
      ++idle;
    }
    if (record.progress != progress) progress = record.progress, idle = 0;
    if (seconds > 0 && idle >= limit) return false;
  }
}

std::string after_kernel(const CrashRecord& record) {
  const void* kernel = record.kernel;
  return kernel ? (record.in_kernel ? " in " : " after ") + simt::describe_kernel(kernel) : "";
}

}  // namespace

Outcome run_isolated(const Isolation& isolation, const std::function<json()>& work, json& result) {
  if (isolation.in_process) {
    result = work();
    return {};
  }
  SharedRecord record;
  int ends[2];
  if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  std::fflush(stdout);
  std::fflush(stderr);
  simt::set_time_limit(isolation.seconds);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_child(work, *record, ends[1], parent);
  }
  close(ends[1]);
  std::vector<std::uint8_t> bytes;
  const bool finished = child > 0 && read_all(ends[0], *record, isolation.seconds, bytes);
  close(ends[0]);
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (!finished) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const CrashRecord::End end = record->end;
  if (end == CrashRecord::End::hung) return {Fault::hang, simt::describe(*record)};
  if (!finished) {
    return {Fault::hang, fmt::format("no progress for {} s{}", patience(isolation.seconds),
                                     after_kernel(*record))};
  }
  if (end != CrashRecord::End::none) {
    return {record->in_kernel ? Fault::crash : Fault::host_crash, simt::describe(*record)};
  }
  if (WIFSIGNALED(status)) {
    return {Fault::crash, fmt::format("ended by signal {} ({}){}", WTERMSIG(status),
                                      strsignal(WTERMSIG(status)), after_kernel(*record))};
  }
  const json message = json::from_cbor(bytes, true, false);
  if (message.is_discarded() || WEXITSTATUS(status) != 0) {
    return {Fault::crash, fmt::format("the process was ended with status {}{}", WEXITSTATUS(status),
                                      after_kernel(*record))};
  }
  if (message.contains("crashed")) {
    return {Fault::crash, message["crashed"].get<std::string>() + after_kernel(*record)};
  }
  if (message.contains("error")) throw std::runtime_error(message["error"].get<std::string>());
  result = message.at("result");
  return {};
}
#else
Outcome run_isolated(const Isolation&, const std::function<nlohmann::json()>& work,
                     nlohmann::json& result) {
  result = work();
  return {};
}
#endif

}  // namespace cookbook
