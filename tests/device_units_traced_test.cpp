// SPDX-License-Identifier: MIT
//
// The device headers in traced mode: what is counted for ldmatrix and cp.async, races of
// asynchronous units and missing proxy fences that must be named, and correct kernels for which
// nothing must be reported. This file is compiled as kernels are for tracing.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "common/device/cluster.cuh"
#include "common/device/mma.cuh"
#include "common/device/vector.cuh"
#include "tests/device_units.hpp"
#include "tests/text.hpp"
#include "tests/traced.hpp"

namespace cookbook {
namespace {

using simt::AccessSite;
using simt::Op;
using simt::Space;
using simt::Trace;

/// The one site of such accesses.
AccessSite site_of(const Trace& trace, Space space, Op op) {
  std::vector<AccessSite> found;
  for (const AccessSite& site : trace.sites) {
    if (site.space == space && site.op == op) found.push_back(site);
  }
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? AccessSite() : found[0];
}

// ---- counters

// One ldmatrix_x4 from a tile with rows of 128 bytes.
template <Swizzle kSwizzle>
__global__ void read_tile(uint32_t* out) {
  char* tile = dynamic_shared<char>();
  for (int i = threadIdx.x; i < 512; i += 32) reinterpret_cast<uint32_t*>(tile)[i] = i;
  __syncwarp();
  uint32_t r[4];
  const int lane = threadIdx.x;
  ldmatrix_x4(r, tile + swizzle_address<kSwizzle>((lane % 16) * 128 + lane / 16 * 16));
  out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}

template <Swizzle kSwizzle>
uint64_t ldmatrix_wavefronts() {
  DeviceMemory out(128, "out");
  const Trace trace = trace_launch(read_tile<kSwizzle>, {1, 32, 2048}, out);
  EXPECT_NO_FINDINGS(trace);
  const AccessSite site = site_of(trace, Space::shared, Op::load);
  EXPECT_EQ(site.requests, 1u);
  EXPECT_EQ(site.bytes_per_lane, 16);
  EXPECT_EQ(site.ideal_wavefronts, 4u);
  return site.wavefronts;
}

TEST(Counters, LdmatrixConflictsUnlessSwizzled) {
  EXPECT_EQ(ldmatrix_wavefronts<Swizzle::none>(), 32u);
  EXPECT_EQ(ldmatrix_wavefronts<Swizzle::b128>(), 4u);
}

TEST(Counters, CpAsyncIsCountedPerWarp) {
  const Matrix<float> in(1, 128, "in", 1);
  DeviceMemory out(512, "out");
  const Trace trace = trace_launch(copy_with_cp_async<true>, {1, 32, 512}, in, out, 128);
  EXPECT_NO_FINDINGS(trace);
  const AccessSite site = site_of(trace, Space::global, Op::async_load);
  EXPECT_EQ(site.buffer, "in");
  EXPECT_EQ(site.requests, 1u);
  EXPECT_EQ(site.sectors, 16u);
}

__global__ void load_tile(const __grid_constant__ TensorMap map, uint32_t bytes) {
  float* tile = dynamic_shared<float>();
  auto* bar = reinterpret_cast<uint64_t*>(tile + 256);
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  mbarrier_arrive_expect_tx(bar, bytes);
  tma_load_2d(tile, &map, bar, 0, 0);
  mbarrier_wait(bar, 0);
}

/// Sectors of one box of four rows of 48 bytes.
uint64_t sectors_of_load(int columns) {
  const Matrix<float> in(4, columns, "in", 1);
  const TensorMap map = map_2d<float>(in, 4, columns, 4, 12);
  const Trace trace = trace_launch(load_tile, {1, 1, 1040}, map, 192u);
  EXPECT_NO_FINDINGS(trace);
  const AccessSite site = site_of(trace, Space::global, Op::async_load);
  EXPECT_TRUE(site.requests == 1 && site.bytes == 192);
  return site.sectors;
}

TEST(Counters, RowsOfABoxShareASector) {
  EXPECT_EQ(sectors_of_load(12), 6u);  // one behind the other: a sector belongs to two rows
  EXPECT_EQ(sectors_of_load(16), 8u);  // 64 bytes apart
}

// ---- correct kernels

/// Calls `check` with a trace of the pipeline, and the error that ended it, under each schedule.
template <Mistake kMistake>
void for_all_traces(const std::function<void(const Trace&, const std::string&)>& check) {
  Gemm gemm{64};
  const auto trace = [&] {
    std::string error;
    const Trace trace = trace_of([&] { gemm.run<kMistake>(); }, &error);
    check(trace, error);
  };
  for_all_schedules(trace, {7});
}

TEST(Correct, PipelineHasNoFindingsUnderAnySchedule) {
  for_all_traces<Mistake::none>([](const Trace& trace, const std::string& error) {
    EXPECT_NO_FINDINGS(trace);
    EXPECT_EQ(error, "");
  });
}

// ---- mistakes

// The loader's thread is (128,0,0); the threads before it issue wgmma.
const std::vector<const char*> kLoads{"load a", "load b"};

// A TMA load fills a stage for the next round before a wgmma of this round has read it.
std::vector<std::string> read_of_what_comes_next(const char* load) {
  return {"read after write",
          "asynchronous operation of thread (128,0,0) wrote at " + place_of(load),
          "an asynchronous operation of thread",
          "reads at " + place_of("product") + " without waiting for it"};
}

// A TMA load overwrites operands of a wgmma whose reads nobody has waited for.
std::vector<std::string> overwritten_under_the_product(const char* load) {
  return {
      "write after read",
      "an asynchronous operation of thread",
      "read at " + place_of("product"),
      "asynchronous operation of thread (128,0,0) writes at " + place_of(load),
      "without waiting for it",
  };
}

// Released before it is read: a late wgmma meets the next round's load.
TEST(Mistakes, StageReleasedBeforeWgmmaWait) {
  for_all_traces<Mistake::released_early>([](const Trace& trace, const std::string& error) {
    EXPECT_EQ(error, "");
    for (const char* load : kLoads) EXPECT_FINDING(trace, "race", read_of_what_comes_next(load));
    // Each read was waited for, if for nothing that lasts: no wait is suspected.
    EXPECT_LACKS(findings_of(trace), "parity");
  });
}

// Released after the wgmma was issued: it never races with an earlier load, but the next load is
// not ordered after its end.
TEST(Mistakes, MissingWgmmaWait) {
  for_all_traces<Mistake::no_wgmma_wait>([](const Trace& trace, const std::string& error) {
    EXPECT_EQ(error, "");
    EXPECT_EQ(trace.findings.size(), 3u) << findings_of(trace);
    for (const char* load : kLoads) {
      EXPECT_FINDING(trace, "race", overwritten_under_the_product(load));
    }
    EXPECT_FINDING(trace, "exit", {"issued at " + place_of("product")});
  });
}

// The wait that returned at once is named with what its thread reads.
TEST(Mistakes, WrongParity) {
  const std::string hint = "; the mbarrier wait before the read, at " + place_of("full wait") +
                           ", returned at once with no phase complete: its parity, 1, was that of "
                           "the phase before the first";
  for_all_traces<Mistake::wrong_parity>([&](const Trace& trace, const std::string& error) {
    for (const char* load : kLoads) {
      std::vector<std::string> parts = read_of_what_comes_next(load);
      parts.push_back(hint);
      EXPECT_FINDING(trace, "race", parts);
    }
    EXPECT_FINDING(trace, "uninitialised",
                   {"reads dynamic shared memory", "at " + place_of("product"),
                    "which nothing has written", hint});
    // How it ends: the multipliers are one round ahead of the loader.
    if (simt::async_schedule() == simt::AsyncSchedule::late) {
      EXPECT_CONTAINS(error, "more arrivals in phase 0 than the 1");
    } else {
      EXPECT_CONTAINS(error, "deadlock");
      EXPECT_CONTAINS(error, ") at " + place_of("full wait"));
    }
  });
}

// Without any wait there is none to name.
TEST(Mistakes, MissingFullWait) {
  // The loads may overtake each other, which is an error.
  for_all_traces<Mistake::no_full_wait>([](const Trace& trace, const std::string&) {
    for (const char* load : kLoads) EXPECT_FINDING(trace, "race", read_of_what_comes_next(load));
    EXPECT_FINDING(trace, "uninitialised", {"at " + place_of("product")});
    EXPECT_LACKS(findings_of(trace), "parity");
  });
}

TEST(Mistakes, MissingCpAsyncWait) {
  const Matrix<float> in(1, 128, "in", 1);
  DeviceMemory out(512, "out");
  EXPECT_FINDING(trace_launch(copy_with_cp_async<false>, {1, 32, 512}, in, out, 128), "race",
                 {"device_units.hpp"});
}

TEST(Mistakes, StoreBufferReusedTooSoon) {
  DeviceMemory out(16, "out");
  EXPECT_NO_FINDINGS(trace_launch(reuse_store_buffer<true>, {1, 32, 64}, out));
  EXPECT_FINDING(trace_launch(reuse_store_buffer<false>, {1, 32, 64}, out), "race",
                 {"device_units.hpp"});
}

TEST(Mistakes, StAsyncNotWaitedFor) {
  DeviceMemory out(64, "out");
  EXPECT_NO_FINDINGS(trace_launch(send_to_everybody<Slip::none>, {4, 32, 64, 4}, out));
  EXPECT_FINDING(trace_launch(send_to_everybody<Slip::does_not_wait>, {4, 32, 64, 4}, out), "race",
                 {"device_units.hpp"});
}

// A value in a neighbour's shared memory, published by the cluster barrier or not at all.
template <bool kReleases>
__global__ void tell_neighbour(int* out) {
  int* value = dynamic_shared<int>();
  cluster_sync();
  if (threadIdx.x == 0) *map_shared(value, 1 - cluster_block_rank()) = 7;
  if (kReleases) {
    cluster_arrive();
  } else {
    cluster_arrive_relaxed();
  }
  cluster_wait();
  if (threadIdx.x == 0) out[blockIdx.x] = *value;
}

TEST(Mistakes, RelaxedArrivalPublishesNothing) {
  DeviceMemory out(8, "out");
  EXPECT_NO_FINDINGS(trace_launch(tell_neighbour<true>, {2, 32, 64, 2}, out));
  EXPECT_FINDING(trace_launch(tell_neighbour<false>, {2, 32, 64, 2}, out), "race",
                 {"device_units_traced_test.cpp"});
}

}  // namespace
}  // namespace cookbook
