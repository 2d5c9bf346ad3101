// SPDX-License-Identifier: MIT
// Every level of a chapter under the tracer: its claims hold, nothing is found or advised.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <tuple>

#include "common/backend/device_bytes.hpp"
#include "common/backend/observe.hpp"
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/harness/run/traced.hpp"
#include "common/harness/verdict/acceptance.hpp"
#include "tests/failures.hpp"
#include "tests/layout_cases.hpp"
#include "tests/on_device.hpp"
#include "tests/skips.hpp"
#include "tests/traced_level.hpp"

namespace cookbook {
namespace {

bool is_sidebar(const Ladder& ladder) { return ladder.title.rfind("sidebar", 0) == 0; }

class OfLevel : public testing::Test {
 public:
  OfLevel(const Ladder& ladder, const LevelEntry& level) : ladder_(ladder), level_(level) {}

 protected:
  const Ladder& ladder_;
  const LevelEntry& level_;
};

class TracedLevelTest : public OfLevel {
 public:
  using OfLevel::OfLevel;

  void TestBody() override {
    note_level(ladder_, level_);
    const auto runs = acceptance_runs(Judge::tests, Axis::traced, ladder_, scope_of(ladder_, {1}));
    Instance instance = instance_of(runs.at(0), ladder_);
    // Instructions without a model: tests/skips lists these levels, so none is added unnoticed.
    const Support support = level_.supports(instance.problem(), device_info());
    if (support.reason.rfind("the SIMT backend has no ", 0) == 0) GTEST_SKIP() << support.reason;
    // A candidate of the library for other shapes: another ladder has it, or the sizes below.
    if (!support && tested_prefix().rfind("capstone_", 0) == 0) {
      note_skipped(ladder_, level_, "claims and races", support.reason, 1, 1);
      GTEST_SKIP() << support.reason;
    }
    const std::string command = command_of(ladder_, level_, runs.at(0).size);
    if (running) note_case(runs.at(0).text(), command);
    const TracedRun traced = trace_level(level_, instance);
    expect_right(traced, runs.at(0).text(), command);
    if (!traced.check.is_failure() && traced.check.fault != Fault::none)
      ADD_FAILURE() << traced.check.text();
    int checked = 0;
    for (const ClaimResult& claim : traced.claims) {
      if (!claim.claim.is_mechanism()) continue;  // only a GPU shows speed
      ++checked;
      ASSERT_TRUE(claim.holds.has_value()) << claim.claim.text << ": was not checked";
      if (*claim.holds) continue;
      ADD_FAILURE() << level_.name << ": claim is false: " << claim.claim.text << " (measured "
                    << claim.measured << "); to see lines: " << command;
    }
    if (checked == 0) ADD_FAILURE() << level_.name << ": no claim that the tracer can check";
  }
};

// Odd sizes and layouts have accesses out of bounds that the round traced size does not have.
// Claims are about the traced size.
class TracedLayoutsTest : public OfLevel {
 public:
  using OfLevel::OfLevel;

  void TestBody() override {
    note_level(ladder_, level_);
    std::vector<LayoutCase> cases = traced_layout_cases(ladder_);
    // The rows of a sidebar are one kernel in many configurations.
    if (is_sidebar(ladder_)) cases.resize(3);
    std::map<std::string, std::size_t> skipped;
    run(cases, skipped);
    for (const auto& [reason, count] : skipped) {
      note_skipped(ladder_, level_, "traced layouts", reason, count,
                   static_cast<int>(cases.size()));
    }
  }

