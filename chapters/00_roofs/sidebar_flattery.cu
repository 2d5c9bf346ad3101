// SPDX-License-Identifier: MIT
// needs: cuda sm_90a
// Sidebar: ways to flatter a kernel. Chapter 1's copy at a size that fits into L2, and chapter 8's
// GEMM, are timed as this book times them, then in ways that take less code and give better
// numbers. No time is wrong; each answers another question. Usage: chapter-0-flattery
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <vector>

#include "common/bench/bench.hpp"
#include "common/harness/report/statistics.hpp"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/verdict/check.hpp"

namespace cookbook {

Chapter chapter_1_entry();
Chapter chapter_8_entry();

namespace {

/// Microseconds of the host's clock around one launch; with `wait` until the kernel has finished.
double host_us(const std::function<void(Stream)>& run, bool wait) {
  synchronize();
  const auto start = std::chrono::steady_clock::now();
  run(Stream{});
  if (wait) synchronize();
  const auto stop = std::chrono::steady_clock::now();
  synchronize();
  return std::chrono::duration<double, std::micro>(stop - start).count();
}

/// Sets every input to zero on the device; the instance does not notice.
void zero_inputs(const Instance& instance) {
  for (const TensorSpec& tensor : instance.problem().tensors()) {
    if (tensor.role != Role::input) continue;
    if (cudaMemset(instance.pointers().get<void>(tensor.name), 0, tensor.bytes()) != cudaSuccess) {
      throw std::runtime_error("cudaMemset failed");
    }
  }
}

/// Times the last level of a chapter's first ladder in every way and prints the table.
void flatter(const Chapter& chapter, const Size& size) {
  const Ladder& ladder = chapter.ladders.front();
  const LevelEntry& level = ladder.levels.back();
  Instance instance(ladder, size, InputKind::normal, 1);
  std::printf("\n%s, %s, chapter %d's %s\n", ladder.name.c_str(), size_text(size).c_str(),
              chapter.number, level.name.c_str());
  if (const Support support = level.supports(instance.problem(), device_info()); !support) {
    std::printf("  skipped: %s\n", support.reason.c_str());
    return;
  }
  instance.reset();
  const auto run = level.prepare(instance.problem(), instance.pointers());
  const double first = host_us(run, true);
  if (const auto comparison = instance.compare(); !comparison.ok) {
    throw std::runtime_error(level.name + ": " + comparison.message);
  }

  BenchOptions options;
  const auto measured = [&](const char* name) {
    const Measurement m = measure({{name, run}}, options, nullptr).front();
    if (!m.error.empty()) throw std::runtime_error(level.name + ": " + m.error);
    return m;
  };
  const Measurement honest = measured("random inputs");
  std::vector<double> unfinished;
  for (int i = 0; i < 21; ++i) unfinished.push_back(host_us(run, false));
  zero_inputs(instance);
  const Measurement zeros = measured("zeros");

  const bool counts_flops = instance.problem().flops() > 0;
  const double work =
      counts_flops ? instance.problem().flops() * 1e-6 : instance.problem().bytes() * 1e-3;
  const char* unit = counts_flops ? "TFLOP/s" : "GB/s";
  std::printf("  %-66s %10s %9s %8s\n", "", "us", unit, "flatters");
  const auto row = [&](const char* how, double us) {
    std::printf("  %-66s %10.2f %9.0f %7.2fx\n", how, us, work / us, honest.cold.median / us);
  };
  row("as in this book: L2 cold, random inputs, median of many", honest.cold.median);
  row("the luckiest of those samples",
      *std::min_element(honest.cold_us.begin(), honest.cold_us.end()));
  row("L2 warm: back to back, on the same buffers", honest.hot.median);
  row("inputs of zeros, L2 cold", zeros.cold.median);
  row("inputs of zeros, L2 warm", zeros.hot.median);
  row("one iteration: the first launch, by the host's clock, waited for", first);
  row("the host's clock around a launch that nobody waits for", median(unfinished));
}

}  // namespace
}  // namespace cookbook

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  try {
    cookbook::flatter(cookbook::chapter_1_entry(), {1 << 22});  // 16 MiB in, 16 MiB out
    cookbook::flatter(cookbook::chapter_8_entry(), {4096, 4096, 4096});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-0-flattery: %s\n", error.what());
    return 1;
  }
}
