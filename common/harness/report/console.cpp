// SPDX-License-Identifier: MIT
#include "common/harness/report/console.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "common/harness/report/rates.hpp"

namespace cookbook {
namespace {

std::string paint(const char* code, const std::string& text) {
  return colour_wanted() ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}
std::string bold(const std::string& text) { return paint("1", text); }
std::string dim(const std::string& text) { return paint("2", text); }
std::string good(const std::string& text) { return paint("32", text); }
std::string bad(const std::string& text) { return paint("31;1", text); }

std::string bar(double fraction, int width) {
  static const char* const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int ticks = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * width * 8));
  std::string text;
  for (int i = 0; i < ticks / 8; ++i) text += "█";
  text += eighths[ticks % 8];
  for (int used = ticks / 8 + (ticks % 8 ? 1 : 0); used < width; ++used) text += " ";
  return text;
}

std::string claims_text(const LevelResult& level) {
  int holds = 0, fails = 0, open = 0;
  for (const ClaimResult& claim : level.claims) {
    ++(!claim.holds ? open : *claim.holds ? holds : fails);
  }
  std::string text = fmt::format("{}/{}", holds, holds + fails);
  if (open) text += fmt::format(" +{}?", open);
  return text;
}

double counter(const LevelResult& level, const std::string& key) {
  const auto found = level.counters.find(key);
  return found == level.counters.end() ? 0 : found->second;
}

// "4.00", or "-" when nothing was counted.
std::string per(double amount, double base) {
  return base > 0 ? fmt::format("{:.2f}", amount / base) : "-";
}

std::string number(double value) {
  if (value >= 1e5) return fmt::format("{:.0f}", value);
  return value >= 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  return fmt::format("{:.4g} {}", bytes, units[unit]);
}

// No line is longer, unless a single word is.
constexpr int kColumns = 100;

int columns(const std::string& text) {  // characters, not bytes of UTF-8
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// `text` as indented lines. A line that is too long continues below, from its last space on.
std::string wrapped(const std::string& text, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string lines;
  std::istringstream paragraphs(text);
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    std::istringstream words(paragraph);
    std::string line;
    for (std::string word; std::getline(words, word, ' ');) {
      if (!line.empty() && columns(line) + 1 + columns(word) > kColumns) {
        lines += line + "\n";
        line.clear();
      }
      line += (line.empty() ? margin : " ") + word;
    }
    lines += line + "\n";
  }
  return lines;
}

// Of a claim about speed that does not hold here, and was made for another GPU.
bool is_claimed_elsewhere(const ClaimResult& claim) {
  return !claim.holds && !claim.measured.empty();
}

void print_below(const LevelResult& level, bool with_findings = true) {
  const auto print = [](std::string (*colour)(const std::string&), const std::string& text) {
    fmt::print("{}", colour(wrapped(text, 6)));
  };
  if (level.check.is_failure()) print(bad, level.check.text());
  if (with_findings) {  // a traced report has them already
    for (const FoundFault& finding : level.findings) print(bad, finding.message);
  }
  for (const ClaimResult& claim : level.claims) {
    if (claim.holds == false) {
      print(bad, fmt::format("claim is false: {} (measured {}, checked by {})", claim.claim.text,
                             claim.measured, claim.checked_by));
    } else if (is_claimed_elsewhere(claim)) {
      print(dim, fmt::format("made for another GPU: {} ({})", claim.claim.text, claim.measured));
    }
  }
  if (over_its_roof(level)) {
    print(bad, "faster than its roof: the roof or the byte count is wrong");
  } else if (level.roof_fraction >= 1.0005) {  // printed as more than 100.0
    print(dim, "above 100 % of its roof: noise, because speed and roof are two measurements");
  }
}

bool was_skipped(const LevelResult& level) {
  return level.check.fault == Fault::unsupported || level.check.fault == Fault::not_run;
}

// How many levels were not run, and why: a line per reason.
void print_skipped(const LadderResult& result, int indent) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const LevelResult& level : result.levels) {
    if (was_skipped(level)) by_reason[level.check.reason].push_back(level.name);
    if (!level.not_traced.empty()) {
      by_reason[fmt::format("claims are not checked, as {} is not supported: {}",
                            size_text(result.trace_size), level.not_traced)]
          .push_back(level.name);
    }
  }
  for (const auto& [reason, names] : by_reason) {
    fmt::print("{}", dim(wrapped(fmt::format("Skipped: {} of {} {} ({}): {}", names.size(),
                                             result.levels.size(),
                                             result.levels.size() == 1 ? "level" : "levels", reason,
                                             fmt::join(names, ", ")),
                                 indent)));
  }
}

