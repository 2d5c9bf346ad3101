// SPDX-License-Identifier: MIT
// Evaluates mechanism claims on the counters of a traced run.
#pragma once

#include <map>
#include <string>

#include "common/backend/simt/runtime/trace.hpp"
#include "common/harness/verdict/verdict.hpp"

namespace cookbook {

/// Checks `claim` on `trace`. A claim about accesses that never happened is false. Speed claims
/// come back unchecked.
ClaimResult check_on_trace(const Claim& claim, const simt::Trace& trace);

/// Totals over all sites: "global_load_requests", "shared_store_wavefronts", "async_load_bytes" ...
std::map<std::string, double> total_counters(const simt::Trace& trace);

/// Whether `measured` satisfies the claim's relation.
bool satisfies(const Claim& claim, double measured);

}  // namespace cookbook
