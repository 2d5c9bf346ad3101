// SPDX-License-Identifier: MIT
// Scans in one pass, where blocks wait for each other. Compiled for plain and for traced kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "common/backend/simt/runtime/crash.hpp"
#include "common/harness/run/process.hpp"
#include "tests/planted/lookback.hpp"
#include "tests/error_of.hpp"
#include "tests/places.hpp"
#include "tests/text.hpp"
#include "tests/traced.hpp"

namespace cookbook::planted {
namespace {

using simt::StartOrder;

// Before the first launch reads it: two seconds until a spin is reported.
const bool kSpinsBriefly = setenv("COOKBOOK_SIMT_SPIN_SECONDS", "1", 1) == 0;

constexpr int kTiles = 36;  // more blocks than the one SM holds at once
constexpr int kCount = kTiles * kLookbackTile;

struct Outcome {
  bool right = false;
  std::string error;  // of a launch that was given up
  std::string findings, remedies;
};

Outcome run(Protocol protocol, LookbackBug bug, bool pauses = true) {
  std::vector<int> input(kCount), output(kCount, -1);
  for (int i = 0; i < kCount; ++i) input[i] = i % 7 - 2;
  DeviceMemory in(kCount * sizeof(int), "in"), out(kCount * sizeof(int), "out"),
      state((1 + 3 * kTiles) * sizeof(int), "state");
  in.copy_from_host(input.data(), in.bytes());
  state.fill(0);
  Outcome outcome;
  if (simt::tracing_available()) simt::start_trace();
  outcome.error = error_of<simt::KernelError>([&] {
    lookback_scan(protocol, bug, pauses, in.as<int>(), out.as<int>(), state.as<int>(), kCount);
  });
  const auto trace = simt::stop_trace();
  outcome.findings = findings_of(trace);
  for (const auto& finding : trace.findings) outcome.remedies += finding.remedy + "\n";
  out.copy_to_host(output.data(), out.bytes());
  outcome.right = true;
  for (int i = 0, sum = 0; i < kCount; ++i) {
    sum += input[i];
    outcome.right = outcome.right && output[i] == sum;
  }
  return outcome;
}

bool names(const std::string& text, const std::string& tag) {
  return text.find(place_of("tests/planted/lookback.cu", tag)) != std::string::npos;
}

constexpr Protocol kProtocols[] = {Protocol::released, Protocol::atomics, Protocol::volatiles};

class LookBack : public testing::Test {
 protected:
  LookBack() { simt::set_sm_count(1); }
  ~LookBack() override {
    simt::set_sm_count(0);
    simt::set_start_order(StartOrder::forward);
    simt::set_workers(2);
  }
};

TEST_F(LookBack, RightOnesPassInEveryOrder) {
  for (const int workers : {1, 3}) {
    simt::set_workers(workers);
    for (const StartOrder order : {StartOrder::forward, StartOrder::reverse, StartOrder::random}) {
      simt::set_start_order(order, static_cast<uint64_t>(workers));
      for (const Protocol protocol : kProtocols) {
        for (const bool pauses : {true, false}) {
          const Outcome outcome = run(protocol, LookbackBug::none, pauses);
          EXPECT_TRUE(outcome.right) << outcome.error;
          EXPECT_EQ(outcome.findings, "");
        }
      }
    }
  }
}

TEST_F(LookBack, WithoutATicketItHangsUnlessBlocksStartInOrder) {
  for (const Protocol protocol : kProtocols) {
    simt::set_start_order(StartOrder::forward);
    EXPECT_TRUE(run(protocol, LookbackBug::no_ticket).right);
  }
  for (const StartOrder order : {StartOrder::reverse, StartOrder::random}) {
    simt::set_start_order(order, 3);
    const Outcome outcome = run(Protocol::released, LookbackBug::no_ticket);
    EXPECT_CONTAINS(outcome.error, "no progress");
    EXPECT_TRUE(names(outcome.error, "spin")) << outcome.error;
    EXPECT_CONTAINS(outcome.error, "have not started");
  }
}

TEST_F(LookBack, AnUnpublishedPrefixHangsAndTheSpinIsNamed) {
  for (const Protocol protocol : kProtocols) {
    const Outcome outcome = run(protocol, LookbackBug::never_published);
    EXPECT_CONTAINS(outcome.error, "no progress");
    EXPECT_TRUE(names(outcome.error, "spin")) << outcome.error;
  }
}

// It never gives way, so nothing but the watchdog sees it.
TEST_F(LookBack, ASpinWithoutAPauseIsNamedByTheWatchdog) {
  simt::set_time_limit(1);
  EXPECT_EXIT(run(Protocol::volatiles, LookbackBug::never_published, false),
              testing::ExitedWithCode(3),
              "no thread has finished for 1 s.*lookback[.]cu:[0-9]+.*have not started");
  simt::set_time_limit(60);
}

TEST_F(LookBack, MissingFencesAndWrongOrdersAreRaces) {
  if (!simt::tracing_available()) GTEST_SKIP() << "needs traced kernels";
  for (const int workers : {1, 2}) {
    simt::set_workers(workers);
    for (const StartOrder order : {StartOrder::forward, StartOrder::reverse, StartOrder::random}) {
      simt::set_start_order(order);
      for (const Protocol protocol : kProtocols) {
        Outcome outcome = run(protocol, LookbackBug::missing_fence);
        EXPECT_CONTAINS(outcome.findings, "race");
        EXPECT_TRUE(names(outcome.findings, "value")) << outcome.findings;
        EXPECT_TRUE(names(outcome.findings, "look back")) << outcome.findings;
        EXPECT_CONTAINS(outcome.remedies, "__threadfence()");
        outcome = run(protocol, LookbackBug::flag_first);
        EXPECT_TRUE(names(outcome.findings, "late value")) << outcome.findings;
        EXPECT_TRUE(names(outcome.findings, "look back")) << outcome.findings;
      }
    }
  }
}

}  // namespace
}  // namespace cookbook::planted