 private:
  void run(const std::vector<LayoutCase>& cases, std::map<std::string, std::size_t>& skipped) {
    for (const LayoutCase& layout : cases) {
      const auto problem = ladder_.make_problem(layout.size, layout.variant);
      const Support support = level_.supports(*problem, device_info());
      if (!support) {
        ++skipped[without_numbers(support.reason)];
        continue;
      }
      const CaseDevice device(layout);
      Instance instance(ladder_, layout.size, layout.kind, 1, layout.variant);
      const std::string command =
          command_of(ladder_, level_, layout.size, layout.variant, {layout.kind, 1},
                     Schedule{layout.schedule, layout.schedule}, layout.sm_count);
      if (running) note_case(layout.text(), command);
      const TracedRun traced = trace_level(level_, instance);
      if (traced.check.fault == Fault::unsupported) ++skipped[without_numbers(traced.check.reason)];
      expect_right(traced, layout.text(), command);
      if (HasFailure()) return;  // the others mostly say the same
    }
  }
};

struct TracedSize {
  Size size;
  int sms;  // 0: as many as the traced size has
};

// Shapes, and numbers of SMs, for which a level launches kernels that it launches neither at the
// traced size nor at the small odd ones.
std::vector<TracedSize> more_traced_sizes(const Ladder& ladder) {
  if (ladder.name == "persistent_softmax_bf16") return {{{3, 70000}, 0}, {{2, 131080}, 0}};
  if (ladder.name == "mxfp8" || ladder.name == "nvfp4") {
    return {{{8, 1160, 256}, 0}};  // of ten tiles on four SMs some reuse an accumulator
  }
  if (tested_prefix() != "chapter_8" || ladder.levels.size() > 1) return {};
  if (ladder.name.rfind("gemm", 0) == 0) {
    return {{{8, 12, 8264}, 0},   // stream-K
            {{8, 12, 3080}, 60},  // K divided through L2: among 49 blocks, and among seven
            {{72, 72, 6152}, 8},
            {{168, 200, 16384}, 6}};  // stream-K because of its predicted time
  }
  if (ladder.name.rfind("batch", 0) == 0) {
    return {{{3, 200, 32}, 0}, {{200, 3, 56}, 0}, {{16, 72, 120}, 0}};
  }
  return {};
}

class TracedSizesTest : public OfLevel {
 public:
  using OfLevel::OfLevel;

