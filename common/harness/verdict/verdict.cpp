// SPDX-License-Identifier: MIT
#include "common/harness/verdict/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/harness/contract/json.hpp"

namespace cookbook {
namespace {

using Json = nlohmann::ordered_json;

CheckResult::Status status_of(Fault fault) {
  using Status = CheckResult::Status;
  switch (fault) {
    case Fault::none: return Status::ok;
    case Fault::unsupported: return Status::skipped;
    case Fault::not_run: return Status::not_run;
    case Fault::crash:
    case Fault::host_crash: return Status::crashed;
    case Fault::hang: return Status::hung;
    default: return Status::mismatch;
  }
}

}  // namespace

void CheckResult::set(Fault fault_, std::string reason_) {
  status = status_of(fault_);
  fault = fault_;
  reason = std::move(reason_);
}

bool CheckResult::is_failure() const {
  return status == Status::mismatch || status == Status::crashed || status == Status::hung;
}

std::string CheckResult::text() const {
  const bool ended = status == Status::crashed || status == Status::hung;
  return ended ? std::string(status_name(status)) + ": " + reason : reason;
}

const char* status_name(CheckResult::Status status) {
  static const char* const names[] = {"ok", "mismatch", "skipped", "crashed", "hung", "not_run"};
  return names[static_cast<int>(status)];
}

void to_json(nlohmann::json& json, const CheckResult& check) {
  json = {{"status", status_name(check.status)},
          {"fault", fault_name(check.fault)},
          {"reason", text_or_null(check.reason)},
          {"max_error", check.max_error},
          {"error_bound", check.error_bound}};
}

void from_json(const nlohmann::json& json, CheckResult& check) {
  const nlohmann::json& reason = json.at("reason");
  check = {fault_named(json.at("fault").get<std::string>()), reason.is_null() ? "" : reason};
  json.at("max_error").get_to(check.max_error);
  json.at("error_bound").get_to(check.error_bound);
}

void to_json(nlohmann::json& json, const FoundFault& found) {
  json = {{"fault", fault_name(found.fault)}, {"message", found.message}};
}

void from_json(const nlohmann::json& json, FoundFault& found) {
  found = {fault_named(json.at("fault").get<std::string>()), json.at("message")};
}

std::string claim_identity(const Claim& claim) {
  return fmt::format("{} {} {:.17g} {} {} {} {} {} {}", static_cast<int>(claim.metric),
                     static_cast<int>(claim.relation), claim.value, claim.space, claim.op,
                     claim.buffer, claim.tag, claim.kernel, claim.name);
}

CheckResult check_of(const ClaimResult& claim) {
  if (!claim.holds) return {Fault::not_counted, "was not checked"};
  if (*claim.holds) return {};
  return {Fault::false_claim, "measured " + claim.measured};
}

nlohmann::ordered_json to_json(const ClaimResult& claim) {
  return Json{{"id", claim_identity(claim.claim)},
              {"text", claim.claim.text},
              {"holds", claim.holds},
              {"checked_by", text_or_null(claim.checked_by)},
              {"measured", text_or_null(claim.measured)}};
}

void enter_counts(const nlohmann::json& counted, std::vector<ClaimResult>& claims) {
  for (const nlohmann::json& count : counted) {
    const auto claim = std::find_if(claims.begin(), claims.end(), [&](const ClaimResult& each) {
      return count.at("id") == claim_identity(each.claim);
    });
    if (claim == claims.end()) {
      throw std::runtime_error("counted for no claim: " + count.at("text").get<std::string>());
    }
    if (count.at("holds").is_null()) continue;
    claim->holds = count.at("holds").get<bool>();
    claim->checked_by = count.at("checked_by").get<std::string>();
    if (!count.at("measured").is_null()) claim->measured = count.at("measured");
  }
}

}  // namespace cookbook
