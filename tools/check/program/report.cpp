// SPDX-License-Identifier: MIT
#include "tools/check/program/report.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace cookbook::simt::program {
std::string describe(Place place) {
  const std::string file = place.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line);
}

std::string source_line(Place place) {
  static std::map<std::string, std::vector<std::string>> files;
  const auto [at, is_new] = files.try_emplace(place.file);
  if (is_new) {
    std::ifstream in(place.file);
    for (std::string line; std::getline(in, line);) at->second.push_back(line);
  }
  const auto number = static_cast<size_t>(place.line);
  return number >= 1 && number <= at->second.size() ? at->second[number - 1] : "";
}

/// The site's worst request, for a picture (docs/pictures.md); null where none was kept.
static nlohmann::ordered_json worst_of(const AccessSite& site) {
  if (!site.worst) return nullptr;
  nlohmann::ordered_json addresses = nlohmann::ordered_json::array();
  for (size_t lane = 0; lane < site.worst->address.size(); ++lane) {
    const bool active = (site.worst->active >> lane & 1) != 0;
    addresses.push_back(active ? nlohmann::ordered_json(site.worst->address[lane]) : nullptr);
  }
  return {{"block", site.worst->block}, {"warp", site.worst->warp},   {"addresses", addresses},
          {"start", site.worst->start}, {"units", site.worst->units}, {"ideal", site.worst->ideal},
          {"rule", site.worst->rule}};
}

Progress& progress() {
  static Progress* const instance = [] {
    static Progress own;
    const char* path = std::getenv("COOKBOOK_CHECK_REPORT");
    const int file =
        path ? open((std::string(path) + ".progress").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)
             : -1;
    if (file < 0) return &own;
    void* const memory =
        ftruncate(file, sizeof(own)) == 0
            ? mmap(nullptr, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            : MAP_FAILED;
    close(file);
    return memory == MAP_FAILED ? &own : new (memory) Progress;
  }();
  return *instance;
}

void write(const Report& report) {
  const char* path = std::getenv("COOKBOOK_CHECK_REPORT");
  FILE* file = path ? std::fopen(path, "w") : nullptr;
  if (!file) return;
  using nlohmann::ordered_json;
  ordered_json findings = ordered_json::array(), calls = findings, sites = findings,
               advice = findings, times = findings;
  for (const Finding& finding : report.findings) {
    findings.push_back({{"kind", finding.kind},
                        {"message", finding.message},
                        {"count", finding.count},
                        {"cause", finding.cause},
                        {"places", finding.places},
                        {"remedy", finding.remedy}});
  }
  for (const FailedCall& call : report.failed_calls) {
    calls.push_back({{"function", call.function},
                     {"file", call.place.file},
                     {"line", call.place.line},
                     {"message", call.message},
                     {"is_launch", call.is_launch},
                     {"looked_at", call.looked_at}});
  }
  for (const LaunchTime& one : report.times) times.push_back({one.seconds, one.traced_part});
  for (const Finding& one : report.trace.advice) advice.push_back(one.message);
  for (const Finding& one : report.trace.notes) advice.push_back(one.message);
  for (const AccessSite& site : report.trace.sites) {
    sites.push_back({{"file", site.file},
                     {"line", site.line},
                     {"space", to_string(site.space)},
                     {"op", to_string(site.op)},
                     {"buffer", site.buffer},
                     {"bytes", site.bytes_per_lane},
                     {"worst", worst_of(site)},
                     {"requests", site.requests},
                     {"sectors", site.sectors},
                     {"ideal_sectors", site.ideal_sectors},
                     {"wavefronts", site.wavefronts},
                     {"ideal_wavefronts", site.ideal_wavefronts}});
  }
  const ordered_json all = {{"status", report.status},
                            {"crash", report.crash},
                            {"unsupported", report.unsupported},
                            {"launches", report.launches},
                            {"times", times},
                            {"large_grid", report.large_grid},
                            {"nan_copied", report.nan_copied},
                            {"infinity_copied", report.infinity_copied && !report.infinity_given},
                            {"copies", report.copies},
                            {"copied", std::to_string(report.copied)},
                            {"findings", findings},
                            {"advice", advice},
                            {"failed_calls", calls},
                            {"sites", sites},
                            {"explanation", report.explanation}};
  // Names of the program's files and buffers may be any bytes.
  std::fputs(all.dump(1, ' ', false, ordered_json::error_handler_t::replace).c_str(), file);
  std::fclose(file);
}

}  // namespace cookbook::simt::program
