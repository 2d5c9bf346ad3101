// SPDX-License-Identifier: MIT
// Linked into traced executables only.
#include "common/harness/run/requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "common/harness/run/options.hpp"
#include "common/harness/run/process.hpp"

namespace cookbook {
namespace {

constexpr int kLinesPerMemory = 6;

std::uint64_t units(const simt::AccessSite& site) { return site.sectors + site.wavefronts; }

std::uint64_t excess(const simt::AccessSite& site) {
  return units(site) - site.ideal_sectors - site.ideal_wavefronts;
}

nlohmann::ordered_json request_json(const simt::AccessSite& site) {
  const simt::Request& worst = *site.worst;
  const bool global = site.space == simt::Space::global;
  const char* unit = global ? "sectors" : "wavefronts";
  nlohmann::ordered_json addresses = nlohmann::ordered_json::array();
  for (int lane = 0; lane < 32; ++lane) {
    const bool active = (worst.active >> lane & 1) != 0;
    addresses.push_back(active ? nlohmann::ordered_json(worst.address[lane]) : nullptr);
  }
  return {{"kernel", site.kernel},
          {"file", short_path(site.file)},
          {"line", site.line},
          {"source", simt::source_line(site.file, site.line)},
          {"memory", to_string(site.space)},
          {"operation", to_string(site.op)},
          {"buffer", global ? site.buffer : worst.start},
          {"bytes", site.bytes_per_lane},
          {"rule", global ? nlohmann::ordered_json(nullptr) : worst.rule},
          {"block", worst.block},
          {"warp", worst.warp},
          {"addresses", addresses},
          {"counted", {{unit, worst.units}, {"ideal", worst.ideal}}},
          {"line_total",
           {{"requests", site.requests},
            {unit, units(site)},
            {"ideal", site.ideal_sectors + site.ideal_wavefronts}}}};
}

}  // namespace

nlohmann::ordered_json worst_requests(const simt::Trace& trace) {
  std::vector<const simt::AccessSite*> sites;
  for (const simt::AccessSite& site : trace.sites) {
    if (site.worst) sites.push_back(&site);
  }
  std::stable_sort(sites.begin(), sites.end(), [](const auto* one, const auto* other) {
    return std::pair(excess(*one), units(*one)) > std::pair(excess(*other), units(*other));
  });
  nlohmann::ordered_json requests = nlohmann::ordered_json::array();
  int taken[2] = {};
  for (const simt::AccessSite* site : sites) {
    if (taken[static_cast<int>(site->space)]++ < kLinesPerMemory) {
      requests.push_back(request_json(*site));
    }
  }
  return requests;
}

nlohmann::ordered_json line_counts(const simt::Trace& trace) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const simt::AccessSite& site : trace.sites) {
    lines.push_back({{"kernel", site.kernel},
                     {"file", short_path(site.file)},
                     {"line", site.line},
                     {"memory", to_string(site.space)},
                     {"operation", to_string(site.op)},
                     {"buffer", site.buffer},
                     {"bytes_per_lane", site.bytes_per_lane},
                     {"requests", site.requests},
                     {"lanes", site.lanes},
                     {"sectors", site.sectors},
                     {"ideal_sectors", site.ideal_sectors},
                     {"wavefronts", site.wavefronts},
                     {"ideal_wavefronts", site.ideal_wavefronts},
                     {"bytes", site.bytes}});
  }
  return lines;
}

std::string requests_file(const std::string& folder, const std::string& ladder,
                          const std::string& level) {
  return folder + "/" + ladder + "-" + level + ".json";
}

void write_requests(const std::string& file, const Chapter& chapter, const std::string& ladder,
                    const std::string& level, const Size& size,
                    const nlohmann::ordered_json& requests) {
  const bool capstone = chapter.is_capstone();
  nlohmann::ordered_json document{
      {"schema", 1}, {"kind", "requests"}, {"chapter", nullptr}, {"capstone", nullptr}};
  if (capstone) document["capstone"] = chapter.capstone;
  if (!capstone) document["chapter"] = chapter.number;
  document["ladder"] = ladder;
  document["level"] = level;
  document["size"] = size;
  std::string text = document.dump();  // a line per request
  text.replace(text.size() - 1, 1, ", \"requests\": [");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + requests[i].dump();
  }
  write_file(file, text + "]}\n");
  if (run_program({"python3", "-B", source_path("plots/draw.py"), file}) != 0) {
    throw std::runtime_error(fmt::format("{}: no pictures of it were drawn", file));
  }
}

}  // namespace cookbook
