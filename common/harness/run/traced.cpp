// SPDX-License-Identifier: MIT
// Linked into traced executables only.
#include "common/harness/run/traced.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/backend/simt/runtime/trace.hpp"
#include "common/harness/run/requests.hpp"
#include "common/harness/verdict/claims_check.hpp"
#include "common/harness/verdict/host_code.hpp"

namespace cookbook {

TracedRun trace_level(const LevelEntry& level, Instance& instance, const Isolation& isolation) {
  using nlohmann::json;
  TracedRun result;
  for (const Claim& claim :
       in_host_code("claims()", [&] { return level.claims(instance.problem()); })) {
    result.claims.emplace_back().claim = claim;  // open
  }
  const Support support =
      in_host_code("supports()", [&] { return level.supports(instance.problem(), device_info()); });
  if (!support) {
    result.check = {Fault::unsupported, support.reason};
    return result;
  }
  if (!isolation.in_process) instance.compute_references();  // once, for every child
  const auto traced = [&]() -> json {
    CheckResult error;
    const auto [run, unsupported] = prepared(level, instance.problem(), instance.pointers());
    if (!run) return {{"check", CheckResult(Fault::unsupported, unsupported)}};
    instance.reset();
    simt::start_trace();
    try {
      run(Stream{});
      synchronize();
    } catch (const std::exception& exception) {
      error = {fault_of(exception), text_of_run(exception)};
    } catch (...) {
      error = {Fault::host_crash, thrown_text("run()", std::current_exception())};
    }
    simt::Trace trace = simt::stop_trace();
    const std::vector<simt::Finding> host = simt::take_host_overflows();
    trace.findings.insert(trace.findings.end(), host.begin(), host.end());
    for (simt::Finding& finding : trace.findings) {
      if (finding.kind == "overflow") finding.message += " (" + finding.remedy + ")";
    }
    const Instance::Comparison comparison = instance.compare();
    CheckResult check(comparison.fault, comparison.message);
    if (error.fault != Fault::none) check = error;
    check.max_error = comparison.max_error;
    check.error_bound = comparison.error_bound;
    json claims = json::array();
    for (const ClaimResult& open : result.claims) {
      claims.push_back(json(to_json(check_on_trace(open.claim, trace))));
    }
    std::vector<FoundFault> findings;
    std::vector<simt::Finding> found_by_tracer = trace.findings;
    if (level.same_every_run) {
      found_by_tracer.insert(found_by_tracer.end(), trace.unordered_sums.begin(),
                             trace.unordered_sums.end());
    }
    for (const simt::Finding& finding : found_by_tracer) {
      const std::string times = finding.count > 1 ? fmt::format(" ({} times)", finding.count) : "";
      findings.push_back({fault_named(finding.kind), finding.message + times});
    }
    std::vector<std::string> advice;
    for (const simt::Finding& finding : trace.advice) advice.push_back(finding.message);
    return {{"check", check},
            {"claims", claims},
            {"findings", findings},
            {"advice", advice},
            {"counters", total_counters(trace)},
            {"report", simt::explain(trace)},
            {"requests", simt::keep_requests ? worst_requests(trace).dump() : ""},
            {"lines", line_counts(trace).dump()}};
  };
  const auto work = [&]() -> json {
    try {
      return traced();
    } catch (const FaultError& error) {  // of host code
      return {{"check", CheckResult(error.fault(), error.what())}};
    }
  };
  json found;
  const Outcome outcome = run_isolated(isolation, work, found);
  const bool done = outcome.fault == Fault::none;
  result.check = check_of(outcome, done ? found.at("check") : json());
  if (!done || !found.contains("claims")) return result;
  enter_counts(found.at("claims"), result.claims);
  found.at("counters").get_to(result.counters);
  found.at("findings").get_to(result.findings);
  found.at("advice").get_to(result.advice);
  found.at("report").get_to(result.report);
  found.at("requests").get_to(result.requests);
  found.at("lines").get_to(result.lines);
  return result;
}

}  // namespace cookbook