std::string status_mark(const LevelResult& level) {
  if (was_skipped(level)) return dim("skip");
  return is_right(level) ? good("ok  ") : bad("FAIL");
}

// The widths of a table's columns that depend on its rows. `others`: what the other columns take.
struct Widths {
  int name = 8, claims = 6, bar = 0;

  Widths(const LadderResult& result, int others) {
    for (const LevelResult& level : result.levels) {
      name = std::max(name, columns(level.name));
      claims = std::max(claims, columns(claims_text(level)));
    }
    for (const ReferenceResult& row : result.references) name = std::max(name, columns(row.name));
    name = std::min(name, kColumns - others - claims);
    bar = std::min(20, kColumns - others - claims - name - 2);
    if (bar < 5) bar = 0;
  }

  // A longer name has a line of its own.
  std::string padded(const std::string& text) const {
    const std::string own_line = text + "\n" + std::string(4, ' ');
    return fmt::format("{}{:<{}}", columns(text) > name ? own_line : "",
                       columns(text) > name ? "" : text, name);
  }
};

// Below a table: what its short headings and marks stand for.
void print_legend(const LadderResult& result, bool times, bool counters) {
  auto line = [](const std::string& text) { fmt::print("{}\n", dim("  " + text)); };
  if (times) {
    line("% roof: speed as a fraction of the roof above, which was measured in the same run");
    line("vs previous: speed over the level above it; same: within 2 %, or not distinguishable");
    line("check: results are right and no checked claim is false");
  }
  if (counters) {
    line("loads, stores: 32-byte sectors per request of a warp to global memory");
    line("shared: wavefronts of shared memory over the fewest possible; 1.00: no bank conflict");
    line("bytes: asked of global memory by all threads; bulk: moved by TMA and bulk copies");
  }
  int open = 0;
  for (const LevelResult& level : result.levels) {
    open += static_cast<int>(std::count_if(level.claims.begin(), level.claims.end(),
                                           [](const ClaimResult& claim) { return !claim.holds; }));
  }
  if (open > 0) {
    line("claims: hold / checked; +1?: one that this run cannot check, such as one about speed");
  }
}

bool is_counted(const LadderResult& result) {
  return std::any_of(result.levels.begin(), result.levels.end(),
                     [](const LevelResult& level) { return !level.counters.empty(); });
}

void print_counted_at(const LadderResult& result) {
  if (!is_counted(result)) return;
  const std::string other =
      result.trace_size == result.size ? "" : fmt::format(", not at {}", size_text(result.size));
  fmt::print("{}", dim(wrapped(fmt::format("Counters model the source as written, at {}{}; "
                                           "`--explain`: per line.",
                                           size_text(result.trace_size), other),
                               2)));
}

// Why a library was not timed.
void print_why_not(const ReferenceResult& reference) {
  const bool outside = reference.check.is_failure();
  const std::string why =
      outside ? "not timed, its result is outside this ladder's error bound: " : "skipped: ";
  fmt::print("{}", dim(wrapped(why + reference.check.reason, 6)));
}