  void TestBody() override {
    for (const auto& [size, sms] : more_traced_sizes(ladder_)) {
      simt::set_sm_count(sms);
      Instance instance(ladder_, size, InputKind::normal, 1);
      if (!level_.supports(instance.problem(), device_info())) continue;
      const TracedRun traced = trace_level(level_, instance);
      EXPECT_EQ(traced.check.status, CheckResult::Status::ok) << traced.check.reason;
      expect_right(traced, size_text(size), command_of(ladder_, level_, size, {}, {}, {}, sms));
    }
    simt::set_sm_count(0);
  }
};

// The cases in which the tests above trace a ladder.
std::vector<LayoutCase> traced_cases(const Ladder& ladder) {
  std::vector<LayoutCase> cases;
  if (has_all_layouts()) cases = traced_layout_cases(ladder);
  if (is_sidebar(ladder) && cases.size() > 3) cases.resize(3);
  cases.push_back({ladder.trace_size, {}});
  for (const auto& [size, sms] : more_traced_sizes(ladder)) {
    cases.push_back({size, {}, InputKind::normal, sms});
  }
  return cases;
}

// The work of a launch, about in units of what the tracer does in the same time.
double work_of(const AnyProblem& problem) { return problem.bytes() + problem.flops() / 64; }

// A small problem of random shape and layout. Its extents are those of the ladder's sizes or
// random: some, such as head dimensions, have few values that are possible.
LayoutCase random_case(const Ladder& ladder, std::uint64_t seed) {
  std::vector<Size> sizes = ladder.test_sizes;
  sizes.push_back(ladder.trace_size);
  std::uint64_t random = mix_bits(seed);
  LayoutCase layout{sizes[random % sizes.size()], {}};
  const std::uint64_t most_bits = layout.size.size() <= 3 ? 18 : 9;
  for (std::int64_t& extent : layout.size) {
    random = mix_bits(random);
    if (random % 4 == 0) continue;
    const std::int64_t units[] = {1, 8, 256};
    const std::int64_t unit = units[(random >> 40) % 3];
    extent = 1 + static_cast<std::int64_t>((random >> 8) % (1ull << (random >> 2) % most_bits));
    extent = (extent + unit - 1) / unit * unit;
  }
  random = mix_bits(random);
  if (random % 4 == 0) layout.variant.extra_pitch = 1;
  if (random % 4 == 1) layout.variant.misalign_elements = 1;
  constexpr int kSms[] = {0, 1, 12, 132};
  layout.sm_count = kSms[(random >> 8) % 4];
  return layout;
}

// As many problems as take some tenths of a second: in chapter 11 a level searches for each.
std::uint64_t problems_of(const Ladder& ladder) {
  if (tested_prefix() == "chapter_11") return 20;
  return ladder.trace_size.size() <= 3 ? 500 : 150;
}

struct KernelCase {
  const Ladder* ladder;
  const LevelEntry* level;
  LayoutCase layout;
  double work;
};

// A case of the least work for each kernel and shape of its blocks.
using Launched = std::tuple<const void*, unsigned, unsigned, unsigned>;
using Kernels = std::map<Launched, KernelCase>;

// Adds what a level launches for a case, of which nothing runs.
void add_kernels(const Ladder& ladder, const LevelEntry& level, const LayoutCase& layout,
                 Kernels& kernels) {
  const auto problem = ladder.make_problem(layout.size, layout.variant);
  if (!level.supports(*problem, device_info())) return;
  static std::vector<Launched> launched;
  static double blocks_work = 0;
  launched.clear();
  blocks_work = 0;
  set_observer({.launch = [](const void* kernel, const LaunchConfig* config) {
    if (!kernel) return;
    launched.push_back({kernel, config->block.x, config->block.y, config->block.z});
    const auto blocks = static_cast<double>(config->grid.x) * config->grid.y * config->grid.z;
    blocks_work += 16 * blocks * config->block.x;
    // A cooperative grid is traced as a whole, and its blocks wait for each other.
    if (config->cooperative && blocks > 8) blocks_work += 1e9;
  }});
  {
    const SparseTensors tensors(*problem);
    const RunningBlocks none(simt::RunBlocks::none);
    try {
      level.prepare(*problem, tensors.pointers())(Stream{});
    } catch (const std::invalid_argument&) {  // a rule that supports() cannot see
    }
  }
  set_observer({});
  const KernelCase found{&ladder, &level, layout, work_of(*problem) + blocks_work};
  for (const Launched& kernel : launched) {
    const auto [at, is_new] = kernels.emplace(kernel, found);
    if (!is_new && found.work < at->second.work) at->second = found;
  }
}

// Kernels that no test above traces with blocks of that shape, because a level launches them so for
// other sizes, layouts or numbers of SMs only. They are looked for among random problems, which
// takes milliseconds, and each is traced in the smallest problem found for it. So a new kernel
// needs no entry anywhere.
class OtherKernelsTest : public testing::Test {
 public:
  void TestBody() override {
    constexpr double kMostWork = 1 << 19;
    Kernels traced, others;
    for (const Ladder& ladder : tested_chapter().ladders) {
      for (const LayoutCase& layout : traced_cases(ladder)) {
        simt::set_sm_count(layout.sm_count);
        for (const LevelEntry& level : ladder.levels) {
          if (running) {
            note_case(fmt::format("{} / {}, {}", ladder.name, level.name, layout.text()), "");
          }
          add_kernels(ladder, level, layout, traced);
        }
      }
      const std::uint64_t problems = problems_of(ladder);
      for (std::uint64_t i = 0; i < problems; ++i) {
        const LayoutCase layout = random_case(ladder, i);
        try {
          if (work_of(*ladder.make_problem(layout.size, layout.variant)) > kMostWork) continue;
        } catch (const BadSize&) {
          continue;
        }
        simt::set_sm_count(layout.sm_count);
        for (const LevelEntry& level : ladder.levels) {
          if (running) {
            note_case(fmt::format("{} / {}, {}", ladder.name, level.name, layout.text()), "");
          }
          add_kernels(ladder, level, layout, others);
        }
      }
    }
    int count = 0;
    for (const auto& [kernel, found] : others) {
      if (traced.count(kernel) != 0 || found.work > kMostWork) continue;
      ++count;
      simt::set_sm_count(found.layout.sm_count);
      Instance instance(*found.ladder, found.layout.size, InputKind::normal, 1,
                        found.layout.variant);
      const std::string what =
          fmt::format("{} / {}, {}", found.ladder->name, found.level->name, found.layout.text());
      const std::string command = command_of(*found.ladder, *found.level, found.layout.size,
                                             found.layout.variant, {}, {}, found.layout.sm_count);
      if (running) note_case(what, command);
      expect_right(trace_level(*found.level, instance), what, command);
      add_kernels(*found.ladder, *found.level, found.layout, traced);
    }
    simt::set_sm_count(0);
    fmt::print("{} kernels are traced by other tests, {} here\n", traced.size(), count);
  }
};

/// Adds a test of type T for a level.
template <class T>
void add_test(const Ladder& ladder, std::size_t i, const char* suffix) {
  const LevelEntry& level = ladder.levels[i];
  register_test<T>(fmt::format("traced_{}_{}", tested_prefix(), ladder.name),
                   fmt::format("{}_{}{}", i, level.name, suffix), std::cref(ladder),
                   std::cref(level));
}

const bool kRegistered = [] {
  simt::report_host_crashes();  // problems are made here, before main()
  register_test<OtherKernelsTest>(fmt::format("traced_{}_others", tested_prefix()), "kernels");
  for (const Ladder& ladder : tested_chapter().ladders) {
    for (std::size_t i = 0; i < ladder.levels.size(); ++i) {
      add_test<TracedLevelTest>(ladder, i, "");
      if (!more_traced_sizes(ladder).empty()) add_test<TracedSizesTest>(ladder, i, "_sizes");
      if (has_all_layouts() && !is_short_test()) add_test<TracedLayoutsTest>(ladder, i, "_layouts");
    }
  }
  return true;
}();

}  // namespace
}  // namespace cookbook
