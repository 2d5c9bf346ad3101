// SPDX-License-Identifier: MIT
// Linked into traced executables only.
#include "common/backend/simt/trace.hpp"

#include <fmt/format.h>

#include "common/harness/claims_check.hpp"
#include "common/harness/exercise.hpp"

namespace cookbook {

TracedRun trace_level(const LevelEntry& level, Instance& instance) {
  TracedRun result;
  const auto skipped = [&](const std::string& reason) {
    result.check.status = CheckResult::Status::skipped;
    result.check.reason = reason;
    for (const Claim& claim : level.claims(instance.problem())) {
      ClaimResult open;
      open.claim = claim;
      result.claims.push_back(open);
    }
    return result;
  };
  if (const Support support = level.supports(instance.problem(), device_info()); !support) {
    return skipped(support.reason);
  }
  std::function<void(Stream)> run;
  try {
    run = level.prepare(instance.problem(), instance.pointers());
  } catch (const std::invalid_argument& rule) {  // as in check_level
    return skipped(rule.what());
  }
  std::string error;
  simt::Trace trace;
  instance.reset();
  simt::start_trace();
  try {
    run(Stream{});
    synchronize();
  } catch (const std::exception& exception) {
    error = exception.what();
  }
  trace = simt::stop_trace();
  const Instance::Comparison comparison = instance.compare();
  result.check.max_error = comparison.max_error;
  result.check.error_bound = comparison.error_bound;
  if (!error.empty() || !comparison.ok) {
    result.check.status = CheckResult::Status::mismatch;
    result.check.reason = error.empty() ? comparison.message : error;
  }
  for (const simt::Finding& finding : trace.findings) {
    result.findings.push_back(finding.count > 1
                                  ? fmt::format("{} ({} times)", finding.message, finding.count)
                                  : finding.message);
  }
  for (const Claim& claim : level.claims(instance.problem())) {
    result.claims.push_back(check_on_trace(claim, trace));
  }
  result.counters = total_counters(trace);
  result.report = simt::explain(trace);
  return result;
}

}  // namespace cookbook