void print_gpu(const LadderResult& result) {
  const std::string unit = result.speed_unit();
  const int speed_width = std::max(9, columns(unit));
  const Widths widths(result, 51 + speed_width);
  const int bar_width = widths.bar;
  const std::string gap(static_cast<std::size_t>(bar_width > 0 ? bar_width + 2 : 0), ' ');
  fmt::print("{}\n", dim(fmt::format(" #  {}  {:>9}  {:>{}}  {:>6}{}  {:<15}  check  claims",
                                     widths.padded("level"), "time (us)", unit, speed_width,
                                     "% roof", gap, "vs previous")));
  int index = 0;
  for (const LevelResult& level : result.levels) {
    std::string time = "-", speed = "-", fraction = "-", drawn = gap,
                previous = std::string(15, ' ');
    if (level.cold) {
      time = number(level.cold->median);
      speed = number(result.speed(level.gbps, level.tflops).value_or(0));
      if (level.roof_fraction) fraction = fmt::format("{:.1f}", 100 * *level.roof_fraction);
      if (bar_width > 0) {
        drawn = "  " + paint("36", bar(level.roof_fraction.value_or(0), bar_width));
      }
    }
    if (level.cold && level.vs_previous) {
      const std::string word = verdict(*level.vs_previous);
      previous = fmt::format("{:>7.3f}x {:<6}", level.vs_previous->ratio, word);
      previous = word == "faster" ? good(previous) : word == "slower" ? bad(previous) : previous;
    }
    fmt::print("{:>2}  {}  {:>9}  {:>{}}  {:>6}{}  {}  {}   {}\n", index, widths.padded(level.name),
               time, speed, speed_width, fraction, drawn, previous, status_mark(level),
               claims_text(level));
    print_below(level);
    ++index;
  }
  for (const ReferenceResult& reference : result.references) {
    if (reference.cold) {
      fmt::print(" {}  {}  {:>9}  {:>{}}\n", dim("·"), widths.padded(reference.name),
                 number(reference.cold->median),
                 number(result.speed(reference.gbps, reference.tflops).value_or(0)), speed_width);
    } else {
      fmt::print(" {}  {}\n", dim("·"), reference.name);
      print_why_not(reference);
    }
  }
  const LevelResult* last = result.levels.empty() ? nullptr : &result.levels.back();
  if (last && last->vs_reference) {
    fmt::print("{}", wrapped(fmt::format("{} is {:.3f}x {} [{:.3f}, {:.3f}] ({})", last->name,
                                         last->vs_reference->ratio, last->reference_name,
                                         last->vs_reference->low, last->vs_reference->high,
                                         verdict(*last->vs_reference)),
                             2));
  }
  print_legend(result, true, false);
  print_counted_at(result);
}

void print_counters(const LadderResult& result) {
  const bool counted = is_counted(result);
  const Widths widths(result, 59);
  fmt::print("{}\n", dim(fmt::format(" #  {}  {:>6}  {:>6}  {:>6}  {:>9}  {:>9}  check  claims",
                                     widths.padded("level"), "loads", "stores", "shared", "bytes",
                                     "bulk")));
  int index = 0;
  for (const LevelResult& level : result.levels) {
    const auto& l = level;
    const double waves =
        counter(l, "shared_load_wavefronts") + counter(l, "shared_store_wavefronts");
    const double ideal =
        counter(l, "shared_load_ideal_wavefronts") + counter(l, "shared_store_ideal_wavefronts");
    const double asked = counter(l, "global_load_bytes") + counter(l, "global_store_bytes") +
                         counter(l, "global_atomic_bytes");
    const double bulk = counter(l, "async_load_bytes") + counter(l, "async_store_bytes");
    fmt::print("{:>2}  {}  {:>6}  {:>6}  {:>6}  {:>9}  {:>9}  {}   {}\n", index,
               widths.padded(l.name),
               per(counter(l, "global_load_sectors"), counter(l, "global_load_requests")),
               per(counter(l, "global_store_sectors"), counter(l, "global_store_requests")),
               per(waves, ideal), asked > 0 ? bytes_text(asked) : "-",
               bulk > 0 ? bytes_text(bulk) : "-", status_mark(l), claims_text(l));
    print_below(l);
    ++index;
  }
  print_legend(result, false, counted);
  print_counted_at(result);
  fmt::print("{}\n", dim("  No GPU: times mean nothing here, and no roof was measured."));
}

// Where all levels differ from the reference at one element, the reference may be what is wrong.
void print_doubt(const LadderResult& result) {
  std::string place;
  int wrong = 0;
  for (const LevelResult& level : result.levels) {
    if (was_skipped(level)) continue;
    ++wrong;
    const std::string& reason = level.check.reason;
    const std::size_t end = reason.find(": got ");
    if (level.check.fault != Fault::wrong_result || end == std::string::npos) return;
    if (place.empty()) place = reason.substr(0, end);
    if (reason.compare(0, end, place) != 0) return;
  }
  if (wrong < 2) return;
  fmt::print("{}", bad(wrapped(fmt::format("All levels are wrong at {}: check reference_row(), and "
                                           "the bound that it gives, first.",
                                           place),
                               2)));
}

}  // namespace

bool colour_wanted() {
  static const bool wanted = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  return wanted;
}

