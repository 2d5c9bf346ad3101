// SPDX-License-Identifier: MIT
//
// The device headers in traced mode: what is counted for ldmatrix and cp.async, races of
// asynchronous units and missing proxy fences that must be named, and correct kernels that must not
// be accused. This file is compiled as kernels are for tracing.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/backend/simt/trace.hpp"
#include "common/device/cluster.cuh"
#include "common/device/mma.cuh"
#include "common/device/vector.cuh"
#include "tests/device_units.hpp"

namespace cookbook {
namespace {

using simt::AccessSite;
using simt::Op;
using simt::Space;
using simt::Trace;

Trace trace_of(const std::function<void()>& body) {
  simt::start_trace();
  try {
    body();
  } catch (const simt::KernelError& error) {
    ADD_FAILURE() << error.what();
  }
  return simt::stop_trace();
}

std::string findings_of(const Trace& trace) {
  std::string text;
  for (const simt::Finding& finding : trace.findings) {
    text += finding.kind + ": " + finding.message + "\n";
  }
  return text;
}

bool has_finding(const Trace& trace, const std::string& kind, const std::string& part) {
  for (const simt::Finding& finding : trace.findings) {
    if (finding.kind == kind && finding.message.find(part) != std::string::npos) return true;
  }
  return false;
}

const AccessSite* find_site(const Trace& trace, Space space, Op op) {
  for (const AccessSite& site : trace.sites) {
    if (site.space == space && site.op == op) return &site;
  }
  return nullptr;
}

#define EXPECT_FINDING(trace, kind, part) \
  EXPECT_TRUE(has_finding(trace, kind, part)) << "findings:\n" << findings_of(trace)
#define EXPECT_NO_FINDINGS(trace) EXPECT_EQ(findings_of(trace), "")

// ---- counters
// ---------------------------------------------------------------------------------------

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
  const Trace trace = trace_of([&] {
    launch(read_tile<kSwizzle>, {1, 32, 2048}, {}, out.as<uint32_t>());
  });
  EXPECT_NO_FINDINGS(trace);
  const AccessSite* site = find_site(trace, Space::shared, Op::load);
  if (site == nullptr) {
    ADD_FAILURE() << "no shared load";
    return 0;
  }
  EXPECT_EQ(site->requests, 1u);
  EXPECT_EQ(site->bytes_per_lane, 16);
  EXPECT_EQ(site->ideal_wavefronts, 4u);
  return site->wavefronts;
}

TEST(Counters, LdmatrixConflictsUnlessSwizzled) {
  EXPECT_EQ(ldmatrix_wavefronts<Swizzle::none>(), 32u);
  EXPECT_EQ(ldmatrix_wavefronts<Swizzle::b128>(), 4u);
}

TEST(Counters, CpAsyncIsCountedPerWarp) {
  const Matrix<float> in(1, 128, "in", 1);
  DeviceMemory out(512, "out");
  const Trace trace = trace_of([&] {
    launch(copy_with_cp_async<true>, {1, 32, 512}, {}, in.data(), out.as<float>(), 128);
  });
  EXPECT_NO_FINDINGS(trace);
  uint64_t requests = 0, sectors = 0;
  for (const AccessSite& site : trace.sites) {
    if (site.buffer != "in") continue;
    requests += site.requests;
    sectors += site.sectors;
  }
  EXPECT_EQ(requests, 1u);
  EXPECT_EQ(sectors, 16u);
}

// ---- correct kernels
// --------------------------------------------------------------------------------

struct TracedGemm {
  int m = 64, n = 64, k = 320;
  Matrix<bf16> a{m, k, "a", 31}, b{n, k, "b", 32};
  DeviceMemory d{static_cast<size_t>(m * n * 4), "d"};
  TensorMap map_a = map_2d<bf16>(a.data(), m, k, 64, 64, Swizzle::b128);
  TensorMap map_b = map_2d<bf16>(b.data(), n, k, 64, 64, Swizzle::b128);

