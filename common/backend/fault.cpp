// SPDX-License-Identifier: MIT
#include "common/backend/fault.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace cookbook {
namespace {

// In the order of the enumeration.
constexpr const char* kNames[] = {"none",
                                  "wrong-result",
                                  "unwritten",
                                  "padding-written",
                                  "outside-written",
                                  "input-changed",
                                  "runs-differ",
                                  "imprecise",
                                  "race",
                                  "uninitialised",
                                  "out-of-bounds",
                                  "misaligned",
                                  "proxy",
                                  "static-shared",
                                  "exit",
                                  "divergence",
                                  "absent-lane",
                                  "overflow",
                                  "launch-refused",
                                  "shared-memory-refused",
                                  "residency-refused",
                                  "kernel-failed",
                                  "assertion",
                                  "deadlock",
                                  "no-progress",
                                  "crash",
                                  "host-crash",
                                  "hang",
                                  "unsupported",
                                  "not-run",
                                  "false-claim",
                                  "not-counted",
                                  "no-answer"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Fault::no_answer) + 1);

}  // namespace

const char* fault_name(Fault fault) { return kNames[static_cast<std::size_t>(fault)]; }

Fault fault_named(std::string_view name) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    throw std::invalid_argument("no fault is called '" + std::string(name) + "'");
  }
  return static_cast<Fault>(found - std::begin(kNames));
}

Fault fault_of(const std::exception& error) {
  const auto* known = dynamic_cast<const FaultError*>(&error);
  return known ? known->fault() : Fault::kernel_failed;
}

}  // namespace cookbook
