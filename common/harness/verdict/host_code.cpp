// SPDX-License-Identifier: MIT
#include "common/harness/verdict/host_code.hpp"

#include <stdexcept>
#include <utility>

#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/crash.hpp"
#endif

namespace cookbook {
namespace {

std::string called_for;

void note_called_for() {
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
