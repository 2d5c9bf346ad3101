// SPDX-License-Identifier: MIT
// The lanes of a warp diverge and must meet again as soon as they can: the requests and lanes of
// each line, counted by hand.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "tests/parity/kernels.cuh"
#include "tests/text.hpp"
#include "tests/traced.hpp"

namespace cookbook {
namespace {

struct Expected {
  const char* text;  ///< part of the line
  simt::Op op;
  uint64_t requests, lanes;  ///< of one warp, where the kernel does the same in every warp
};

std::string source_line(const std::string& file, int number) {
  std::ifstream in(file);
  std::string line;
  for (int i = 0; i < number; ++i) std::getline(in, line);
  return line;
}

constexpr uint64_t kWarps = 8;  // in two blocks

// The sites of `kernel`, per warp, in the order of the lines; loads before stores.
void expect_requests(void (*kernel)(const volatile float*, volatile float*, int),
                     const std::vector<Expected>& expected) {
  constexpr int kElements = 2 * 32 * kWarps;
  DeviceMemory in(kElements * sizeof(float), "in"), out(kElements * sizeof(float), "out");
  in.fill(0);
  const simt::Trace trace =
      trace_launch(kernel, {2, 32 * kWarps / 2}, in.as<float>(), out.as<float>(), kElements);
  EXPECT_NO_FINDINGS(trace);
  ASSERT_EQ(trace.sites.size(), expected.size()) << simt::explain(trace);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const simt::AccessSite& site = trace.sites[i];
    EXPECT_CONTAINS(source_line(site.file, site.line), expected[i].text)
        << site.file << ":" << site.line;
    EXPECT_EQ(site.op, expected[i].op) << expected[i].text;
    EXPECT_EQ(site.requests, expected[i].requests) << expected[i].text;
    EXPECT_EQ(site.lanes, expected[i].lanes) << expected[i].text;
  }
}

constexpr auto kLoad = simt::Op::load, kStore = simt::Op::store;

TEST(Reconvergence, OneLaneAhead) {
  expect_requests(parity::one_lane_ahead,
                  {{"if (threadIdx.x == 0)", kStore, 2, 2},  // in the first warp of each block
                   {"sum += in[i]", kLoad, 4 * kWarps, 4 * 32 * kWarps},
                   {"out[n / 2 + i] = sum", kStore, 4 * kWarps, 4 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, BothSides) {
  expect_requests(parity::both_sides, {{"value = in[i]", kLoad, kWarps, 16 * kWarps},
                                       {"in[n / 2 + i]", kLoad, kWarps, 16 * kWarps},
                                       {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, TripCounts) {
  // 24 lanes make a first step, 16 a second, 8 a third.
  expect_requests(parity::trip_counts, {{"sum += in", kLoad, 3 * kWarps, 48 * kWarps},
                                        {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, Nested) {
  expect_requests(parity::nested, {{"value += in[i]", kLoad, kWarps, 8 * kWarps},
                                   {"value *= in[n / 2 + i]", kLoad, kWarps, 16 * kWarps},
                                   {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, ReturnsAndContinues) {
  // Three of every four lanes; in each step those of one half of the groups of four.
  expect_requests(parity::returns_and_continues,
                  {{"sum += in[i]", kLoad, 4 * kWarps, 4 * 12 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 24 * kWarps}});
}

TEST(Reconvergence, Breaks) {
  // Step s has the lanes with l % 8 > s: 28, 24 ... 4, and none in the last.
  expect_requests(parity::breaks, {{"sum += in[i]", kLoad, 7 * kWarps, 112 * kWarps},
                                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, InlinedReturns) {
  expect_requests(parity::inlined_returns, {{"first = in[i]", kLoad, kWarps, 28 * kWarps},
                                            {"in[n / 2 + i]", kLoad, kWarps, 16 * kWarps},
                                            {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, FourCases) {
  expect_requests(parity::four_cases, {{"case 0", kLoad, kWarps, 8 * kWarps},
                                       {"case 1", kLoad, kWarps, 8 * kWarps},
                                       {"case 2", kStore, kWarps, 8 * kWarps},
                                       {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

}  // namespace
}  // namespace cookbook
