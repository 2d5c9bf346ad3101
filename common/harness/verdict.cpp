// SPDX-License-Identifier: MIT
#include "common/harness/verdict.hpp"

#include <nlohmann/json.hpp>

namespace cookbook {
namespace {

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
          {"reason", check.reason.empty() ? nlohmann::json() : nlohmann::json(check.reason)},
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

}  // namespace cookbook
