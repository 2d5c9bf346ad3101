// SPDX-License-Identifier: MIT
// Linked into traced executables only.
#include "common/backend/simt/trace.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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

TracedRun trace_isolated(const LevelEntry& level, Instance& instance, const Isolation& isolation) {
  using nlohmann::json;
  if (level.supports(instance.problem(), device_info())) instance.compute_references();
  json found;
  const Outcome outcome = run_isolated(
      isolation,
      [&] {
        const TracedRun run = trace_level(level, instance);
        json claims = json::array();
        for (const ClaimResult& claim : run.claims) {
          claims.push_back({{"holds", claim.holds ? json(*claim.holds) : json(nullptr)},
                            {"checked_by", claim.checked_by},
                            {"measured", claim.measured}});
        }
        return json{{"status", run.check.status},       {"reason", run.check.reason},
                    {"max_error", run.check.max_error}, {"error_bound", run.check.error_bound},
                    {"counters", run.counters},         {"claims", claims},
                    {"findings", run.findings},         {"report", run.report}};
      },
      found);
  TracedRun run;
  for (const Claim& claim : level.claims(instance.problem())) {
    run.claims.emplace_back().claim = claim;
  }
  if (outcome.end != Outcome::End::done) {
    run.check.status = outcome.end == Outcome::End::hung ? CheckResult::Status::hung
                                                         : CheckResult::Status::crashed;
    run.check.reason = outcome.reason;
    return run;
  }
  found.at("status").get_to(run.check.status);
  found.at("reason").get_to(run.check.reason);
  found.at("max_error").get_to(run.check.max_error);
  found.at("error_bound").get_to(run.check.error_bound);
  found.at("counters").get_to(run.counters);
  found.at("findings").get_to(run.findings);
  found.at("report").get_to(run.report);
  for (std::size_t i = 0; i < run.claims.size(); ++i) {
    const json& claim = found.at("claims").at(i);
    if (!claim.at("holds").is_null()) run.claims[i].holds = claim.at("holds").get<bool>();
    claim.at("checked_by").get_to(run.claims[i].checked_by);
    claim.at("measured").get_to(run.claims[i].measured);
  }
  return run;
}

}  // namespace cookbook
