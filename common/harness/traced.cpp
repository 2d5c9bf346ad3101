// SPDX-License-Identifier: MIT
// Linked into traced executables only.
#include "common/backend/simt/runtime/trace.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/harness/claims_check.hpp"
#include "common/harness/exercise.hpp"

namespace cookbook {

TracedRun trace_level(const LevelEntry& level, Instance& instance, const Isolation& isolation) {
  using nlohmann::json;
  TracedRun result;
  for (const Claim& claim : level.claims(instance.problem())) {
    result.claims.emplace_back().claim = claim;  // open
  }
  if (const Support support = level.supports(instance.problem(), device_info()); !support) {
    result.check = {CheckResult::Status::skipped, support.reason};
    return result;
  }
  if (!isolation.in_process) instance.compute_references();  // once, for every child
  const auto work = [&]() -> json {
    CheckResult check;
    std::function<void(Stream)> run;
    try {
      run = level.prepare(instance.problem(), instance.pointers());
    } catch (const std::invalid_argument& rule) {  // as in check_level
      return {{"check", CheckResult{CheckResult::Status::skipped, rule.what()}}};
    }
    std::string error;
    instance.reset();
    simt::start_trace();
    try {
      run(Stream{});
      synchronize();
    } catch (const std::exception& exception) {
      error = exception.what();
    }
    const simt::Trace trace = simt::stop_trace();
    const Instance::Comparison comparison = instance.compare();
    check.max_error = comparison.max_error;
    check.error_bound = comparison.error_bound;
    if (!error.empty() || !comparison.ok) {
      check.status = CheckResult::Status::mismatch;
      check.reason = error.empty() ? comparison.message : error;
    }
    json claims = json::array(), findings = json::array();
    for (const ClaimResult& open : result.claims) {
      const ClaimResult claim = check_on_trace(open.claim, trace);
      claims.push_back({{"holds", claim.holds ? json(*claim.holds) : json(nullptr)},
                        {"checked_by", claim.checked_by},
                        {"measured", claim.measured}});
    }
    for (const simt::Finding& finding : trace.findings) {
      findings.push_back(finding.count > 1
                             ? fmt::format("{} ({} times)", finding.message, finding.count)
                             : finding.message);
    }
    return {{"check", check},
            {"claims", claims},
            {"findings", findings},
            {"counters", total_counters(trace)},
            {"report", simt::explain(trace)}};
  };
  json found;
  const Outcome outcome = run_isolated(isolation, work, found);
  const bool done = outcome.end == Outcome::End::done;
  result.check = check_of(outcome, done ? found.at("check") : json());
  if (!done || !found.contains("claims")) return result;
  for (std::size_t i = 0; i < result.claims.size(); ++i) {
    const json& claim = found["claims"].at(i);
    if (!claim.at("holds").is_null()) result.claims[i].holds = claim.at("holds").get<bool>();
    claim.at("checked_by").get_to(result.claims[i].checked_by);
    claim.at("measured").get_to(result.claims[i].measured);
  }
  found.at("counters").get_to(result.counters);
  found.at("findings").get_to(result.findings);
  found.at("report").get_to(result.report);
  return result;
}

}  // namespace cookbook
