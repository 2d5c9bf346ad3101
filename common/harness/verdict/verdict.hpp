// SPDX-License-Identifier: MIT
// The verdict on a run of a level and on its claims, for tests, exercises, the grader and results
// alike.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/backend/fault.hpp"
#include "common/harness/contract/claim.hpp"

namespace cookbook {

/// Right, or what is wrong.
struct CheckResult {
  /// What a fault amounts to. crashed, hung: only for a level that ran in a child process.
  enum class Status { ok, mismatch, skipped, crashed, hung, not_run };

  CheckResult() = default;
  CheckResult(Fault fault, std::string reason) { set(fault, std::move(reason)); }

  /// Another verdict on the same run: its errors stay.
  void set(Fault fault, std::string reason);

  Status status = Status::ok;
  Fault fault = Fault::none;
  std::string reason;  ///< why skipped, or what is wrong: for people
  double max_error = 0, error_bound = 0;

  /// Whether the level is wrong: a mismatch, crashed or hung.
  bool is_failure() const;
  /// The reason; after a crash or a hang it begins with that.
  std::string text() const;
};
const char* status_name(CheckResult::Status status);

/// {"status", "fault", "reason", "max_error", "error_bound"}. Without a fault its name is "none".
void to_json(nlohmann::json& json, const CheckResult& check);
void from_json(const nlohmann::json& json, CheckResult& check);

/// What the tracer has found in a kernel. In JSON {"fault", "message"}.
struct FoundFault {
  Fault fault = Fault::none;
  std::string message;
};
void to_json(nlohmann::json& json, const FoundFault& found);
void from_json(const nlohmann::json& json, FoundFault& found);

/// What a claim is about and what it states, without its sentence: by it a count finds its claim,
/// in this process or another.
std::string claim_identity(const Claim& claim);

struct ClaimResult {
  Claim claim;
  std::optional<bool> holds;    ///< empty: this run cannot check it
  std::string checked_by;       ///< "simt", "cuda" or "ncu"
  std::string measured;         ///< what was found, for people
  std::optional<double> value;  ///< the same as a number; empty where there was no such access
};
/// What a claim's count says of the level: false_claim, or not_counted where there is none.
CheckResult check_of(const ClaimResult& claim);
/// {"id", "text", "holds", "checked_by", "measured"}
nlohmann::ordered_json to_json(const ClaimResult& claim);
/// Enters what another process found, such a list, in `claims`. Throws std::runtime_error for a
/// claim that is not among them.
void enter_counts(const nlohmann::json& counted, std::vector<ClaimResult>& claims);

}  // namespace cookbook
