// SPDX-License-Identifier: MIT
#include "common/harness/console.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "common/harness/options.hpp"

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

bool claim_failed(const LevelResult& level) {
  return std::any_of(level.claims.begin(), level.claims.end(),
                     [](const ClaimResult& claim) { return claim.holds == false; });
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

void print_below(const LevelResult& level, bool with_findings = true) {
  if (level.status == "skipped") fmt::print("      {}\n", dim("skipped: " + level.reason));
  if (level.status == "not_run") fmt::print("      {}\n", dim("not run: " + level.reason));
  if (is_failure(level.status)) {
    fmt::print("      {}\n",
               bad((level.status == "mismatch" ? "" : level.status + ": ") + level.reason));
  }
  if (with_findings) {  // a traced report has them already
    for (const std::string& finding : level.findings) fmt::print("      {}\n", bad(finding));
  }
  for (const ClaimResult& claim : level.claims) {
    if (claim.holds == false) {
      fmt::print("      {}\n",
                 bad(fmt::format("claim is false: {} (measured {}, checked by {})",
                                 claim.claim.text, claim.measured, claim.checked_by)));
    }
  }
  if (level.roof_fraction && *level.roof_fraction > 1.03) {
    fmt::print("      {}\n", bad("faster than its roof: the roof or the byte count is wrong"));
  }
}

std::string status_mark(const LevelResult& level) {
  if (level.status == "skipped" || level.status == "not_run") return dim("skip");
  return level.status == "ok" && level.findings.empty() && !claim_failed(level) ? good("ok  ")
                                                                                : bad("FAIL");
}

// Below a table: what its short headings and marks stand for.
void print_legend(const LadderResult& result, bool counters) {
  auto line = [](const std::string& text) { fmt::print("{}\n", dim("  " + text)); };
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

void print_gpu(const LadderResult& result, int name_width) {
  const std::string unit = result.speed_unit();
  const int speed_width = std::max(9, static_cast<int>(unit.size()));
  fmt::print(
      "{}\n",
      dim(fmt::format(" #   {:<{}}  {:>11}  {:>{}}  {:>6}  {:<20}  {:<22}  check  claims", "level",
                      name_width, "time (us)", unit, speed_width, "% roof", "", "vs previous")));
  int index = 0;
  for (const LevelResult& level : result.levels) {
    if (level.cold) {
      const double fraction = level.roof_fraction.value_or(0);
      std::string previous;
      if (level.vs_previous) {
        const std::string word = verdict(*level.vs_previous);
        previous = fmt::format("{:>7.3f}x {:<12}", level.vs_previous->ratio, word);
        previous = word == "faster" ? good(previous) : word == "slower" ? bad(previous) : previous;
      } else {
        previous = fmt::format("{:<21}", "");
      }
      fmt::print("{:>2}   {:<{}}  {:>11}  {:>{}}  {:>6}  {}  {}  {}   {}\n", index, level.name,
                 name_width, number(level.cold->median),
                 number(result.speed(level.gbps, level.tflops).value_or(0)), speed_width,
                 level.roof_fraction ? fmt::format("{:.1f}", 100 * fraction) : "-",
                 paint("36", bar(fraction, 20)), previous, status_mark(level), claims_text(level));
    } else {
      fmt::print("{:>2}   {:<{}}  {:>11}  {:>{}}  {:>6}  {:<20}  {:<21}  {}   {}\n", index,
                 level.name, name_width, "-", "-", speed_width, "-", "", "", status_mark(level),
                 claims_text(level));
    }
    print_below(level);
    ++index;
  }
  for (const ReferenceResult& reference : result.references) {
    if (reference.cold) {
      fmt::print(" {}   {:<{}}  {:>11}  {:>{}}\n", dim("·"), reference.name, name_width,
                 number(reference.cold->median),
                 number(result.speed(reference.gbps, reference.tflops).value_or(0)), speed_width);
    } else {
      fmt::print(
          " {}   {:<{}}  {}\n", dim("·"), reference.name, name_width,
          dim((reference.status == "mismatch" ? "wrong: " : "skipped: ") + reference.reason));
    }
  }
  const LevelResult* last = result.levels.empty() ? nullptr : &result.levels.back();
  if (last && last->vs_reference) {
    fmt::print("  {} is {:.3f}x {} [{:.3f}, {:.3f}] ({})\n", last->name, last->vs_reference->ratio,
               last->reference_name, last->vs_reference->low, last->vs_reference->high,
               verdict(*last->vs_reference));
  }
  print_legend(result, false);
}

void print_counters(const LadderResult& result, int name_width) {
  const bool counted =
      std::any_of(result.levels.begin(), result.levels.end(),
                  [](const LevelResult& level) { return !level.counters.empty(); });
  fmt::print("{}\n",
             dim(fmt::format(" #  {:<{}}  {:>6}  {:>6}  {:>6}  {:>9}  {:>9}  check  claims",
                             "level", name_width, "loads", "stores", "shared", "bytes", "bulk")));
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
    fmt::print("{:>2}  {:<{}}  {:>6}  {:>6}  {:>6}  {:>9}  {:>9}  {}   {}\n", index, l.name,
               name_width,
               per(counter(l, "global_load_sectors"), counter(l, "global_load_requests")),
               per(counter(l, "global_store_sectors"), counter(l, "global_store_requests")),
               per(waves, ideal), asked > 0 ? bytes_text(asked) : "-",
               bulk > 0 ? bytes_text(bulk) : "-", status_mark(l), claims_text(l));
    print_below(l);
    ++index;
  }
  print_legend(result, counted);
  if (counted) {
    fmt::print("{}\n", dim(fmt::format("  Counters model the source as written, at {}{}; "
                                       "`--explain` shows them per line.",
                                       size_text(result.trace_size),
                                       result.trace_size == result.size
                                           ? ""
                                           : fmt::format(", not at {}", size_text(result.size)))));
  }
  fmt::print("{}\n", dim("  No GPU: times mean nothing here, and no roof was measured."));
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
  std::size_t width = 8;
  for (const LevelResult& level : result.levels) width = std::max(width, level.name.size());
  for (const ReferenceResult& row : result.references) width = std::max(width, row.name.size());
  const bool gpu = result.backend == "cuda";
  fmt::print("\n{}\n",
             bold(fmt::format("{} · {} · {}", result.heading, result.ladder, result.title)));
  fmt::print(
      "{}\n",
      dim(fmt::format("  {}, {} {}{}, seed {}{}", device_info().name, size_text(result.size),
                      result.dtype, result.layout.empty() ? "" : " " + result.layout, result.seed,
                      gpu && result.roof_speed()
                          ? fmt::format(", roof: {} {:.0f} {}", roof_name(result.roof),
                                        *result.roof_speed(), result.speed_unit())
                          : "")));
  if (gpu) {
    print_gpu(result, static_cast<int>(width));
  } else {
    print_counters(result, static_cast<int>(width));
  }
  std::fflush(stdout);
}

void print_explained(const Ladder& ladder, const LevelResult& level, const std::string& size,
                     const std::string& report) {
  fmt::print("\n{} · {} at {}\n{}", ladder.name, level.name, size, report);
  print_below(level, false);
  std::fflush(stdout);
}

void print_failures(const LadderResult& result) {
  for (const LevelResult& level : result.levels) {
    if (!is_failure(level.status)) continue;
    fmt::print(stderr, "{}: level {}: {}{}\n", result.heading, level.name,
               level.status == "mismatch" ? "" : level.status + ": ", level.reason);
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
