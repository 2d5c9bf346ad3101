// SPDX-License-Identifier: MIT
#include "common/backend/simt/runtime/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

namespace cookbook::simt {

bool tracing_available() { return tracer_backend != nullptr; }

void start_trace(const TraceBudget& budget) {
  if (tracer_backend == nullptr) {
    throw std::runtime_error("tracing needs the traced executable: kernels compiled for tracing");
  }
  tracer_backend->start(budget);
}

Trace stop_trace() { return tracer_backend != nullptr ? tracer_backend->stop() : Trace{}; }

std::vector<Finding> take_host_overflows() {
  if (tracer_backend == nullptr) return {};
  return tracer_backend->take_host_overflows();
}

const char* to_string(Space space) {
  return space == Space::global ? "global" : space == Space::shared ? "shared" : "tensor";
}

const char* to_string(Op op) {
  switch (op) {
    case Op::load: return "load";
    case Op::store: return "store";
    case Op::atomic: return "atomic";
    case Op::async_load: return "async load";
    case Op::async_store: return "async store";
    case Op::alloc: return "alloc";
  }
  return "?";
}

namespace {

/// Lines of source files, read when first asked for.
class SourceText {
 public:
  /// The line without surrounding space, shortened; empty if the file cannot be read.
  std::string line(const std::string& file, int number) {
    constexpr size_t kMaxLength = 72;
    const auto [found, is_new] = files_.try_emplace(file);
    std::vector<std::string>& lines = found->second;
    if (is_new) {
      std::ifstream in(file);
      for (std::string text; std::getline(in, text);) lines.push_back(text);
    }
    if (number < 1 || static_cast<size_t>(number) > lines.size()) return {};
    const std::string& text = lines[number - 1];
    const size_t first = text.find_first_not_of(" \t");
    if (first == std::string::npos) return {};
    const size_t last = text.find_last_not_of(" \t\r");
    std::string trimmed = text.substr(first, last - first + 1);
    if (trimmed.size() > kMaxLength) trimmed = trimmed.substr(0, kMaxLength - 3) + "...";
    return trimmed;
  }

 private:
  std::map<std::string, std::vector<std::string>> files_;
};

/// "4.00 (4.00)": per request, and in brackets the ideal; empty where nothing is counted.
std::string per_request(uint64_t units, uint64_t ideal, uint64_t requests) {
  if (requests == 0 || units == 0) return "";
  const double scale = 1.0 / static_cast<double>(requests);
  return fmt::format("{:.2f} ({:.2f})", static_cast<double>(units) * scale,
                     static_cast<double>(ideal) * scale);
}

void append_table(std::string& out, const std::vector<std::vector<std::string>>& rows,
                  const std::vector<bool>& right) {
  std::vector<size_t> width(right.size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string pad(width[c] - row[c].size(), ' ');
      line += " " + (right[c] ? pad + row[c] : row[c] + pad) + " ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
}

}  // namespace

std::string source_line(const std::string& file, int line) { return SourceText().line(file, line); }

std::string explain(const Trace& trace) {
  std::string out;
  SourceText source;
  for (const KernelTotals& kernel : trace.kernels) {
    using fmt::group_digits;
    out += fmt::format("{}  - model of the source as written\n  {} blocks", kernel.kernel,
                       group_digits(kernel.blocks));
    if (kernel.traced_blocks < kernel.blocks) {
      out += fmt::format(" ({} traced)", group_digits(kernel.traced_blocks));
    }
    out += fmt::format(
        ", {} basic blocks issued, {:.1f} lanes active on average; global memory: {} bytes asked "
        "for, {} distinct\n",
        group_digits(kernel.basic_blocks), kernel.mean_active_lanes,
        group_digits(kernel.bytes_requested), group_digits(kernel.distinct_bytes));
    std::vector<std::vector<std::string>> rows = {{"line", "memory", "op", "bytes", "buffer",
                                                   "requests", "sectors/req (ideal)",
                                                   "wavefronts/req (ideal)", "lanes", "source"}};
    for (const AccessSite& site : trace.sites) {
      if (site.kernel != kernel.kernel) continue;
      const bool bulk = site.bytes_per_lane > 16;
      rows.push_back(
          {fmt::format("{}:{}", std::filesystem::path(site.file).filename().string(), site.line),
           to_string(site.space), to_string(site.op), std::to_string(site.bytes_per_lane),
           site.buffer, fmt::to_string(group_digits(site.requests)),
           per_request(site.sectors, site.ideal_sectors, site.requests),
           per_request(site.wavefronts, site.ideal_wavefronts, site.requests),
           bulk || site.requests == 0
               ? "-"
               : fmt::format("{:.1f}",
                             static_cast<double>(site.lanes) / static_cast<double>(site.requests)),
           source.line(site.file, site.line)});
    }
    append_table(out, rows, {false, false, false, true, false, true, true, true, true, false});
    out += "\n";
  }
  if (trace.findings.empty()) {
    out += "no races, uninitialised reads or accesses out of bounds found\n";
  }
  for (const Finding& finding : trace.findings) {
    out += finding.message;
    if (finding.count > 1) out += fmt::format(" [{} times]", fmt::group_digits(finding.count));
    out += "\n";
  }
  for (const Finding& advice : trace.advice) out += "advice: " + advice.message + "\n";
  return out;
}

}  // namespace cookbook::simt
