// SPDX-License-Identifier: MIT
// Every level of a chapter on each GPU of the device table: `supports` says no to what would not
// launch there, or has an instruction that the GPU lacks.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/harness/run/dry_launches.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/verdict/check.hpp"
#include "common/harness/verdict/verdict.hpp"
#include "tests/chapters.hpp"
#include "tests/failures.hpp"
#include "tests/on_device.hpp"

namespace cookbook {
namespace {

// Of these chapters every level needs something that a device must have first (docs/building.md).
int least_capability(int chapter) {
  switch (chapter) {
    case 6:
    case 7: return 90;   // TMA
    case 15: return 80;  // mma.sync of bf16
    default: return 0;
  }
}

std::size_t launches_at_trace_size(const LevelEntry& level, const AnyProblem& problem) {
  const auto launches = dry_launches(level, problem);
  return launches ? launches->launches.size() : 0;
}

class DevicesTest : public testing::Test {
 public:
  void TestBody() override {
    const Chapter& chapter = tested_chapter();
    std::set<std::string> with_a_level;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> found;
    const auto expect_none = [&](const std::string& name, const Ladder& ladder,
                                 const LevelEntry& level, const Size& size,
                                 const AnyProblem& problem, const DevicePointers& pointers) {
      const std::string at = fmt::format("{} / {} at {}", ladder.name, level.name, size_text(size));
      const std::string command = command_of(ladder, level, size);
      const std::string repeat = fmt::format("COOKBOOK_SIMT_DEVICE={} {}", name, command);
      if (running) note_case(fmt::format("{} on {}", at, name), repeat);
      bool supported = false;
      const std::string text = device_complaint(level, problem, pointers, &supported);
      if (!text.empty()) found[{fmt::format("{}: {}", at, text), command}].push_back(name);
      return supported;
    };
    for (const Ladder& ladder : chapter.ladders) {
      Instance small(ladder, ladder.trace_size, InputKind::integers, 1);
      small.reset();
      // Attention at full size has plans that allocate gigabytes, and a capstone may have.
      const bool is_large = chapter.is_capstone() || chapter.number == 10;
      const Size& size = is_large ? ladder.check_size : ladder.gpu_size;
      const auto large = ladder.make_problem(size, {});
      const SparseTensors sparse(*large);
      for (const std::string& name : simt::device_names()) {
        const OnDevice device(name);
        for (const LevelEntry& level : ladder.levels) {
          {
            // At full size launches are checked and nothing runs.
            const RunningBlocks none(simt::RunBlocks::none);
            expect_none(name, ladder, level, size, *large, sparse.pointers());
          }
          // One device of each set of instructions executes some blocks.
          const bool executes = name == "t4" || name == "rtx3090" || name == "h100" ||
                                name == "rtx5090" || (name == "b200" && chapter.number == 14);
          // All blocks where one kernel may index with what another one has written.
          const bool depends = executes && chapter.is_capstone() &&
                               launches_at_trace_size(level, small.problem()) > 1;
          const RunningBlocks sample(!executes ? simt::RunBlocks::none
                                     : depends ? simt::RunBlocks::all
                                               : simt::RunBlocks::sample);
          if (expect_none(name, ladder, level, ladder.trace_size, small.problem(),
                          small.pointers())) {
            with_a_level.insert(name);
          }
        }
      }
    }
    for (const auto& [what, devices] : found) {  // one line, however many devices have it
      ADD_FAILURE() << fmt::format("{} on {}; to repeat: COOKBOOK_SIMT_DEVICE={} {}", what.first,
                                   fmt::join(devices, ", "), devices[0], what.second);
    }
    if (chapter.is_capstone()) return;  // which may be about one GPU
    for (const std::string& name : simt::device_names()) {
      const OnDevice device(name);
      // Only Hopper has wgmma, which chapter 8 is about, and only the B200 of chapter 14 tcgen05.
      const int only = chapter.number == 8 ? 90 : chapter.number == 14 ? 100 : 0;
      const int cc = device_info().cc();
      const bool can = only > 0 ? cc == only : cc >= least_capability(chapter.number);
      EXPECT_EQ(with_a_level.count(name), can ? 1u : 0u)
          << "levels of chapter " << chapter.number << " that run on " << name;
    }
  }
};

// On a GPU of another size the counts of the traced build belong to the same claims: their model
// has as many SMs as the environment says.
class ClaimsTest : public testing::Test {
 public:
  void TestBody() override {
    if (tested_chapter().is_capstone()) return;  // a library's choice depends on them
    for (const Ladder& ladder : tested_chapter().ladders) {
      const auto problem = ladder.make_problem(ladder.trace_size, {});
      for (const LevelEntry& level : ladder.levels) {
        const auto claims_with = [&](int sms) {
          simt::set_sm_count(sms);
          std::vector<std::string> all;
          for (const Claim& claim : level.claims(*problem)) {
            if (claim.is_mechanism()) all.push_back(claim_identity(claim));
          }
          simt::set_sm_count(0);
          return all;
        };
        EXPECT_EQ(claims_with(132), claims_with(4))
            << ladder.name << " / " << level.name << ": claims depend on the number of SMs";
      }
    }
  }
};

const bool kClaims = register_test<ClaimsTest>(tested_prefix(), "claims_on_any_number_of_sms");
const bool kDevicesRegistered =
    register_test<DevicesTest>(tested_prefix(), "every_device_of_the_table");

}  // namespace
}  // namespace cookbook
