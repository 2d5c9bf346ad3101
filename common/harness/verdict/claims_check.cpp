// SPDX-License-Identifier: MIT
#include "common/harness/verdict/claims_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <fstream>
#include <set>
#include <unordered_map>

namespace cookbook {
namespace {

constexpr double kColumnBytes = 128 * 4;  // of tensor memory: 32 bits in each lane

const char* space_name(simt::Space space) {
  switch (space) {
    case simt::Space::global: return "global";
    case simt::Space::shared: return "shared";
    case simt::Space::tensor: return "tensor";
  }
  return "?";
}

const char* op_name(simt::Op op) {
  switch (op) {
    case simt::Op::load: return "load";
    case simt::Op::store: return "store";
    case simt::Op::atomic: return "atomic";
    case simt::Op::async_load: return "async_load";
    case simt::Op::async_store: return "async_store";
    case simt::Op::alloc: return "alloc";
  }
  return "?";
}

// Where the lines are that a tag could have meant: a line that calls a function is not the line of
// the access.
std::string elsewhere(const Claim& claim, const simt::Trace& trace) {
  if (claim.tag.empty()) return "";
  Claim untagged = claim;
  untagged.tag.clear();
  std::set<std::string> lines;
  for (const simt::AccessSite& site : trace.sites) {
    if (!is_about(untagged, site, {})) continue;
    lines.insert(fmt::format("{}:{}", site.file.substr(site.file.rfind('/') + 1), site.line));
  }
  if (lines.empty()) return "";
  return fmt::format(" on a line tagged [{}]; such lines are {}", claim.tag,
                     fmt::join(lines, ", "));
}

}  // namespace

bool is_tagged_in_file(const simt::AccessSite& site, const std::string& tag) {
  static std::unordered_map<std::string, std::vector<std::string>> files;
  auto [entry, is_new] = files.try_emplace(site.file);
  if (is_new) {
    std::ifstream in(site.file);
    for (std::string text; std::getline(in, text);) entry->second.push_back(text);
  }
  const auto& lines = entry->second;
  return site.line >= 1 && site.line <= static_cast<int>(lines.size()) &&
         lines[site.line - 1].ends_with("// [" + tag + "]");
}

bool is_about(const Claim& claim, const simt::AccessSite& site, const IsTagged& is_tagged) {
  return (claim.space.empty() || claim.space == space_name(site.space)) &&
         (claim.op.empty() || claim.op == op_name(site.op)) &&
         (claim.buffer.empty() || claim.buffer == site.buffer) &&
         site.kernel.find(claim.kernel) != std::string::npos &&
         (claim.tag.empty() || is_tagged(site, claim.tag));
}

bool satisfies(const Claim& claim, double measured) {
  const double slack = std::fabs(claim.value) * claim.tolerance;
  switch (claim.relation) {
    case Relation::equal: return std::fabs(measured - claim.value) <= slack;
    case Relation::at_least: return measured >= claim.value - slack;
    case Relation::at_most: return measured <= claim.value + slack;
  }
  return false;
}

ClaimResult check_on_trace(const Claim& claim, const simt::Trace& trace,
                           const IsTagged& is_tagged) {
  ClaimResult result;
  result.claim = claim;
  if (!claim.is_mechanism()) return result;
  bool any = false;
  double requests = 0, sectors = 0, ideal_sectors = 0, waves = 0, ideal_waves = 0, bytes = 0;
  for (const simt::AccessSite& site : trace.sites) {
    if (!is_about(claim, site, is_tagged)) continue;
    any = true;
    requests += static_cast<double>(site.requests);
    sectors += static_cast<double>(site.sectors);
    ideal_sectors += static_cast<double>(site.ideal_sectors);
    waves += static_cast<double>(site.wavefronts);
    ideal_waves += static_cast<double>(site.ideal_wavefronts);
    bytes += static_cast<double>(site.bytes);
  }
  result.checked_by = "simt";
  double measured = 0;
  double base = 1;
  switch (claim.metric) {
    case Metric::sectors_per_request: measured = sectors, base = requests; break;
    case Metric::sectors_over_ideal: measured = sectors, base = ideal_sectors; break;
    case Metric::wavefronts_over_ideal: measured = waves, base = ideal_waves; break;
    case Metric::wavefronts_per_request: measured = waves, base = requests; break;
    case Metric::requests: measured = requests; break;
    case Metric::bytes: measured = bytes; break;
    case Metric::columns: measured = bytes / kColumnBytes, base = requests; break;
    default: break;
  }
  // An upper bound also holds when there are no accesses, for example because the buffer was
  // renamed. So it needs some; only a claim of 0 means that there are none.
  if (base == 0 || (!any && claim.value != 0)) {
    result.holds = false;
    result.measured = "no such access" + elsewhere(claim, trace);
    return result;
  }
  result.holds = satisfies(claim, measured / base);
  result.value = measured / base;
  result.measured = number_text(measured / base);
  if (!*result.holds && result.measured == number_text(claim.value)) {
    result.measured = fmt::format("{:.12g}", measured / base);  // they differ further on
  }
  if (claim.metric == Metric::bytes) result.measured += " bytes";
  if (claim.metric == Metric::requests) result.measured += " requests";
  return result;
}

std::map<std::string, double> total_counters(const simt::Trace& trace) {
  std::map<std::string, double> totals;
  for (const simt::AccessSite& site : trace.sites) {
    const bool bulk = site.op == simt::Op::async_load || site.op == simt::Op::async_store;
    const std::string key =
        bulk ? std::string(op_name(site.op)) + (site.space == simt::Space::shared ? "_shared" : "")
             : std::string(space_name(site.space)) + "_" + op_name(site.op);
    totals[key + "_requests"] += static_cast<double>(site.requests);
    totals[key + "_bytes"] += static_cast<double>(site.bytes);
    if (site.space == simt::Space::global) {
      totals[key + "_sectors"] += static_cast<double>(site.sectors);
      totals[key + "_ideal_sectors"] += static_cast<double>(site.ideal_sectors);
    } else if (site.space == simt::Space::shared) {
      totals[key + "_wavefronts"] += static_cast<double>(site.wavefronts);
      totals[key + "_ideal_wavefronts"] += static_cast<double>(site.ideal_wavefronts);
    }
  }
  for (const simt::KernelTotals& kernel : trace.kernels) {
    totals["distinct_bytes"] += static_cast<double>(kernel.distinct_bytes);
    totals["launches"] += static_cast<double>(kernel.launches);
  }
  return totals;
}

}  // namespace cookbook
