// SPDX-License-Identifier: MIT
#include "tests/parity/counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "common/harness/run/process.hpp"

namespace cookbook::parity {
namespace {

/// Source files by path relative to the repository, read when first asked for.
const std::vector<std::string>& source_lines(const std::string& file) {
  static std::map<std::string, std::vector<std::string>> files;
  const auto [found, is_new] = files.try_emplace(file);
  if (is_new) {
    std::ifstream in(source_path(file));
    for (std::string text; std::getline(in, text);) {
      const std::size_t first = text.find_first_not_of(" \t");
      const std::size_t last = text.find_last_not_of(" \t\r");
      found->second.push_back(first == std::string::npos ? ""
                                                         : text.substr(first, last - first + 1));
    }
  }
  return found->second;
}

std::string source_text(const std::string& file, int line) {
  const auto& lines = source_lines(file);
  return line >= 1 && line <= static_cast<int>(lines.size()) ? lines[line - 1] : "";
}

bool has_text(const std::string& file, const std::string& text) {
  const auto& lines = source_lines(file);
  return std::find(lines.begin(), lines.end(), text) != lines.end();
}

std::string relative_to_repository(const std::string& file) {
  const std::string root = source_path("");
  return file.rfind(root, 0) == 0 ? file.substr(root.size()) : file;
}

void add(Counts& to, const Counts& from) {
  to.requests += from.requests;
  to.sectors += from.sectors;
  to.conflicts += from.conflicts;
  to.wavefronts += from.wavefronts;
}

Json counts_json(const Counts& counts, bool shared) {
  if (shared) {
    return {{"requests", counts.requests},
            {"wavefronts", counts.wavefronts},
            {"conflicts", counts.conflicts}};
  }
  return {{"requests", counts.requests}, {"sectors", counts.sectors}};
}

Counts counts_from(const Json& json) {
  const auto value = [&](const char* name) { return json.value(name, std::uint64_t{0}); };
  return {value("requests"), value("sectors"), value("conflicts"), value("wavefronts")};
}

/// "global_load" ...; empty for what goes past the counters. Of asynchronous operations only
/// cp.async meets them, on both of its sides: 4 to 16 bytes per lane, where a piece of TMA is
/// wider.
std::string op_of(const simt::AccessSite& site) {
  using simt::Op, simt::Space;
  constexpr int kWidestCpAsync = 16;
  if (site.op == Op::load || site.op == Op::store) {
    return fmt::format("{}_{}", to_string(site.space), to_string(site.op));
  }
  if (site.bytes_per_lane > kWidestCpAsync) return "";
  if (site.op == Op::async_load && site.space == Space::global) return "global_async_load";
  if (site.op == Op::async_store && site.space == Space::shared) return "shared_async_store";
  return "";
}

/// Calls `use` with the file's content, if there is a file.
void read(const std::string& file, const std::function<void(const Json&)>& use) {
  std::ifstream in(file);
  if (!in) return;
  try {
    use(Json::parse(in));
  } catch (const Json::exception& error) {
    throw std::runtime_error(file + ": " + error.what());
  }
}

std::string describe(const Difference& difference) {
  return fmt::format(
      "{} {}{}: the SIMT backend counts {}, the hardware {}", difference.op, difference.counter,
      difference.text.empty() ? " in all"
                              : fmt::format(" at {} `{}`", difference.where, difference.text),
      difference.simt, difference.hardware);
}

}  // namespace

const std::vector<Compared>& compared() {
  static const std::vector<Compared> list = {
      {"global_load", "sectors", &Counts::sectors},
      {"global_store", "sectors", &Counts::sectors},
      {"shared_load", "conflicts", &Counts::conflicts},
      {"shared_store", "conflicts", &Counts::conflicts},
      {"global_async_load", "sectors", &Counts::sectors},
      {"shared_async_store", "conflicts", &Counts::conflicts}};
  return list;
}

CaseCounts trace_case(const Case& one, const Size& size) {
  const auto launches = one.prepare(size);
  simt::start_trace();
  try {
    launches(Stream{});
    synchronize();
  } catch (...) {
    simt::stop_trace();
    throw;
  }
  const simt::Trace trace = simt::stop_trace();

  CaseCounts result;
  result.size = size;
  std::map<std::tuple<std::string, int, std::string>, LineCounts> lines;
  for (const simt::AccessSite& site : trace.sites) {
    const std::string op = op_of(site);
    if (op.empty()) continue;
    Counts counts;
    counts.requests = site.requests;
    counts.sectors = site.sectors;
    // Nsight Compute has no counter of a copy's writes without its reads.
    counts.wavefronts = op == "shared_async_store" ? site.copy_wavefronts : site.wavefronts;
    counts.conflicts = counts.wavefronts - std::min(counts.wavefronts, site.ideal_wavefronts);
    add(result.totals[op], counts);
    const std::string file = relative_to_repository(site.file);
    LineCounts& line = lines[{file, site.line, op}];
    line.file = file;
    line.line = site.line;
    line.op = op;
    line.bytes = std::max(line.bytes, site.bytes_per_lane);
    line.text = source_text(file, site.line);
    add(line.counts, counts);
  }
  for (auto& [key, line] : lines) result.lines.push_back(std::move(line));
  return result;
}

void model_sms(int count) {
  // The environment, because device_info() is read once, by whoever asks first.
  setenv("COOKBOOK_SIMT_SMS", std::to_string(count).c_str(), 1);
}

std::string Golden::default_file() { return source_path("tests/parity/golden/h200.json"); }

std::string Golden::default_exceptions_file() {
  return source_path("tests/parity/exceptions.json");
}

Golden Golden::load(const std::string& file, const std::string& exceptions_file) {
  Golden golden;
  read(file, [&](const Json& json) {
    golden.device = json.at("device").at("name").get<std::string>();
    golden.sm_count = json.at("device").at("sm_count").get<int>();
    for (const auto& [name, entry] : json.at("cases").items()) {
      CaseCounts& one = golden.cases[name];
      one.size = entry.at("size").get<Size>();
      for (const auto& [op, counts] : entry.at("totals").items()) {
        one.totals[op] = counts_from(counts);
      }
      for (const Json& line : entry.at("lines")) {
        one.lines.push_back({line.at("file").get<std::string>(), line.at("line").get<int>(),
                             line.at("text").get<std::string>(), line.at("op").get<std::string>(),
                             line.at("bytes").get<int>(), counts_from(line)});
      }
    }
  });
  read(exceptions_file, [&](const Json& json) {
    for (const Json& entry : json) {
      golden.exceptions.push_back(
          {entry.at("case").get<std::string>(), entry.at("op").get<std::string>(),
           entry.value("text", std::string()), entry.at("simt").get<std::uint64_t>(),
           entry.at("hardware").get<std::uint64_t>(), entry.at("why").get<std::string>(),
           entry.value("by_compiler", false)});
    }
  });
  return golden;
}

Comparison compare(const CaseCounts& simt, const CaseCounts& hardware) {
  Comparison result;
  std::set<std::string> changed_files;
  for (const LineCounts& line : hardware.lines) {
    if (!has_text(line.file, line.text) && changed_files.insert(line.file).second) {
      result.notes.push_back(line.file +
                             " has changed since it was measured: only totals are compared");
    }
  }
  for (const Compared& what : compared()) {
    const auto value_of = [&](const std::map<std::string, Counts>& totals) {
      const auto found = totals.find(what.op);
      return found == totals.end() ? 0 : found->second.*what.value;
    };
    const std::uint64_t simt_total = value_of(simt.totals);
    const std::uint64_t hardware_total = value_of(hardware.totals);
    if (simt_total != hardware_total) {
      result.differences.push_back({what.op, what.counter, "", "", simt_total, hardware_total});
    }

    // By text, so that a line may move. Equal lines of a file are one, on both sides.
    struct Pair {
      std::uint64_t simt = 0, hardware = 0;
      std::string where;
    };
    std::map<std::pair<std::string, std::string>, Pair> lines;
    const auto gather = [&](const std::vector<LineCounts>& from, std::uint64_t Pair::*side) {
      for (const LineCounts& line : from) {
        if (line.op != what.op || changed_files.count(line.file) != 0) continue;
        Pair& pair = lines[{line.file, line.text}];
        pair.*side += line.counts.*what.value;
        pair.where = fmt::format("{}:{}", line.file, line.line);
      }
    };
    gather(hardware.lines, &Pair::hardware);
    gather(simt.lines, &Pair::simt);
    for (const auto& [key, pair] : lines) {
      ++result.compared_lines;
      if (pair.simt == pair.hardware) continue;
      result.differences.push_back(
          {what.op, what.counter, key.second, pair.where, pair.simt, pair.hardware});
    }
  }
  return result;
}

Verdict judge(const std::string& name, const CaseCounts& simt, const Golden& golden, int gcc) {
  constexpr int kPinned = 12;  // the g++ whose numbers exceptions.json holds
  Verdict verdict;
  const auto measured = golden.cases.find(name);
  if (measured == golden.cases.end()) {
    verdict.failures.push_back(name + " has no measurement: run tests/parity/run_ncu.sh on a GPU");
    return verdict;
  }
  const Comparison comparison = compare(simt, measured->second);
  verdict.notes = comparison.notes;
  std::vector<const Exception*> open;
  for (const Exception& exception : golden.exceptions) {
    if (exception.name == name) open.push_back(&exception);
  }
  for (const Difference& difference : comparison.differences) {
    const auto found = std::find_if(open.begin(), open.end(), [&](const Exception* exception) {
      return exception->op == difference.op && exception->text == difference.text;
    });
    if (found == open.end()) {
      verdict.failures.push_back(describe(difference));
      continue;
    }
    const Exception& exception = **found;
    open.erase(found);
    if (exception.why.empty()) {
      verdict.failures.push_back(describe(difference) + "; its exception does not say why");
    } else if (exception.hardware != difference.hardware ||
               (exception.by_compiler && gcc != kPinned ? difference.simt < difference.hardware
                                                        : exception.simt != difference.simt)) {
      verdict.failures.push_back(fmt::format("{}; its exception was made for {} and {}",
                                             describe(difference), exception.simt,
                                             exception.hardware));
    } else {
      verdict.explained.push_back(describe(difference) + ". Why: " + exception.why);
    }
  }
  for (const Exception* exception : open) {
    // An exception for a line whose file has changed may be needed again.
    if (!exception->text.empty() && !comparison.notes.empty()) continue;
    // Other versions than g++ 12 may give equal numbers, or 12 itself where the exception says so.
    if (exception->by_compiler && (gcc != kPinned || exception->simt == exception->hardware))
      continue;
    verdict.failures.push_back(
        fmt::format("the exception for {}{} is not needed: the numbers are equal", exception->op,
                    exception->text.empty() ? "" : " at `" + exception->text + "`"));
  }
  return verdict;
}

Json to_json(const CaseCounts& counts) {
  const auto is_shared = [](const std::string& op) { return op.rfind("shared", 0) == 0; };
  Json totals = Json::object();
  for (const auto& [op, value] : counts.totals) totals[op] = counts_json(value, is_shared(op));
  Json lines = Json::array();
  for (const LineCounts& line : counts.lines) {
    Json entry = {{"file", line.file},
                  {"line", line.line},
                  {"text", line.text},
                  {"op", line.op},
                  {"bytes", line.bytes}};
    entry.update(counts_json(line.counts, is_shared(line.op)));
    lines.push_back(std::move(entry));
  }
  return {{"size", counts.size}, {"totals", totals}, {"lines", lines}};
}

}  // namespace cookbook::parity
