// SPDX-License-Identifier: MIT
// Calls of what a problem or a level does on the host: if it crashes or throws, the line says which
// call it was.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "common/backend/fault.hpp"
#include "common/harness/contract/level.hpp"

namespace cookbook {

/// While it lives, host code is called for `what`, such as "begin_reference()". For the main
/// thread.
class HostCode {
 public:
  explicit HostCode(const std::string& what);
  ~HostCode();
  HostCode(const HostCode&) = delete;
  HostCode& operator=(const HostCode&) = delete;

 private:
  std::string before_;
};

/// "reference_row() of out threw: vector::at, at problem.hpp:40", of what was thrown last.
std::string thrown_text(const std::string& what, const std::exception_ptr& thrown);

/// Returns what `call` returns. What it throws becomes a FaultError, Fault::host_crash, which says
/// `what` and where; but a size that is not possible and a fault of a kernel are no crash.
template <class Call>
decltype(auto) in_host_code(const std::string& what, const Call& call) {
  const HostCode noted(what);
  try {
    return call();
  } catch (const BadSize&) {
    throw;
  } catch (const FaultError&) {
    throw;
  } catch (...) {
    throw FaultError(Fault::host_crash, thrown_text(what, std::current_exception()));
  }
}

/// What of a level's preparation is isolated work: what run() needs, or why the level cannot run
/// the problem, which prepare() throws as std::invalid_argument.
struct Prepared {
  std::function<void(Stream)> run;
  std::string unsupported;
};
Prepared prepared(const LevelEntry& level, const AnyProblem& problem,
                  const DevicePointers& pointers);

/// What an exception of run() says: where it is none of a kernel or a launch, also its line.
std::string text_of_run(const std::exception& error);

}  // namespace cookbook
