// SPDX-License-Identifier: MIT
#include "tools/check/program/report.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

namespace cookbook::simt::program {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

template <class T, class F>
std::string list(const std::vector<T>& items, F&& to_json) {
  std::string out = "[";
  for (const T& item : items) out += (out.size() > 1 ? ",\n  " : "\n  ") + to_json(item);
  return out + "]";
}

std::string to_json(const AccessSite& site) {
  const auto number = [](const char* name, uint64_t value) {
    return std::string(",\"") + name + "\":" + std::to_string(value);
  };
  return "{\"kernel\":" + quoted(site.kernel) + ",\"file\":" + quoted(site.file) +
         number("line", static_cast<uint64_t>(site.line)) +
         ",\"space\":" + quoted(to_string(site.space)) + ",\"op\":" + quoted(to_string(site.op)) +
         ",\"buffer\":" + quoted(site.buffer) +
         number("bytes_per_lane", static_cast<uint64_t>(site.bytes_per_lane)) +
         number("requests", site.requests) + number("lanes", site.lanes) +
         number("sectors", site.sectors) + number("ideal_sectors", site.ideal_sectors) +
         number("wavefronts", site.wavefronts) + number("ideal_wavefronts", site.ideal_wavefronts) +
         "}";
}

}  // namespace

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

void write(const Report& report) {
  const char* path = std::getenv("COOKBOOK_CHECK_REPORT");
  FILE* file = path ? std::fopen(path, "w") : nullptr;
  if (!file) return;
  std::string text = "{\"status\":" + std::to_string(report.status) +
                     ",\"crash\":" + quoted(report.crash) +
                     ",\"launches\":" + std::to_string(report.launches);
  text += ",\n\"findings\":" + list(report.findings, [](const Finding& finding) {
            return "{\"kind\":" + quoted(finding.kind) + ",\"message\":" + quoted(finding.message) +
                   ",\"count\":" + std::to_string(finding.count) + "}";
          });
  text += ",\n\"failed_calls\":" + list(report.failed_calls, [](const FailedCall& call) {
            return "{\"function\":" + quoted(call.function) +
                   ",\"file\":" + quoted(call.place.file) +
                   ",\"line\":" + std::to_string(call.place.line) +
                   ",\"message\":" + quoted(call.message) +
                   ",\"is_launch\":" + (call.is_launch ? "true" : "false") +
                   ",\"looked_at\":" + (call.looked_at ? "true" : "false") + "}";
          });
  text += ",\n\"sites\":" +
          list(report.trace.sites, [](const AccessSite& site) { return to_json(site); });
  text += ",\n\"explanation\":" + quoted(report.explanation) + "}\n";
  std::fputs(text.c_str(), file);
  std::fclose(file);
}

}  // namespace cookbook::simt::program
