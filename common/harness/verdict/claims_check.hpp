// SPDX-License-Identifier: MIT
// Evaluates mechanism claims on the counters of a traced run.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/backend/simt/runtime/trace.hpp"
#include "common/harness/verdict/verdict.hpp"

namespace cookbook {

/// Whether the line of an access is marked `// [tag]`.
using IsTagged = std::function<bool(const simt::AccessSite&, const std::string& tag)>;

/// By the line's text, in the file that the trace names.
bool is_tagged_in_file(const simt::AccessSite& site, const std::string& tag);

/// Whether the claim's accesses include those of `site`.
bool is_about(const Claim& claim, const simt::AccessSite& site,
              const IsTagged& is_tagged = is_tagged_in_file);

/// Checks `claim` on `trace`. A claim about accesses that never happened is false. Speed claims
/// come back unchecked.
ClaimResult check_on_trace(const Claim& claim, const simt::Trace& trace,
                           const IsTagged& is_tagged = is_tagged_in_file);

/// Totals over all sites: "global_load_requests", "shared_store_wavefronts", "async_load_bytes" ...
std::map<std::string, double> total_counters(const simt::Trace& trace);

/// Whether `measured` satisfies the claim's relation.
bool satisfies(const Claim& claim, double measured);

}  // namespace cookbook