  template <Mistake kMistake>
  Trace trace() {
    return trace_of([&] {
      launch(gemm<kMistake>, {1, 160, 4 * 8192 + 64}, {}, map_a, map_b, d.as<float>(), n, k);
    });
  }
};

TEST(Correct, PipelineHasNoFindingsUnderAnySchedule) {
  TracedGemm gemm;
  for (const auto schedule :
       {simt::AsyncSchedule::late, simt::AsyncSchedule::early, simt::AsyncSchedule::random}) {
    simt::set_async_schedule(schedule, 7);
    EXPECT_NO_FINDINGS(gemm.trace<Mistake::none>());
  }
  simt::set_async_schedule(simt::AsyncSchedule::late);
}

// ---- mistakes
// ---------------------------------------------------------------------------------------

TEST(Mistakes, StageReleasedBeforeWgmmaWait) {
  TracedGemm gemm;
  EXPECT_FINDING(gemm.trace<Mistake::released_early>(), "race", "device_units.hpp");
}

TEST(Mistakes, MissingWgmmaWait) {
  TracedGemm gemm;
  EXPECT_FINDING(gemm.trace<Mistake::no_wgmma_wait>(), "race", "device_units.hpp");
}

TEST(Mistakes, MissingCpAsyncWait) {
  const Matrix<float> in(1, 128, "in", 1);
  DeviceMemory out(512, "out");
  const Trace trace = trace_of([&] {
    launch(copy_with_cp_async<false>, {1, 32, 512}, {}, in.data(), out.as<float>(), 128);
  });
  EXPECT_FINDING(trace, "race", "device_units.hpp");
}

// Plain stores, then a TMA store of the same bytes.
template <bool kFence, bool kBarrier>
__global__ void store_tile(const __grid_constant__ TensorMap map) {
  float* tile = dynamic_shared<float>();
  for (int i = threadIdx.x; i < 256; i += 64) tile[i] = static_cast<float>(i);
  if (kFence) fence_proxy_async();
  if (kBarrier) __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, 0, 0);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
}

template <bool kFence, bool kBarrier>
Trace trace_store_tile() {
  DeviceMemory out(1024, "out");
  const TensorMap map = map_2d<float>(out.data(), 16, 16, 16, 16, Swizzle::none);
  return trace_of([&] { launch(store_tile<kFence, kBarrier>, {1, 64, 1024}, {}, map); });
}

TEST(Mistakes, MissingProxyFence) {
  EXPECT_NO_FINDINGS((trace_store_tile<true, true>()));
  EXPECT_FINDING((trace_store_tile<false, true>()), "proxy", "device_units_traced_test.cpp");
  EXPECT_FINDING((trace_store_tile<true, false>()), "race", "device_units_traced_test.cpp");
}

// A buffer that is overwritten before its store has been waited for.
template <bool kWaits>
__global__ void reuse_store_buffer(float* out) {
  float* stage = dynamic_shared<float>();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < 4; ++i) stage[i] = 1.0f;
  fence_proxy_async();
  bulk_store(out, stage, 16);
  tma_store_commit();
  if (kWaits) tma_store_wait_read<0>();
  for (int i = 0; i < 4; ++i) stage[i] = 2.0f;
}

TEST(Mistakes, StoreBufferReusedTooSoon) {
  DeviceMemory out(16, "out");
  EXPECT_NO_FINDINGS(trace_of([&] {
    launch(reuse_store_buffer<true>, {1, 32, 64}, {}, out.as<float>());
  }));
  const Trace trace = trace_of([&] {
    launch(reuse_store_buffer<false>, {1, 32, 64}, {}, out.as<float>());
  });
  EXPECT_FINDING(trace, "race", "device_units_traced_test.cpp");
}

// A TMA load that somebody reads without having waited.
template <bool kWaits>
__global__ void read_loaded(const float* in, float* out) {
  float* stage = dynamic_shared<float>();
  auto* bar = reinterpret_cast<uint64_t*>(stage + 64);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(bar, 128);
    bulk_load(stage, in, 128, bar);
  }
  if (kWaits || threadIdx.x == 0) mbarrier_wait(bar, 0);
  out[threadIdx.x] = stage[threadIdx.x];
}

TEST(Mistakes, MissingMbarrierWait) {
  const Matrix<float> in(1, 32, "in", 1);
  DeviceMemory out(128, "out");
  EXPECT_NO_FINDINGS(trace_of([&] {
    launch(read_loaded<true>, {1, 32, 512}, {}, in.data(), out.as<float>());
  }));
  const Trace trace = trace_of([&] {
    launch(read_loaded<false>, {1, 32, 512}, {}, in.data(), out.as<float>());
  });
  EXPECT_FINDING(trace, "race", "device_units_traced_test.cpp");
}

TEST(Mistakes, StAsyncNotWaitedFor) {
  DeviceMemory out(64, "out");
  EXPECT_NO_FINDINGS(trace_of([&] {
    launch(tell_everybody<Slip::none>, {4, 32, 64, 4}, {}, out.as<int>());
  }));
  const Trace trace = trace_of([&] {
    launch(tell_everybody<Slip::does_not_wait>, {4, 32, 64, 4}, {}, out.as<int>());
  });
  EXPECT_FINDING(trace, "race", "device_units.hpp");
}

// A value in a neighbour's shared memory, published by the cluster barrier or not at all.
template <bool kReleases>
__global__ void tell_neighbour(int* out) {
  int* value = dynamic_shared<int>();
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
  EXPECT_NO_FINDINGS(trace_of([&] {
    launch(tell_neighbour<true>, {2, 32, 64, 2}, {}, out.as<int>());
  }));
  const Trace trace = trace_of([&] {
    launch(tell_neighbour<false>, {2, 32, 64, 2}, {}, out.as<int>());
  });
  EXPECT_FINDING(trace, "race", "device_units_traced_test.cpp");
}

}  // namespace
}  // namespace cookbook