void Progress::show(const std::string& text) {
  if (!isatty(STDERR_FILENO)) return;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

void print_ladder(const LadderResult& result) {
  const bool gpu = result.backend == "cuda";
  fmt::print(
      "\n{}",
      bold(wrapped(fmt::format("{} · {} · {}", result.heading, result.ladder, result.title), 0)));
  fmt::print("{}", dim(wrapped(
                       fmt::format("{}, {} {}{}, seed {}{}", device_info().name,
                                   size_text(result.size), result.dtype,
                                   result.layout.empty() ? "" : " " + result.layout, result.seed,
                                   gpu && result.roof_speed()
                                       ? fmt::format(", roof: {} {:.0f} {}", roof_name(result.roof),
                                                     *result.roof_speed(), result.speed_unit())
                                       : ""),
                       2)));
  gpu ? print_gpu(result) : print_counters(result);
  print_skipped(result, 2);
  print_doubt(result);
  std::fflush(stdout);
}

void print_summary(const LadderResult& result) {
  const auto skipped = std::count_if(result.levels.begin(), result.levels.end(), was_skipped);
  std::string more = skipped > 0 ? fmt::format(", {} skipped", skipped) : "";
  double best = 0;
  for (const LevelResult& level : result.levels) {
    if (level.cold) best = std::max(best, result.speed(level.gbps, level.tflops).value_or(0));
  }
  if (best > 0) more += fmt::format(", best {} {}", number(best), result.speed_unit());
  if (best > 0 && result.roof_speed() > 0) {
    more += fmt::format(" ({:.1f} %)", 100 * best / *result.roof_speed());
  }
  fmt::print("  {:<16}  {:<20}  {:>2} {:<6}  {}{}\n", result.ladder, size_text(result.size),
             result.levels.size(), result.levels.size() == 1 ? "level" : "levels",
             result.all_right() ? good("ok") : bad("FAIL"), more);
  for (const LevelResult& level : result.levels) {
    if (is_right(level) &&
        std::none_of(level.claims.begin(), level.claims.end(), is_claimed_elsewhere)) {
      continue;
    }
    fmt::print("    {}\n", level.name);
    print_below(level);
  }
  for (const ReferenceResult& reference : result.references) {
    if (!reference.check.is_failure()) continue;
    fmt::print("    {}\n", reference.name);
    print_why_not(reference);
  }
  print_skipped(result, 4);
  std::fflush(stdout);
}

void print_explained(const Ladder& ladder, const LevelResult& level, const std::string& size,
                     const std::string& report) {
  fmt::print("\n{} · {} at {}\n{}", ladder.name, level.name, size, report);
  if (was_skipped(level)) fmt::print("{}", dim(wrapped("skipped: " + level.check.reason, 6)));
  print_below(level, false);
  std::fflush(stdout);
}

void print_not_judged(const Ladder& ladder) {
  fmt::print("{}", dim(wrapped(fmt::format("Claims are about {} and normal inputs: they are not "
                                           "judged here.",
                                           size_text(ladder.trace_size)),
                               2)));
  std::fflush(stdout);
}

void print_failures(const LadderResult& result) {
  for (const LevelResult& level : result.levels) {
    if (!level.check.is_failure()) continue;
    // Of one that ended its process nothing else says what ran.
    const bool ended = level.check.fault == Fault::crash || level.check.fault == Fault::host_crash;
    fmt::print(
        stderr, "{}: level {}: {}{}\n", result.heading, level.name, level.check.text(),
        ended ? fmt::format(" [ladder {} at {}]", result.ladder,
                            size_text(result.backend == "cuda" ? result.check_size : result.size))
              : "");
  }
}

void print_list(const Ladder& ladder) {
  fmt::print("{}\n", bold(fmt::format("{}: {} ({}; default {} on a GPU, {} without)", ladder.name,
                                      ladder.title, fmt::join(ladder.dims, " x "),
                                      size_text(ladder.gpu_size), size_text(ladder.check_size))));
  int index = 0;
  for (const LevelEntry& level : ladder.levels) {
    fmt::print("{:>3}  {:<18} {}\n", index++, level.name, level.changed);
    fmt::print("{}\n", dim(fmt::format("     {:<18} expect: {}", "", level.expect)));
  }
}

}  // namespace cookbook
