// SPDX-License-Identifier: MIT
//
// Tensor memory, tcgen05 and cluster launch control in traced mode. Each kernel is right where its
// `bug` is `none`, under every schedule and without a finding; every other bug must be reported
// with its line. This file is compiled as kernels are for tracing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/backend/simt/units/clc.hpp"
#include "common/backend/simt/units/tcgen05.hpp"
#include "common/backend/simt/units/tensor_map_tag.hpp"
#include "common/device/cluster.cuh"
#include "common/device/cuda.cuh"
#include "common/device/fp8.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/sync.cuh"
#include "common/device/tma.cuh"
#include "common/harness/verdict/claims_check.hpp"
#include "tests/on_device.hpp"
#include "tests/places.hpp"
#include "tests/tensor_maps.hpp"
#include "tests/traced.hpp"

namespace cookbook {
namespace {

using simt::AsyncSchedule;
using simt::MmaKind;
using simt::MmaOptions;
using simt::TmemShape;

std::string at(const std::string& tag) { return place_of("tests/tcgen05_test.cpp", tag); }

/// An operand without a swizzle: chunks of 8 rows x 16 bytes, chunks of k `rows` * 16 bytes apart.
uint64_t plain_descriptor(const void* smem, uint32_t rows) {
  return (simt::shared_address(smem) & 0x3ffff) >> 4 | uint64_t{rows} << 16 | uint64_t{8} << 32 |
         uint64_t{1} << 46;
}
/// Rows of 128 bytes with the 128-byte swizzle.
uint64_t swizzled_descriptor(const void* smem) {
  return (simt::shared_address(smem) & 0x3ffff) >> 4 | uint64_t{64} << 32 | uint64_t{1} << 46 |
         uint64_t{2} << 61;
}
/// bf16 operands, fp32 sums.
constexpr uint32_t instruction(uint32_t m, uint32_t n) {
  return 1u << 4 | 1u << 7 | 1u << 10 | n / 8 << 17 | m / 16 << 24;
}
constexpr MmaOptions kOne{}, kPair{MmaKind::f16, 2, 0, -1, nullptr};

/// What a kernel begins with: `count` barriers of one arrival each, and `columns` of tensor memory,
/// the address of which is kept behind the barriers.
uint32_t set_up(uint64_t* bars, int count, uint32_t columns, int cta_group = 1) {
  auto* address = reinterpret_cast<uint32_t*>(bars + count);
  if (threadIdx.x == 0) {
    for (int i = 0; i < count; ++i) mbarrier_init(bars + i, 1);
    fence_mbarrier_init();
  }
  if (threadIdx.x < 32) simt::tmem_alloc(address, columns, cta_group);
  __syncthreads();
  return *address;
}

/// Waits for a commit, and loads 32 columns of this thread's lane.
void read_lane(uint64_t* done, uint32_t address, uint32_t (&r)[32]) {
  mbarrier_wait(done, 0);
  simt::tcgen05_fence_after_thread_sync();
  simt::tmem_load(r, address + (threadIdx.x / 32 * 32 << 16), TmemShape::s32x32b, 32);
  simt::tmem_wait_load();
  simt::tcgen05_fence_before_thread_sync();
}

/// What a kernel of one block ends with.
void give_back(uint32_t address, uint32_t columns) {
  __syncthreads();
  if (threadIdx.x < 32) simt::tmem_dealloc(address, columns, 1);
}

/// Fills shared memory for asynchronous units, a multiple of 16 bytes. Called by all threads.
void fill_shared(char* smem, const char* from, uint32_t bytes) {
  for (uint32_t i = threadIdx.x; i < bytes / 16; i += blockDim.x) {
    reinterpret_cast<uint4*>(smem)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  fence_proxy_async();
  __syncthreads();
}

enum Bug {
  none,
  read_before_commit,
  registers_before_wait,
  refilled_stage,
  unfenced_store,
  overwritten_accumulator,
  arrives_before_wait,
  no_store_wait,
  no_store_fence,
  two_issuers,
  other_shape,
  commit_by_another,
  undefined_accumulator,
  wrong_quarter,
  unallocated_columns,
  freed_too_early,
  leaked,
  alloc_after_relinquish,
  growing_alloc,
  alloc_by_two_warps,
  mixed_groups,
  too_few_bytes,
  diverged,
  illegal_shape,
  reserved_bits,
  descriptor_bits,
  no_after_fence,
  no_after_fence_of_mma,
  no_after_fence_of_store,
  no_load_fence,
  load_fence_too_early,
  load_fence_too_late,
  no_load_wait,
  too_many_bytes,
  illegal_n,
  unallocated_result,
  wrong_free,
  odd_lane,
  // Right, too.
  one_lane_arrives,
  issuer_stores,
};

// ---- one block --------------------------------------------------------------------------------

constexpr uint32_t kM = 128, kN = 32, kK = 32, kSteps = 3, kTiles = 2;
constexpr uint32_t kBytesA = kM * kK * 2, kBytesB = kN * kK * 2, kStage = kBytesA + kBytesB;
constexpr uint32_t kBarriersAt = 2 * kStage, kSharedBytes = kBarriersAt + 128;

/// out[tile] = 1 + A[tile] B[tile] in tile 0, A B in tile 1. Warps 0 to 3 read the results, warp 4
/// multiplies, warp 5 loads.
__global__ void product(const char* a, const char* b, float* out, int bug) {
  char* smem = dynamic_shared<char>();
  auto* full = reinterpret_cast<uint64_t*>(smem + kBarriersAt);
  uint64_t *empty = full + 2, *done = full + 4, *drained = full + 5, *ready = full + 6;
  auto* address = reinterpret_cast<uint32_t*>(full + 7);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 5; ++i) mbarrier_init(full + i, 1);
    mbarrier_init(drained, bug == one_lane_arrives ? 4 : 128);
    mbarrier_init(ready, 128);
    fence_mbarrier_init();
  }
  if (warp == 4) {
    simt::tmem_alloc(address, 32, 1);                            // [alloc]
    if (bug == growing_alloc) simt::tmem_alloc(address, 64, 1);  // [grow]
    if (bug == alloc_after_relinquish) {
      simt::tmem_relinquish(1);
      simt::tmem_alloc(address, 32, 1);  // [relinquished]
    }
  }
  __syncthreads();
  if (bug == alloc_by_two_warps && warp == 0) simt::tmem_alloc(address, 32, 1);  // [two]
  const uint32_t d = *address;
  if (warp == 5 && lane == 0) {
    for (uint32_t i = 0; i < kTiles * kSteps; ++i) {
      char* stage = smem + i % 2 * kStage;
      mbarrier_wait(empty + i % 2, i / 2 % 2 ^ 1);
      uint32_t bytes = kStage;
      if (i == 0) {                                                        // B by ordinary stores
        for (uint32_t x = 0; x < kBytesB; ++x) stage[kBytesA + x] = b[x];  // [store]
        if (bug != unfenced_store) fence_proxy_async();
        bytes = kBytesA;
      } else {
        bulk_load(stage + kBytesA, b + i * kBytesB, kBytesB, full + i % 2);
      }
      bulk_load(stage, a + i * kBytesA, kBytesA, full + i % 2);  // [load]
      if (bug == too_few_bytes) bytes -= 16;
      if (bug == too_many_bytes) bytes += 16;
      mbarrier_arrive_expect_tx(full + i % 2, bytes);
      if (bug == two_issuers && i == kTiles * kSteps - 1) {
        mbarrier_wait(full + i % 2, i / 2 % 2);
        const uint64_t desc_a = plain_descriptor(stage, kM);
        const uint64_t desc_b = plain_descriptor(stage + kBytesA, kN);
        simt::tcgen05_mma(d, desc_a, desc_b, instruction(kM, kN), true, kOne);  // [second issuer]
        simt::tcgen05_commit(empty + i % 2, 1);
      }
      if (bug == commit_by_another && i % kSteps == kSteps - 1) simt::tcgen05_commit(done, 1);
    }
  }
  if (warp == 4 && bug == issuer_stores) {  // for warp 0
    uint32_t one[32];
    for (uint32_t& x : one) x = 0x3f800000u;
    simt::tmem_store(d, one, TmemShape::s32x32b, 32);
    simt::tmem_wait_store();
    __syncwarp();
  }
  if (warp == 4 && lane == 0) {
    if (bug != undefined_accumulator) mbarrier_wait(ready, 0);
    if (bug != no_after_fence_of_store) simt::tcgen05_fence_after_thread_sync();
    for (uint32_t i = 0; i < kTiles * kSteps; ++i) {
      const uint32_t stage = i % 2, tile = i / kSteps;
      if (i % kSteps == 0 && tile > 0 && bug != overwritten_accumulator) {
        mbarrier_wait(drained, tile - 1);
        if (bug != no_after_fence_of_mma) simt::tcgen05_fence_after_thread_sync();
      }
      mbarrier_wait(full + stage, i / 2 % 2);  // [full]
      if (bug == refilled_stage) simt::tcgen05_commit(empty + stage, 1);
      for (uint32_t k = 0; k < 2; ++k) {
        const char *at_a = smem + stage * kStage + k * kM * 32,
                   *at_b = smem + stage * kStage + kBytesA + k * kN * 32;
        uint32_t shape = instruction(bug == illegal_shape ? 192 : kM, bug == illegal_n ? 0 : kN);
        if (bug == other_shape && k == 1) shape = instruction(kM, 16);
        if (bug == reserved_bits) shape |= 1u << 6;
        uint64_t desc_a = plain_descriptor(at_a, kM);
        if (bug == descriptor_bits) desc_a |= uint64_t{0xb0} << 53;
        const bool accumulate = tile == 0 || i % kSteps + k > 0;
        const uint32_t to = d + (bug == unallocated_result ? 16 : 0);
        const uint64_t desc_b = plain_descriptor(at_b, kN);
        simt::tcgen05_mma(to, desc_a, desc_b, shape, accumulate, kOne);  // [mma]
      }
      if (bug != refilled_stage) {
        simt::tcgen05_commit(empty + stage, bug == mixed_groups ? 2 : 1);  // [commit]
      }
      if (i % kSteps == kSteps - 1 && bug != commit_by_another) simt::tcgen05_commit(done, 1);
    }
  }
  if (warp == 4 && bug == freed_too_early) {
    __syncwarp();
    simt::tmem_dealloc(d, 32, 1);  // [free]
  }
  if (warp < 4) {
    const uint32_t own = d + (32 * warp << 16);
    uint32_t r[32];
    if (bug != undefined_accumulator) {
      for (uint32_t& x : r) x = 0x3f800000u;
      if (bug != issuer_stores || warp != 0) {
        simt::tmem_store(own, r, TmemShape::s32x32b, 32);  // [st]
      }
      if (bug != no_store_wait) simt::tmem_wait_store();
      if (bug != no_store_fence) simt::tcgen05_fence_before_thread_sync();
      mbarrier_arrive(ready);
    }
    for (uint32_t tile = 0; tile < kTiles; ++tile) {
      if (bug != read_before_commit) mbarrier_wait(done, tile);
      if (bug != no_after_fence) simt::tcgen05_fence_after_thread_sync();
      if (bug == wrong_quarter) simt::tmem_load(r, d, TmemShape::s32x32b, 32);  // [quarter]
      if (bug == unallocated_columns) {
        simt::tmem_load(r, own + 16, TmemShape::s32x32b, 32);  // [columns]
      }
      if (bug == odd_lane) simt::tmem_load(r, own + (16 << 16), TmemShape::s32x32b, 32);  // [odd]
      if (bug != diverged || lane < 16) simt::tmem_load(r, own, TmemShape::s32x32b, 32);  // [ld]
      if (bug == arrives_before_wait) mbarrier_arrive(drained);
      if (bug == load_fence_too_early) simt::tcgen05_fence_before_thread_sync();
      if (bug != registers_before_wait && bug != no_load_wait) simt::tmem_wait_load();  // [wait]
      float* to = out + (tile * kM + threadIdx.x) * kN;
      for (uint32_t n = 0; n < kN; ++n) to[n] = __uint_as_float(r[n]);  // [use]
      if (bug == registers_before_wait) simt::tmem_wait_load();
      if (bug == one_lane_arrives) {
        __syncwarp();
        if (lane == 0) simt::tcgen05_fence_before_thread_sync();
        if (lane == 0) mbarrier_arrive(drained);
        continue;
      }
      if (bug != no_load_fence && bug != load_fence_too_early && bug != load_fence_too_late) {
        simt::tcgen05_fence_before_thread_sync();
      }
      if (bug != arrives_before_wait) mbarrier_arrive(drained);
      if (bug == load_fence_too_late) simt::tcgen05_fence_before_thread_sync();
    }
  }
  __syncthreads();
  if (warp == 4 && bug == wrong_free) simt::tmem_dealloc(d, 64, 1);  // [wrong free]
  if (warp == 4 && bug != leaked) simt::tmem_dealloc(d, 32, 1);      // [last free]
}

float value_of(uint32_t i) {
  return static_cast<float>(static_cast<int>(i * 2654435761u >> 29) - 4);
}
float a_at(uint32_t tile, uint32_t row, uint32_t k) { return value_of(tile * 77 + row * 131 + k); }
float b_at(uint32_t tile, uint32_t n, uint32_t k) { return value_of(tile * 55 + n * 37 + k + 9); }

/// Tiles of `rows` rows and kK columns, as plain_descriptor() describes them.
template <class At>
DeviceMemory tiles(uint32_t rows, const char* name, const At& value) {
  std::vector<uint16_t> all(size_t{kTiles} * kSteps * rows * kK);
  for (uint32_t i = 0; i < kTiles * kSteps; ++i) {
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t k = 0; k < kK; ++k) {
        const bf16 element = __float2bfloat16(value(i / kSteps, row, i % kSteps * kK + k));
        uint16_t& to = all[i * rows * kK + k / 8 * rows * 8 + row * 8 + k % 8];
        std::memcpy(&to, static_cast<const void*>(&element), 2);
      }
    }
  }
  return upload(all, name);
}

/// What a run says: its findings, advice and error, a line each, and its results.
struct Report {
  std::string text;
  std::vector<float> out;
};
Report report_of(size_t results, const std::function<void(DeviceMemory& out)>& run) {
  const OnDevice device("b200");
  DeviceMemory out(results * sizeof(float), "out");
  std::string error;
  const simt::Trace trace = trace_of([&] { run(out); }, &error);
  std::string text = findings_of(trace);
  for (const simt::Finding& advice : trace.advice) text += "advice: " + advice.message + "\n";
  return {text + (error.empty() ? "" : "error: " + error + "\n"), download<float>(out)};
}

Report run_product(int bug) {
  return report_of(size_t{kTiles} * kM * kN, [bug](DeviceMemory& out) {
    const DeviceMemory a = tiles(kM, "a", a_at), b = tiles(kN, "b", b_at);
    run_kernel(product, {1, 192, kSharedBytes}, a, b, out, bug);
  });
}

void expect_parts(const std::string& report, const std::vector<std::string>& parts) {
  size_t place = 0;
  for (const std::string& part : parts) {
    place = report.find(part, place);
    ASSERT_NE(place, std::string::npos) << "not there: " << part << "\n" << report;
    place += part.size();
  }
}

/// Under every schedule no finding, and right results.
void expect_right(const std::function<Report()>& run, const std::function<double(size_t)>& wanted) {
  for (const auto schedule : {AsyncSchedule::late, AsyncSchedule::early, AsyncSchedule::random}) {
    simt::set_async_schedule(schedule, 7);
    const Report report = run();
    EXPECT_EQ(report.text, "");
    for (size_t i = 0; i < report.out.size(); ++i) {
      ASSERT_EQ(report.out[i], wanted(i)) << "element " << i;
    }
  }
  simt::set_async_schedule(AsyncSchedule::late);
}

TEST(Tcgen05, TheRightProductIsRight) {
  for (const Bug right : {none, one_lane_arrives, issuer_stores}) {
    SCOPED_TRACE(right);
    expect_right([&] { return run_product(right); },
                 [](size_t i) {
                   const auto tile = static_cast<uint32_t>(i / kN / kM);
                   const auto row = static_cast<uint32_t>(i / kN % kM);
                   double sum = tile == 0 ? 1 : 0;
                   for (uint32_t k = 0; k < kSteps * kK; ++k) {
                     sum += a_at(tile, row, k) * b_at(tile, static_cast<uint32_t>(i % kN), k);
                   }
                   return sum;
                 });
  }
}

TEST(Tcgen05, PlantedBugsOfOneBlock) {
  const std::string mma = "an asynchronous operation of thread (128,0,0)";
  const struct {
    Bug bug;
    std::vector<std::string> parts;
  } cases[] = {
      {read_before_commit, {"race: ", "tensor memory, column ", at("ld"), at("mma")}},
      {registers_before_wait, {"race: ", at("use"), "what tcgen05.ld at", at("ld"), "wait::ld"}},
      {refilled_stage, {"race: write after read", mma + " read", at("mma"), at("load")}},
      {unfenced_store, {"proxy: ", at("store"), at("mma"), "without fence_proxy_async()"}},
      {overwritten_accumulator, {"race: ", "tensor memory", at("ld"), at("mma")}},
      {arrives_before_wait, {"race: write after read", "tensor memory", at("ld"), at("mma")}},
      {no_store_wait, {"race: ", "tensor memory", at("st"), at("mma")}},
      {no_store_fence, {"race: ", at("st"), at("mma"), "before_thread_sync"}},
      {two_issuers, {"race: ", "tensor memory", at("second issuer")}},
      {other_shape, {"race: ", "tensor memory", at("mma"), at("mma")}},
      {commit_by_another, {"race: ", "tensor memory", at("mma"), at("ld")}},
      {undefined_accumulator, {"uninitialised: " + mma, "tensor memory", at("mma")}},
      {wrong_quarter, {"lane 0 of tensor memory; warp 1 reaches lanes 32 to 63", at("quarter")}},
      {unallocated_columns, {"columns 16 to 47 of tensor memory are not allocated", at("columns")}},
      {odd_lane, {"lane 48 of tensor memory: the shape begins at multiples of 32", at("odd")}},
      {wrong_free, {"no allocation of 64 columns at column 0", at("wrong free")}},
      {freed_too_early, {"race: ", at("mma"), at("free")}},
      {leaked, {"32 columns of block (0,0,0) were not freed", at("alloc")}},
      {alloc_after_relinquish, {"after tcgen05.relinquish_alloc_permit", at("relinquished")}},
      {growing_alloc, {"64 columns after an allocation of 32", at("grow")}},
      {alloc_by_two_warps, {"another warp of the block has allocated", at("two")}},
      {mixed_groups, {"the block uses cta_group 1 and 2", at("commit")}},
      {too_few_bytes, {"transaction bytes exceed expectation", at("load")}},
      {too_many_bytes, {"deadlock", "16 bytes pending", at("full")}},
      {diverged, {"error: ", "meet in different operations: ", at("wait")}},
      {illegal_shape, {"cta_group 1 has no shape M = 192, N = 32", at("mma")}},
      {illegal_n, {"cta_group 1 has no shape M = 128, N = 0", at("mma")}},
      {unallocated_result, {"columns 16 to 47 of tensor memory are not allocated", at("mma")}},
      {no_load_wait, {"race: write after read", "tensor memory", at("ld"), at("mma")}},
      {no_load_wait, {"race: write after read", "tensor memory", at("ld"), at("last free")}},
      {reserved_bits, {"bits 6 to 6 must be 0", at("mma")}},
      {descriptor_bits, {"bits 14, 15, 30, 31 and 53 to 60 must be 0", at("mma")}},
      {no_after_fence, {"advice: ", at("ld"), at("mma"), "no tcgen05.fence::after_thread_sync"}},
      {no_after_fence_of_mma, {"advice: ", mma, at("mma"), at("ld"), "::after_thread_sync"}},
      {no_after_fence_of_store, {"advice: ", mma, at("mma"), at("st"), "::after_thread_sync"}},
      {no_load_fence, {"advice: ", mma, at("mma"), at("ld"), "::before_thread_sync"}},
      {load_fence_too_early, {"advice: ", mma, at("mma"), at("ld"), "::before_thread_sync"}},
      {load_fence_too_late, {"advice: ", mma, at("mma"), at("ld"), "::before_thread_sync"}},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE("bug " + std::to_string(one.bug));
    expect_parts(run_product(one.bug).text, one.parts);
  }
}

constexpr uint32_t kShapeColumns = 64, kOffset = 40;  // the latter of 16x32bx2

/// Columns 0 to 63 hold lane * 64 + column. Loads `repeat` times a shape: a register i of thread t
/// goes to loaded[i * 32 + t]. Stores 4096 + i * 32 + t the same way, and says what is there then.
__global__ void load_and_store(int shape, int repeat, int registers, int pack, float* loaded,
                               float* stored) {
  auto* address = dynamic_shared<uint32_t>();
  simt::tmem_alloc(address, kShapeColumns, 1);
  __syncwarp();
  const uint32_t d = *address, offset = shape == 4 ? kOffset : 0;
  uint32_t r[kShapeColumns];
  for (uint32_t c = 0; c < kShapeColumns; ++c) r[c] = threadIdx.x * kShapeColumns + c;
  simt::tmem_store(d, r, TmemShape::s32x32b, kShapeColumns);
  simt::tmem_wait_store();
  simt::tmem_load(r, d, static_cast<TmemShape>(shape), repeat, pack != 0, offset);
  simt::tmem_wait_load();
  for (int i = 0; i < registers; ++i) {
    loaded[i * 32 + threadIdx.x] = static_cast<float>(pack != 0 ? r[i] >> 16 : r[i]);
    r[i] = 4096 + static_cast<uint32_t>(i) * 32 + threadIdx.x;
    if (pack != 0) r[i] |= r[i] << 16;
  }
  simt::tmem_store(d, r, static_cast<TmemShape>(shape), repeat, pack != 0, offset);
  simt::tmem_wait_store();
  simt::tmem_load(r, d, TmemShape::s32x32b, kShapeColumns);
  simt::tmem_wait_load();
  for (uint32_t c = 0; c < kShapeColumns; ++c) {
    stored[threadIdx.x * kShapeColumns + c] = static_cast<float>(r[c]);
  }
  __syncwarp();
  simt::tmem_dealloc(d, kShapeColumns, 1);
}

TEST(Tcgen05, ShapesOfLoadsAndStores) {
  // From the layouts in CUTLASS's copy_traits_sm100.hpp, and not by the model's formulas.
  struct Place {
    uint32_t lane, column;
  };
  using Places = std::function<Place(uint32_t t, uint32_t i)>;
  const struct {
    TmemShape shape;
    int repeat, registers;
    bool pack;
    Places place;
  } cases[] = {
      {TmemShape::s32x32b, 16, 16, false,
       [](uint32_t t, uint32_t i) {
         return Place{t, i};
       }},
      {TmemShape::s32x32b, 16, 16, true,
       [](uint32_t t, uint32_t i) {
         return Place{t, 2 * i + 1};
       }},
      {TmemShape::s16x64b, 4, 4, false,
       [](uint32_t t, uint32_t i) {
         const uint32_t row = t >> 2 | (t & 1) << 3;
         return Place{row, (t >> 1 & 1) + (i << 1)};
       }},
      {TmemShape::s16x64b, 4, 4, true,
       [](uint32_t t, uint32_t i) {
         return Place{t >> 2 | (t & 1) << 3, (t & 2) + (i << 2) + 1};
       }},
      {TmemShape::s16x128b, 4, 8, true,
       [](uint32_t t, uint32_t i) {
         return Place{(t >> 2) + ((i & 1) != 0 ? 8 : 0), ((t & 3) << 1) + (i >> 1 << 3) + 1};
       }},
      {TmemShape::s16x256b, 2, 8, true,
       [](uint32_t t, uint32_t i) {
         const uint32_t columns[] = {1, 3, 1, 3, 17, 19, 17, 19};
         return Place{(t >> 2) + ((i & 2) != 0 ? 8 : 0), ((t & 3) << 2) + columns[i]};
       }},
      {TmemShape::s16x32bx2, 8, 8, true,
       [](uint32_t t, uint32_t i) {
         return t < 16 ? Place{t, 2 * i + 1} : Place{t - 16, 2 * i + 1 + kOffset};
       }},
      {TmemShape::s16x128b, 4, 8, false,
       [](uint32_t t, uint32_t i) {
         return Place{(t >> 2) + ((i & 1) != 0 ? 8 : 0), (t & 3) + (i >> 1 << 2)};
       }},
      {TmemShape::s16x256b, 2, 8, false,
       [](uint32_t t, uint32_t i) {
         const uint32_t columns[] = {0, 1, 0, 1, 8, 9, 8, 9};
         return Place{(t >> 2) + ((i & 2) != 0 ? 8 : 0), ((t & 3) << 1) + columns[i]};
       }},
      {TmemShape::s16x32bx2, 8, 8, false,
       [](uint32_t t, uint32_t i) {
         return t < 16 ? Place{t, i} : Place{t - 16, i + kOffset};
       }},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(static_cast<int>(one.shape));
    const OnDevice device("b200");
    DeviceMemory loaded(4 * kShapeColumns * 32, "loaded");
    DeviceMemory stored(4 * kShapeColumns * 32, "stored");
    EXPECT_NO_FINDINGS(trace_launch(load_and_store, {1, 32, 64}, static_cast<int>(one.shape),
                                    one.repeat, one.registers, one.pack ? 1 : 0, loaded, stored));
    const auto from = download<float>(loaded), to = download<float>(stored);
    std::vector<float> wanted(to.size());
    for (uint32_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<float>(i);
    for (uint32_t i = 0; i < static_cast<uint32_t>(one.registers); ++i) {
      for (uint32_t t = 0; t < 32; ++t) {
        const auto [lane, column] = one.place(t, i);
        const uint32_t at = lane * kShapeColumns + column;
        ASSERT_EQ(from[i * 32 + t], static_cast<float>(at)) << "register " << i << " of " << t;
        wanted[at] = static_cast<float>(4096 + i * 32 + t);
        if (one.pack) wanted[at - 1] = wanted[at];
      }
    }
    EXPECT_EQ(to, wanted);
  }
}

/// An mma of zeros, with bits of its descriptors changed: of A's in shared memory, of the
/// instruction's.
__global__ void mma_of_bits(int kind_number, uint64_t changed_a, uint32_t changed) {
  char* smem = dynamic_shared<char>();
  char* tile_b = smem + 128 * 32;
  auto* done = reinterpret_cast<uint64_t*>(tile_b + 32 * 32);
  const auto kind = static_cast<MmaKind>(kind_number);
  for (uint32_t i = threadIdx.x; i < (128 + 32) * 32; i += 32) smem[i] = 0;
  fence_proxy_async();
  const uint32_t d = set_up(done, 1, 64);
  const uint32_t scales[8] = {};
  simt::tmem_store(d + 32, scales, TmemShape::s32x32b, 8);
  simt::tmem_wait_store();
  if (threadIdx.x == 0) {
    const uint64_t a = plain_descriptor(smem, 128) ^ changed_a, b = plain_descriptor(tile_b, 32);
    MmaOptions options = kOne;
    options.kind = kind;
    if (kind == MmaKind::f16) {
      simt::tcgen05_mma(d, a, b, instruction(128, 32) ^ changed, false, options);  // [plain bits]
    } else {
      const bool fp4 = kind == MmaKind::mxf4nvf4;
      options.scale_vector = fp4 ? 4 : 1;
      const uint32_t bits = (fp4 ? 1u << 7 | 1u << 10 : 1u << 23) | 32 / 8 << 17 | 1u << 27;
      simt::tcgen05_mma_scaled(  // [scaled bits]
          d, a, b, bits ^ changed, d + 32, d + 36, false, options);
    }
    simt::tcgen05_commit(done, 1);
  }
  mbarrier_wait(done, 0);
  give_back(d, 64);
}

TEST(Tcgen05, EveryBitOfADescriptor) {
  const auto report = [](MmaKind kind, uint64_t changed_a, uint32_t changed) {
    return report_of(1,
                     [=](DeviceMemory&) {
                       run_kernel(mma_of_bits, {1, 32, (128 + 32) * 32 + 64},
                                  static_cast<int>(kind), changed_a, changed);
                     })
        .text;
  };
  const auto bits_named = [](int first, int last) {
    return "bits " + std::to_string(first) + " to " + std::to_string(last) + " must be 0";
  };
  for (const MmaKind kind : {MmaKind::f16, MmaKind::mxf8f6f4, MmaKind::mxf4nvf4}) {
    EXPECT_EQ(report(kind, 0, 0), "");
  }
  // Of shared memory: the others are addresses, and 62, 63 another swizzle.
  for (int bit = 14; bit < 64; ++bit) {
    const bool zero = bit < 16 || bit == 30 || bit == 31 || (bit >= 53 && bit <= 60);
    const char* why = zero        ? "bits 14, 15, 30, 31 and 53 to 60 must be 0"
                      : bit < 46  ? nullptr
                      : bit <= 48 ? "bits 46 to 48 must be 0b001"
                      : bit <= 51 ? "bits 49 to 51 must be 0 without a swizzle"
                      : bit == 52 ? "an absolute leading dimension (bit 52) needs sm_103a"
                      : bit == 61 ? "a swizzle of 32-byte atoms is for transposed tf32 only"
                                  : nullptr;
    SCOPED_TRACE(bit);
    if (why == nullptr) continue;
    expect_parts(report(MmaKind::f16, uint64_t{1} << bit, 0), {"of A: ", why, at("plain bits")});
  }
  for (const uint64_t layout : {3, 5, 7}) {
    expect_parts(report(MmaKind::f16, layout << 61, 0),
                 {"of A: bits 61 to 63 name no layout", at("plain bits")});
  }
  const struct {
    MmaKind kind;
    int bit;
    std::string why;
  } cases[] = {
      {MmaKind::f16, 0, bits_named(0, 1)},
      {MmaKind::f16, 1, bits_named(0, 1)},
      {MmaKind::f16, 2, "sparse operands are not modelled"},
      {MmaKind::f16, 3, bits_named(3, 3)},
      {MmaKind::f16, 5, "kind::f16 has no type 3 for D"},
      {MmaKind::f16, 6, bits_named(6, 6)},
      {MmaKind::f16, 8, "kind::f16 has no type 3 for A"},
      {MmaKind::f16, 11, "kind::f16 has no type 3 for B"},
      {MmaKind::f16, 22, "no shape M = 128, N = 288"},
      {MmaKind::f16, 23, bits_named(23, 23)},
      {MmaKind::f16, 24, "no shape M = 144, N = 32"},
      {MmaKind::f16, 29, bits_named(29, 29)},
      {MmaKind::f16, 30, bits_named(30, 31)},
      {MmaKind::f16, 31, bits_named(30, 31)},
      {MmaKind::mxf8f6f4, 6, bits_named(6, 6)},
      {MmaKind::mxf8f6f4, 8, "kind::mxf8f6f4 has no type 2 for A"},
      {MmaKind::mxf8f6f4, 23, "scales of kind::mxf8f6f4 are UE8M0"},
      {MmaKind::mxf8f6f4, 24, bits_named(24, 26)},
      {MmaKind::mxf8f6f4, 26, bits_named(24, 26)},
      {MmaKind::mxf8f6f4, 28, "no shape M = 384, N = 32"},
      {MmaKind::mxf8f6f4, 31, "a depth of 96 needs sm_103a"},
      {MmaKind::mxf4nvf4, 4, "scale_vec::4X cannot begin at byte 1"},
      {MmaKind::mxf4nvf4, 12, bits_named(12, 12)},
      {MmaKind::mxf4nvf4, 15, "no transposed operands"},
      {MmaKind::mxf4nvf4, 23, "scales of scale_vec::4X are UE4M3"},
      {MmaKind::mxf4nvf4, 30, "scale_vec::4X cannot begin at byte 2"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE("bit " + std::to_string(one.bit));
    expect_parts(report(one.kind, 0, 1u << one.bit),
                 {one.why, at(one.kind == MmaKind::f16 ? "plain bits" : "scaled bits")});
  }
}

/// Without an mma: what warp 0 stores, warp 4 loads, as it has the same lanes; then the other way.
/// `missing`: one of the four fences. Within a warp there is none.
__global__ void hand_over(float* out, int missing) {
  auto* address = dynamic_shared<uint32_t>();
  const uint32_t warp = threadIdx.x / 32;
  if (warp == 0) simt::tmem_alloc(address, 32, 1);
  __syncthreads();
  uint32_t value = 0x3f800000u;
  if (warp == 0) {
    simt::tmem_store(*address, &value, TmemShape::s32x32b, 1);  // [handed]
    simt::tmem_wait_store();
    if (missing != 1) simt::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();
  if (warp == 4) {
    if (missing != 2) simt::tcgen05_fence_after_thread_sync();
    simt::tmem_load(&value, *address, TmemShape::s32x32b, 1);  // [other]
    simt::tmem_wait_load();
    out[threadIdx.x % 32] = __uint_as_float(value);
    if (missing != 3) simt::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();
  if (warp == 0) {
    if (missing != 4) simt::tcgen05_fence_after_thread_sync();
    simt::tmem_store(*address, &value, TmemShape::s32x32b, 1);  // [again]
    simt::tmem_wait_store();
    simt::tmem_load(&value, *address, TmemShape::s32x32b, 1);
    simt::tmem_wait_load();
    out[32 + threadIdx.x] = __uint_as_float(value);
    simt::tmem_dealloc(*address, 32, 1);
  }
}

TEST(Tcgen05, FencesBetweenLoadsAndStores) {
  const auto run = [](int missing) {
    return report_of(64, [missing](DeviceMemory& out) {
      run_kernel(hand_over, {1, 160, 64}, out, missing);
    });
  };
  expect_right([&] { return run(0); }, [](size_t) { return 1; });
  expect_parts(run(1).text, {"advice: ", at("other"), at("handed"), "::before_thread_sync"});
  expect_parts(run(2).text, {"advice: ", at("other"), at("handed"), "::after_thread_sync"});
  expect_parts(run(3).text, {"advice: ", at("again"), at("other"), "::before_thread_sync"});
  expect_parts(run(4).text, {"advice: ", at("again"), at("other"), "::after_thread_sync"});
}

/// `times` allocations.
__global__ void allocate(uint32_t columns, int times) {
  auto* addresses = dynamic_shared<uint32_t>();
  for (int i = 0; i < times; ++i) simt::tmem_alloc(addresses + i, columns, 1);
  __syncwarp();
  for (int i = 0; i < times; ++i) simt::tmem_dealloc(addresses[i], columns, 1);
}

TEST(Tcgen05, ColumnsAreCounted) {
  const auto holds = [](uint32_t columns, int times) {
    const OnDevice device("b200");
    const simt::Trace trace = trace_launch(allocate, {2, 32, 64}, columns, times);
    EXPECT_NO_FINDINGS(trace);
    const auto check = [&](const Claim& claim) { return check_on_trace(claim, trace).holds; };
    return std::vector{check(tensor_memory_allocations().columns(128)),
                       check(tensor_memory_allocations().requests(2))};
  };
  using Holds = std::vector<std::optional<bool>>;
  EXPECT_EQ(holds(128, 1), (Holds{true, true}));
  EXPECT_EQ(holds(256, 1), (Holds{false, true}));
  EXPECT_EQ(holds(128, 2), (Holds{true, false}));
  EXPECT_EQ(tensor_memory_allocations().columns(128).text,
            "allocations of tensor memory: 128 columns each, so at most 4 blocks per SM");
}

// ---- a pair of blocks -------------------------------------------------------------------------

enum PairBug {
  pair_none,
  too_few_bytes_of_pair,
  commit_to_one,
  exits_early,
  frees_early,
  leader_frees_early,
  no_pair,
  not_at_leader,
  illegal_pair_shape,
};

constexpr uint32_t kPairN = 64, kPairBytes = (128 + kPairN / 2) * 128;

/// out = A B^T of 256 x 64 rows of 64: each block has half of the rows of A, of B and of out.
__global__ void pair_product(const __grid_constant__ TensorMap a,
                             const __grid_constant__ TensorMap b, float* out, int bug) {
  char* smem = dynamic_shared<char>();
  auto* full = reinterpret_cast<uint64_t*>(smem + kPairBytes);
  uint64_t* done = full + 1;
  auto* address = reinterpret_cast<uint32_t*>(full + 2);
  const uint32_t rank = cluster_block_rank(), warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    mbarrier_init(done, 1);
    fence_mbarrier_init();
  }
  if (warp == 0) simt::tmem_alloc(address, 64, 2);  // [pair alloc]
  cluster_sync();
  const uint32_t d = *address;
  if (threadIdx.x == 0) {
    uint64_t* leader = bug == not_at_leader ? full : map_shared(full, 0);
    const int row = static_cast<int>(rank);
    simt::tma_load_pair(smem, &a, leader, {0, row * 128}, 2);  // [pair load]
    simt::tma_load_pair(smem + 128 * 128, &b, leader, {0, row * 32}, 2);
  }
  if (threadIdx.x == 0 && rank == 0) {
    mbarrier_arrive_expect_tx(full, kPairBytes * (bug == too_few_bytes_of_pair ? 1 : 2));
    mbarrier_wait(full, 0);  // [pair full]
    for (uint32_t k = 0; k < 4; ++k) {
      const uint64_t desc_a = swizzled_descriptor(smem) + 2 * k;
      const uint64_t desc_b = swizzled_descriptor(smem + 128 * 128) + 2 * k;
      const uint32_t shape = instruction(bug == illegal_pair_shape ? 64 : 256, kPairN);
      simt::tcgen05_mma(d, desc_a, desc_b, shape, k > 0, kPair);  // [pair mma]
    }
    simt::tcgen05_commit_multicast(done, bug == commit_to_one ? 1 : 3, 2);
  }
  if (bug == exits_early || bug == frees_early) cluster_sync();
  const bool frees = bug == (rank == 0 ? leader_frees_early : frees_early);
  if (warp == 0 && frees) simt::tmem_dealloc(d, 64, 2);  // [pair free]
  if (!frees && (rank == 0 || bug != exits_early)) {
    mbarrier_wait(done, 0);  // [pair wait]
    simt::tcgen05_fence_after_thread_sync();
    uint32_t r[64];
    simt::tmem_load(r, d + (32 * warp << 16), TmemShape::s32x32b, 64);
    simt::tmem_wait_load();
    for (uint32_t n = 0; n < kPairN; ++n) {
      out[(rank * 128 + threadIdx.x) * kPairN + n] = __uint_as_float(r[n]);
    }
    simt::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();
  if (warp == 0 && !frees) simt::tmem_dealloc(d, 64, 2);
  if (bug != exits_early && bug != frees_early) cluster_sync();
}

Report run_pair(int bug) {
  return report_of(size_t{256} * kPairN, [bug](DeviceMemory& out) {
    std::vector<bf16> a(256 * 64), b(kPairN * 64);
    for (uint32_t i = 0; i < a.size(); ++i) a[i] = __float2bfloat16(a_at(0, i / 64, i % 64));
    for (uint32_t i = 0; i < b.size(); ++i) b[i] = __float2bfloat16(b_at(0, i / 64, i % 64));
    const DeviceMemory at_a = upload(a, "a"), at_b = upload(b, "b");
    run_kernel(pair_product, {2, 128, kPairBytes + 64, bug == no_pair ? 1 : 2},
               map_2d<bf16>(at_a.data(), 256, 64, 128, 64, Swizzle::b128),
               map_2d<bf16>(at_b.data(), kPairN, 64, kPairN / 2, 64, Swizzle::b128), out, bug);
  });
}

TEST(Tcgen05, TheRightPairIsRight) {
  expect_right([] { return run_pair(pair_none); },
               [](size_t i) {
                 double sum = 0;
                 for (uint32_t k = 0; k < 64; ++k) {
                   sum += a_at(0, static_cast<uint32_t>(i / kPairN), k) *
                          b_at(0, static_cast<uint32_t>(i % kPairN), k);
                 }
                 return sum;
               });
}

TEST(Tcgen05, PlantedBugsOfAPair) {
  const struct {
    PairBug bug;
    std::vector<std::string> parts;
  } cases[] = {
      {too_few_bytes_of_pair, {"transaction bytes exceed expectation", at("pair load")}},
      {commit_to_one, {"deadlock", "block (1,0,0)", "mbarrier", at("pair wait")}},
      {exits_early, {"exit: block (1,0,0) may have ended", at("pair mma")}},
      {frees_early, {"race: ", "tensor memory", at("pair mma"), at("pair free")}},
      {leader_frees_early, {"race: ", "tensor memory", at("pair mma"), at("pair free")}},
      {no_pair, {"cta_group 2 in a launch with clusters of 1", at("pair alloc")}},
      {not_at_leader, {"deadlock", "20480 bytes pending", at("pair full"), "block (1,0,0)"}},
      {illegal_pair_shape, {"cta_group 2 has no shape M = 64, N = 64", at("pair mma")}},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE("bug " + std::to_string(one.bug));
    expect_parts(run_pair(one.bug).text, one.parts);
  }
}

// ---- block scaling ----------------------------------------------------------------------------

/// out = A B^T of 128 x 32 rows, one instruction deep, times scales: MXFP8 (UE8M0 per 32) or NVFP4
/// (UE4M3 per 16). `scales`: an atom of 512 bytes for A, another for B.
__global__ void scaled_product(const char* a, const char* b, const char* scales, float* out,
                               int fp4, int bug) {
  char* smem = dynamic_shared<char>();
  char *tile_b = smem + 128 * 32, *atoms = tile_b + 32 * 32;
  auto* full = reinterpret_cast<uint64_t*>(atoms + 1024);
  uint64_t *done = full + 1, *copied = full + 2;
  const uint32_t d = set_up(full, 3, 64), scale_a = d + 32, scale_b = d + 36;
  if (threadIdx.x == 0) {
    bulk_load(smem, a, 128 * 32, full);
    bulk_load(tile_b, b, 32 * 32, full);
    bulk_load(atoms, scales, 1024, full);
    mbarrier_arrive_expect_tx(full, 128 * 32 + 32 * 32 + 1024);
    mbarrier_wait(full, 0);
    simt::tcgen05_cp(scale_a, plain_descriptor(atoms, 32), simt::TmemCopy::c32x128b, 1);
    simt::tcgen05_cp(scale_b, plain_descriptor(atoms + 512, 32), simt::TmemCopy::c32x128b, 1);
    simt::tcgen05_commit(copied, 1);
    // D is fp32 here always; the bits before M are the scales' type.
    const uint32_t shape = 32 / 8 << 17 | 128 / 128 << 27;
    const uint32_t types = fp4 ? 1u << 7 | 1u << 10 : 1u << 23;
    const MmaOptions options{fp4 ? MmaKind::mxf4nvf4 : MmaKind::mxf8f6f4, 1, fp4 ? 4 : 1, -1,
                             nullptr};
    const uint64_t desc_a = plain_descriptor(smem, 128), desc_b = plain_descriptor(tile_b, 32);
    simt::tcgen05_mma_scaled(  // [scaled mma]
        d, desc_a, desc_b, shape | types, scale_a, scale_b, false, options);
    simt::tcgen05_commit(done, 1);
  }
  if (threadIdx.x == 32 && bug) {
    mbarrier_wait(copied, 0);
    simt::tcgen05_cp(scale_a, plain_descriptor(atoms, 32), simt::TmemCopy::c32x128b, 1);  // [cp]
    simt::tcgen05_commit(full, 1);
    mbarrier_wait(full, 1);
  }
  uint32_t r[32];
  read_lane(done, d, r);
  for (uint32_t n = 0; n < 32; ++n) out[threadIdx.x * 32 + n] = __uint_as_float(r[n]);
  give_back(d, 64);
}

constexpr float kFp4[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, 0, -.5f, -1, -1.5f, -2, -3, -4, -6};

struct ScaledCase {
  bool fp4;
  uint32_t depth() const { return fp4 ? 64 : 32; }
  static uint32_t code(uint32_t row, uint32_t k) { return (row * 40503u + k * 30011u + 7) >> 3; }
  float element(uint32_t row, uint32_t k) const {
    if (fp4) return kFp4[code(row, k) % 16];
    return static_cast<float>(__nv_fp8_e4m3(static_cast<float>(code(row, k) % 15) - 7));
  }
  uint8_t scale_bits(uint32_t row, uint32_t group) const {
    return static_cast<uint8_t>(fp4 ? 0x38 + (row + group * 3) % 9 : 124 + (row * 5 + group) % 7);
  }
  double scale(uint32_t row, uint32_t group) const {
    const uint8_t bits = scale_bits(row, group);
    if (!fp4) return std::ldexp(1.0, bits - 127);
    __nv_fp8_e4m3 value;
    value.__x = bits;
    return static_cast<float>(value);
  }
  /// Rows as plain_descriptor() describes them, 32 bytes each.
  std::vector<char> operand(uint32_t rows, uint32_t seed) const {
    std::vector<char> all(size_t{rows} * 32);
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t k = 0; k < depth(); ++k) {
        const uint32_t byte = fp4 ? k / 2 : k;
        char& to = all[byte / 16 * rows * 16 + row * 16 + byte % 16];
        if (fp4) {
          to = static_cast<char>(to | code(row + seed, k) % 16 << (4 * (k % 2)));
        } else {
          to = static_cast<char>(__nv_fp8_e4m3(element(row + seed, k)).__x);
        }
      }
    }
    return all;
  }
  std::vector<char> atoms() const {
    std::vector<char> all(1024);
    for (uint32_t i = 0; i < 1024; ++i) {
      const uint32_t row = i % 512 / 16 + i % 16 / 4 * 32;
      all[i] = static_cast<char>(scale_bits(row + i / 512 * 1000, i % 4));
    }
    return all;
  }
};

Report run_scaled(bool fp4, int bug) {
  return report_of(128 * 32, [=](DeviceMemory& out) {
    const ScaledCase it{fp4};
    const DeviceMemory a = upload(it.operand(128, 0), "a"), b = upload(it.operand(32, 1000), "b");
    const DeviceMemory scales = upload(it.atoms(), "scales");
    run_kernel(scaled_product, {1, 128, 128 * 32 + 32 * 32 + 1024 + 64}, a, b, scales, out,
               fp4 ? 1 : 0, bug);
  });
}

TEST(Tcgen05, BlockScaledProductsAreRight) {
  for (const bool fp4 : {false, true}) {
    expect_right([=] { return run_scaled(fp4, 0); },
                 [=](size_t i) {
                   const ScaledCase it{fp4};
                   const auto row = static_cast<uint32_t>(i / 32);
                   const auto n = static_cast<uint32_t>(i % 32) + 1000;
                   double sum = 0;
                   for (uint32_t k = 0; k < it.depth(); ++k) {
                     const uint32_t group = fp4 ? k / 16 : 0;
                     sum += it.element(row, k) * it.element(n, k) * it.scale(row, group) *
                            it.scale(n, group);
                   }
                   return sum;
                 });
  }
  expect_parts(run_scaled(true, 1).text,
               {"race: write after read", "tensor memory", at("scaled mma"), at("cp")});
}

/// out = D + A B^T of 128 x 32 rows of 32 bytes, A with a sign and B without, in halves of 16 bits.
/// D is 100 from the largest number in even rows, 100 from the smallest in odd ones.
__global__ void integer_product(const char* a, const char* b, float* out, int saturates, int bits) {
  char* smem = dynamic_shared<char>();
  char* tile_b = smem + 128 * 32;
  auto* full = reinterpret_cast<uint64_t*>(tile_b + 32 * 32);
  uint64_t* done = full + 1;
  const uint32_t d = set_up(full, 2, 32), own = d + (threadIdx.x / 32 * 32 << 16);
  uint32_t r[32];
  for (uint32_t& x : r) x = threadIdx.x % 2 == 0 ? 0x7fffffffu - 100 : 0x80000000u + 100;
  simt::tmem_store(own, r, TmemShape::s32x32b, 32);
  simt::tmem_wait_store();
  simt::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (threadIdx.x == 0) {
    simt::tcgen05_fence_after_thread_sync();
    bulk_load(smem, a, 128 * 32, full);
    bulk_load(tile_b, b, 32 * 32, full);
    mbarrier_arrive_expect_tx(full, 128 * 32 + 32 * 32);
    mbarrier_wait(full, 0);
    uint32_t shape = 2u << 4 | 1u << 7 | 32 / 8 << 17 | 128 / 16 << 24;
    if (saturates != 0) shape |= 1u << 3;
    MmaOptions options = kOne;
    options.kind = MmaKind::i8;
    const uint64_t desc_a = plain_descriptor(smem, 128), desc_b = plain_descriptor(tile_b, 32);
    simt::tcgen05_mma(  // [integers]
        d, desc_a, desc_b, shape ^ static_cast<uint32_t>(bits), true, options);
    simt::tcgen05_commit(done, 1);
  }
  read_lane(done, d, r);
  for (uint32_t n = 0; n < 32; ++n) {
    out[(threadIdx.x * 32 + n) * 2] = static_cast<float>(r[n] >> 16);
    out[(threadIdx.x * 32 + n) * 2 + 1] = static_cast<float>(r[n] & 0xffff);
  }
  give_back(d, 32);
}

TEST(Tcgen05, IntegerProducts) {
  const auto byte_at = [](uint32_t row, uint32_t k) {
    return static_cast<char>(row * 37 + k * 11);
  };
  const auto run = [&](bool saturates, uint32_t bits) {
    const auto rows = [&](uint32_t count, uint32_t seed) {
      std::vector<char> all(size_t{count} * 32);
      for (uint32_t row = 0; row < count; ++row) {
        for (uint32_t k = 0; k < 32; ++k) {
          all[k / 16 * count * 16 + row * 16 + k % 16] = byte_at(row + seed, k);
        }
      }
      return all;
    };
    return report_of(128 * 32 * 2, [&](DeviceMemory& out) {
      const DeviceMemory a = upload(rows(128, 0), "a"), b = upload(rows(32, 999), "b");
      run_kernel(integer_product, {1, 128, 128 * 32 + 32 * 32 + 64}, a, b, out, saturates ? 1 : 0,
                 static_cast<int>(bits));
    });
  };
  for (const bool saturates : {false, true}) {
    expect_right([&] { return run(saturates, 0); },
                 [&](size_t i) {
                   const auto row = static_cast<uint32_t>(i / 64);
                   const auto n = static_cast<uint32_t>(i / 2 % 32);
                   int64_t sum = row % 2 == 0 ? INT32_MAX - 100 : INT32_MIN + 100;
                   for (uint32_t k = 0; k < 32; ++k) {
                     sum += int64_t{static_cast<int8_t>(byte_at(row, k))} *
                            static_cast<uint8_t>(byte_at(n + 999, k));
                   }
                   if (saturates)
                     sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
                   const auto word = static_cast<uint32_t>(sum);
                   return static_cast<double>(i % 2 == 0 ? word >> 16 : word & 0xffff);
                 });
  }
  const struct {
    uint32_t bits;
    const char* why;
  } cases[] = {
      {1u << 8, "kind::i8 has no type 3 for A"},
      {1u << 11, "kind::i8 has no type 2 for B"},
      {1u << 13, "bits 13 to 14 must be 0"},
      {1u << 5, "kind::i8 has no type 0 for D"},
      {(32 / 8 ^ 40 / 8) << 17, "no shape M = 128, N = 40"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.why);
    expect_parts(run(false, one.bits).text, {one.why, at("integers")});
  }
}

// ---- layouts of operands ----------------------------------------------------------------------

/// One instruction with D of 128 x 32. Operands are in an image of shared memory, which addresses
/// in the descriptors are relative to.
struct OneMma {
  MmaKind kind;
  uint32_t shape;
  uint64_t a, b;
  uint32_t bytes;  // of the image, a multiple of 16
};

__global__ void one_mma(const char* image, OneMma it, float* out) {
  char* smem = dynamic_shared<char>();
  auto* done = reinterpret_cast<uint64_t*>(smem + it.bytes);
  const uint32_t d = set_up(done, 1, 32);
  fill_shared(smem, image, it.bytes);
  if (threadIdx.x == 0) {
    const uint64_t start = (simt::shared_address(smem) & 0x3ffff) >> 4;
    MmaOptions options = kOne;
    options.kind = it.kind;
    simt::tcgen05_mma(d, it.a + start, it.b + start, it.shape, false, options);  // [one mma]
    simt::tcgen05_commit(done, 1);
  }
  uint32_t r[32];
  read_lane(done, d, r);
  for (uint32_t n = 0; n < 32; ++n) out[threadIdx.x * 32 + n] = __uint_as_float(r[n]);
  give_back(d, 32);
}

uint64_t descriptor(uint32_t start, uint32_t leading, uint32_t stride, uint32_t base_offset,
                    uint64_t layout) {
  return start >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 |
         uint64_t{1} << 46 | uint64_t{base_offset} << 49 | layout << 61;
}

/// Byte of an element in the image. Of the tables in the PTX ISA ("Swizzling modes"): `rows` of 128
/// bytes, in row r chunk c of 16 bytes is at table[r % rows][c].
using ByteOf = std::function<uint32_t(uint32_t mn, uint32_t k)>;
constexpr uint32_t kTable128[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6},
                                      {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
                                      {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                      {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
constexpr uint32_t kTableOf32Bytes[4][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                            {2, 3, 0, 1, 6, 7, 4, 5},
                                            {4, 5, 6, 7, 0, 1, 2, 3},
                                            {6, 7, 4, 5, 2, 3, 0, 1}};
/// Where byte `at` of a pattern of `rows` rows lands.
template <size_t kRows>
uint32_t swizzled_byte(const uint32_t (&table)[kRows][8], uint32_t rows, uint32_t at) {
  return at / 128 * 128 + table[at / 128 % rows][at % 128 / 16] * 16 + at % 16;
}

struct LayoutCase {
  const char* name;
  bool tf32;
  uint32_t transposed;  // bit 0: A, bit 1: B
  uint64_t a, b;
  ByteOf byte_a, byte_b;
  uint64_t changed_a;  // a neighbour of `a` that does not exist, as bits that differ ...
  const char* why;     // ... and what is said of it; nullptr: it gives a wrong result
};

std::vector<LayoutCase> layout_cases() {
  // tf32, 32 rows of 4 bytes by 4 k to a pattern. A: the two patterns of k lie together. B: rows.
  const auto wide = [](uint32_t start, uint32_t leading, uint32_t stride) {
    return [=](uint32_t mn, uint32_t k) {
      return start + mn / 32 * leading + k / 4 * stride +
             swizzled_byte(kTableOf32Bytes, 4, k % 4 * 128 + mn % 32 * 4);
    };
  };
  constexpr uint32_t kB = 20 * 1024;
  const uint64_t other_swizzle = uint64_t{3} << 61;  // 1 and 2: atoms of 32 bytes, of 16
  std::vector<LayoutCase> cases;
  cases.push_back({"tf32, A and B transposed", true, 3, descriptor(0, 1024, 512, 0, 1),
                   descriptor(kB, 0, 2048, 0, 1), wide(0, 1024, 512), wide(kB, 0, 2048),
                   other_swizzle, "transposed tf32 needs the 128-byte swizzle of 32-byte atoms"});
  cases.push_back(
      {"tf32, B transposed", true, 2, descriptor(0, 0, 1024, 0, 2), descriptor(kB, 0, 512, 0, 1),
       [](uint32_t m, uint32_t k) {
         return m / 8 * 1024 + swizzled_byte(kTable128, 8, m % 8 * 128 + k * 4);
       },
       wide(kB, 0, 512), other_swizzle, "a swizzle of 32-byte atoms is for transposed tf32 only"});
  // Patterns that do not begin where their size would have them begin.
  cases.push_back(
      {"128 and 64 bytes", false, 0, descriptor(384 + 32, 0, 1024, 3, 2),
       descriptor(kB + 640, 0, 512, 5, 4),
       [](uint32_t m, uint32_t k) {  // the second 16 of 64 k
         return 384 + m / 8 * 1024 + swizzled_byte(kTable128, 8, m % 8 * 128 + 32 + k * 2);
       },
       [](uint32_t n, uint32_t k) {
         return kB + 640 + n / 8 * 512 + swizzled_byte(kTable128, 4, n % 8 * 64 + k * 2);
       },
       uint64_t{3} << 49, nullptr});
  cases.push_back({"128 bytes transposed, 32 bytes", false, 1, descriptor(768, 2048, 1024, 6, 2),
                   descriptor(kB + 128, 0, 256, 1, 6),
                   [](uint32_t m, uint32_t k) {
                     return 768 + m / 64 * 2048 + k / 8 * 1024 +
                            swizzled_byte(kTable128, 8, k % 8 * 128 + m % 64 * 2);
                   },
                   [](uint32_t n, uint32_t k) {
                     return kB + 128 + n / 8 * 256 +
                            swizzled_byte(kTable128, 2, n % 8 * 32 + k * 2);
                   },
                   uint64_t{1} << 61 | uint64_t{2} << 61,
                   "a swizzle of 32-byte atoms is for transposed tf32 only"});
  return cases;
}

TEST(Tcgen05, LayoutsOfOperands) {
  for (const LayoutCase& one : layout_cases()) {
    SCOPED_TRACE(one.name);
    const uint32_t depth = one.tf32 ? 8 : 16, bytes = 26 * 1024;
    std::vector<char> image(bytes);
    const auto put = [&](const ByteOf& byte, uint32_t rows, auto value) {
      for (uint32_t mn = 0; mn < rows; ++mn) {
        for (uint32_t k = 0; k < depth; ++k) {
          const float element = value(0, mn, k);
          const bf16 half = __float2bfloat16(element);
          const void* from = one.tf32 ? static_cast<const void*>(&element) : &half;
          std::memcpy(&image.at(byte(mn, k)), from, one.tf32 ? 4 : 2);
        }
      }
    };
    put(one.byte_a, 128, a_at);
    put(one.byte_b, 32, b_at);
    const uint32_t types = one.tf32 ? 1u << 4 | 2u << 7 | 2u << 10 : 1u << 4 | 1u << 7 | 1u << 10;
    OneMma it{one.tf32 ? MmaKind::tf32 : MmaKind::f16,
              types | one.transposed << 15 | 32 / 8 << 17 | 128 / 16 << 24, one.a, one.b, bytes};
    const auto run = [&] {
      return report_of(128 * 32, [&](DeviceMemory& out) {
        const DeviceMemory from = upload(image, "image");
        run_kernel(one_mma, {1, 128, bytes + 64}, from, it, out);
      });
    };
    const auto wanted = [&](size_t i) {
      double sum = 0;
      for (uint32_t k = 0; k < depth; ++k) {
        sum +=
            a_at(0, static_cast<uint32_t>(i / 32), k) * b_at(0, static_cast<uint32_t>(i % 32), k);
      }
      return sum;
    };
    expect_right(run, wanted);
    it.a ^= one.changed_a;
    const Report wrong = run();
    if (one.why != nullptr) {
      expect_parts(wrong.text, {"of A: ", one.why, at("one mma")});
    } else {
      EXPECT_EQ(wrong.text, "");
      size_t same = 0;
      for (size_t i = 0; i < wrong.out.size(); ++i) same += wrong.out[i] == wanted(i) ? 1 : 0;
      EXPECT_LT(same, wrong.out.size() / 2);
    }
  }
}

/// A tile of 8 rows of 32 floats by TMA, as it is in shared memory; then back by TMA.
__global__ void tile_and_back(const __grid_constant__ TensorMap from,
                              const __grid_constant__ TensorMap to, float* out) {
  char* smem = dynamic_shared<char>();
  auto* bar = reinterpret_cast<uint64_t*>(smem + 1024);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(bar, 1024);
    tma_load_2d(smem, &from, bar, 0, 0);
  }
  __syncwarp();
  mbarrier_wait(bar, 0);
  for (uint32_t i = threadIdx.x; i < 256; i += 32) out[i] = reinterpret_cast<float*>(smem)[i];
  __syncwarp();
  if (threadIdx.x == 0) {
    tma_store_2d(&to, smem, 0, 0);
    tma_store_commit();
    tma_store_wait<0>();
  }
}

TEST(Tcgen05, TilesInAtomsOf32Bytes) {
  std::vector<float> tile(256);
  for (uint32_t i = 0; i < 256; ++i) tile[i] = static_cast<float>(i);
  const OnDevice device("b200");
  const DeviceMemory from = upload(tile, "from");
  DeviceMemory to(1024, "to"), out(1024, "out");
  const auto map_of = [](const DeviceMemory& memory) {
    TensorMap map = map_2d<float>(memory.data(), 8, 32, 8, 32, Swizzle::b128);
    map.swizzle = simt::kSwizzleOf32Bytes;
    return map;
  };
  EXPECT_NO_FINDINGS(
      trace_launch(tile_and_back, {1, 32, 1024 + 64}, map_of(from), map_of(to), out));
  EXPECT_EQ(download<float>(to), tile);
  const auto there = download<float>(out);
  for (uint32_t i = 0; i < 256; ++i) {
    EXPECT_EQ(there[swizzled_byte(kTableOf32Bytes, 4, 4 * i) / 4], tile[i]) << i;
  }
}

// ---- A in tensor memory -----------------------------------------------------------------------

/// A type of fewer than eight bits.
struct Narrow {
  const char* name;
  uint32_t code, exponent_bits, mantissa_bits;  // the former in the instruction descriptor
  uint32_t bits() const { return 1 + exponent_bits + mantissa_bits; }
  uint32_t element(uint32_t row, uint32_t k) const {
    return (row * 40503u + k * 30011u + 7) >> 4 & ((1u << bits()) - 1);
  }
  double value(uint32_t row, uint32_t k) const {
    const uint32_t all = element(row, k), mantissa = all & ((1u << mantissa_bits) - 1);
    const int exponent = static_cast<int>(all >> mantissa_bits & ((1u << exponent_bits) - 1));
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double fraction = std::ldexp(mantissa, -static_cast<int>(mantissa_bits));
    const double size =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return all >> (bits() - 1) != 0 ? -size : size;
  }
  /// In a byte of its own.
  uint8_t byte(uint32_t row, uint32_t k) const {
    return static_cast<uint8_t>(bits() == 4 ? element(row, k) << 2 : element(row, k));
  }
};

enum Way { stored, expanded, in_shared_memory };
enum NarrowBug { narrow_none, not_copied, transposed_a };

/// out = A B^T of 128 x 32 rows of 32 elements. A comes to tensor memory by stores of `bytes`, or
/// by a copy that expands `packed`, or stays in shared memory. `packed` has 16 elements in every 16
/// bytes, of which `used` are written. The bytes of A that the copy brings then go to `seen`.
__global__ void narrow_product(const char* packed, const uint32_t* bytes, const char* b, float* out,
                               float* seen, uint32_t type, uint32_t used, int way, int bug) {
  char* smem = dynamic_shared<char>();
  char* tile_b = smem + 128 * 32;
  auto* done = reinterpret_cast<uint64_t*>(tile_b + 32 * 32);
  const uint32_t d = set_up(done, 1, 64), a = d + 32;
  for (uint32_t i = 0; i < 32; ++i) {
    if (i % 16 < used)
      smem[(i / 16 * 128 + threadIdx.x) * 16 + i % 16] = packed[threadIdx.x * 32 + i];
  }
  fill_shared(tile_b, b, 32 * 32);
  uint32_t r[32];
  if (way == stored) {
    for (uint32_t i = 0; i < 8; ++i) r[i] = bytes[threadIdx.x * 8 + i];
    simt::tmem_store(a + (threadIdx.x / 32 * 32 << 16), r, TmemShape::s32x32b, 8);
    simt::tmem_wait_store();
    simt::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    simt::tcgen05_fence_after_thread_sync();
    if (way == expanded && bug != not_copied) {
      simt::tcgen05_cp(a, plain_descriptor(smem, 128), simt::TmemCopy::c128x256b, 1,
                       used == 8 ? simt::TmemExpand::b4x16_p64 : simt::TmemExpand::b6x16_p32);
    }
    MmaOptions options = kOne;
    options.kind = MmaKind::f8f6f4;
    uint32_t shape = 1u << 4 | type << 7 | 32 / 8 << 17 | 128 / 16 << 24;
    if (bug == transposed_a) shape |= 1u << 15;
    const uint64_t desc_b = plain_descriptor(tile_b, 32);
    if (way == in_shared_memory) {
      simt::tcgen05_mma(d, plain_descriptor(smem, 128), desc_b, shape, false, options);
    } else {
      simt::tcgen05_mma_tmem(d, a, desc_b, shape, false, options);  // [narrow]
    }
    simt::tcgen05_commit(done, 1);
  }
  read_lane(done, d, r);
  for (uint32_t n = 0; n < 32; ++n) out[threadIdx.x * 32 + n] = __uint_as_float(r[n]);
  if (way == expanded && bug == narrow_none) {
    simt::tmem_load(r, a + (threadIdx.x / 32 * 32 << 16), TmemShape::s32x32b, 8);
    simt::tmem_wait_load();
    simt::tcgen05_fence_before_thread_sync();
    for (uint32_t k = 0; k < 32; ++k) {
      seen[threadIdx.x * 32 + k] = static_cast<float>(r[k / 4] >> (8 * (k % 4)) & 0xff);
    }
  }
  give_back(d, 64);
}

TEST(Tcgen05, NarrowElements) {
  for (const Narrow& type : {Narrow{"e2m1", 5, 2, 1}, {"e2m3", 3, 2, 3}, {"e3m2", 4, 3, 2}}) {
    SCOPED_TRACE(type.name);
    std::vector<char> packed(128 * 32), b(32 * 32);
    std::vector<uint32_t> bytes(128 * 8);
    for (uint32_t row = 0; row < 128; ++row) {
      for (uint32_t k = 0; k < 32; ++k) {
        bytes[row * 8 + k / 4] |= uint32_t{type.byte(row, k)} << (8 * (k % 4));
        for (uint32_t bit = 0; bit < type.bits(); ++bit) {
          const uint32_t to = k % 16 * type.bits() + bit;
          char& at = packed[row * 32 + k / 16 * 16 + to / 8];
          at = static_cast<char>(at | (type.element(row, k) >> bit & 1) << (to % 8));
        }
        if (row >= 32) continue;
        b[(k / 16 * 32 + row) * 16 + k % 16] =
            static_cast<char>(__nv_fp8_e4m3(b_at(0, row, k)).__x);
      }
    }
    DeviceMemory seen(128 * 32 * sizeof(float), "seen");
    const auto run = [&](int way, int bug) {
      return report_of(128 * 32, [&](DeviceMemory& out) {
        const DeviceMemory from = upload(packed, "packed"), words = upload(bytes, "bytes"),
                           at_b = upload(b, "b");
        run_kernel(narrow_product, {1, 128, (128 + 32) * 32 + 64}, from, words, at_b, out, seen,
                   type.code, 2 * type.bits(), way, bug);
      });
    };
    for (const int way : {stored, in_shared_memory, expanded}) {
      expect_right([&] { return run(way, narrow_none); },
                   [&](size_t i) {
                     double sum = 0;
                     for (uint32_t k = 0; k < 32; ++k) {
                       sum += type.value(static_cast<uint32_t>(i / 32), k) *
                              b_at(0, static_cast<uint32_t>(i % 32), k);
                     }
                     return sum;
                   });
    }
    const auto there = download<float>(seen);
    for (uint32_t i = 0; i < there.size(); ++i) {
      ASSERT_EQ(there[i], static_cast<float>(type.byte(i / 32, i % 32))) << "element " << i;
    }
    expect_parts(run(expanded, not_copied).text,
                 {"uninitialised: ", "tensor memory", at("narrow")});
    expect_parts(run(stored, transposed_a).text,
                 {"with these types has no transposed", at("narrow")});
  }
}

enum HalvedBug { halved_none, one_copy, copies_differ, odd_lane_of_a };

/// out = A B^T of 128 x 64 rows of 16, of a pair: each block has half of the rows of both, and its
/// rows of A twice, for either half of the columns.
__global__ void halved_product(const uint32_t* a, const char* b, float* out, int bug) {
  char* smem = dynamic_shared<char>();
  auto* done = reinterpret_cast<uint64_t*>(smem + 32 * 32);
  const uint32_t rank = cluster_block_rank(), half = threadIdx.x / 64;
  const uint32_t row = rank * 64 + threadIdx.x % 64;
  const uint32_t d = set_up(done, 1, 64, 2), at_a = d + 32;
  fill_shared(smem, b + rank * 32 * 32, 32 * 32);
  uint32_t r[32];
  for (uint32_t i = 0; i < 8; ++i) {
    r[i] = a[row * 8 + i];
    if (bug == copies_differ && half == 1) r[i] ^= 0x80008000u;  // their signs
  }
  if (bug != one_copy || half == 0) {
    simt::tmem_store(at_a + (threadIdx.x / 32 * 32 << 16), r, TmemShape::s32x32b, 8);
  }
  simt::tmem_wait_store();
  simt::tcgen05_fence_before_thread_sync();
  cluster_sync();
  if (threadIdx.x == 0 && rank == 0) {
    simt::tcgen05_fence_after_thread_sync();
    const uint32_t from = at_a + (bug == odd_lane_of_a ? 64 << 16 : 0);
    const uint64_t desc_b = plain_descriptor(smem, 32);
    simt::tcgen05_mma_tmem(d, from, desc_b, instruction(128, 64), false, kPair);  // [halved]
    simt::tcgen05_commit_multicast(done, 3, 2);
  }
  read_lane(done, d, r);
  for (uint32_t n = 0; n < 32; ++n) out[row * 64 + half * 32 + n] = __uint_as_float(r[n]);
  __syncthreads();
  if (threadIdx.x < 32) simt::tmem_dealloc(d, 64, 2);
  cluster_sync();
}

TEST(Tcgen05, AnOperandInTensorMemoryOfAHalvedPair) {
  std::vector<uint32_t> a(128 * 8);
  std::vector<char> b(64 * 32);
  for (uint32_t k = 0; k < 16; ++k) {
    const auto bits_of = [](float value) {
      const bf16 element = __float2bfloat16(value);
      uint16_t bits;
      std::memcpy(&bits, static_cast<const void*>(&element), 2);
      return bits;
    };
    for (uint32_t m = 0; m < 128; ++m) {
      a[m * 8 + k / 2] |= uint32_t{bits_of(a_at(0, m, k))} << (16 * (k % 2));
    }
    for (uint32_t n = 0; n < 64; ++n) {
      const uint16_t bits = bits_of(b_at(0, n, k));
      std::memcpy(&b[n / 32 * 1024 + k / 8 * 512 + n % 32 * 16 + k % 8 * 2], &bits, 2);
    }
  }
  const auto run = [&](int bug) {
    return report_of(128 * 64, [&](DeviceMemory& out) {
      const DeviceMemory at_a = upload(a, "a"), at_b = upload(b, "b");
      run_kernel(halved_product, {2, 128, 32 * 32 + 64, 2}, at_a, at_b, out, bug);
    });
  };
  for (const int bug : {halved_none, copies_differ}) {
    SCOPED_TRACE(bug);
    expect_right([&] { return run(bug); },
                 [&](size_t i) {
                   double sum = 0;
                   for (uint32_t k = 0; k < 16; ++k) {
                     sum += a_at(0, static_cast<uint32_t>(i / 64), k) *
                            b_at(0, static_cast<uint32_t>(i % 64), k);
                   }
                   return bug == copies_differ && i % 64 >= 32 ? -sum : sum;
                 });
  }
  expect_parts(run(one_copy).text, {"uninitialised: ", "tensor memory", at("halved")});
  expect_parts(run(odd_lane_of_a).text,
               {"A in tensor memory begins at lane 64, D at 0", at("halved")});
}

// ---- fences between warps ---------------------------------------------------------------------

/// out = 2 A B^T of ones: an mma of thread 0, then one of thread 32. `missing`: its fence.
__global__ void two_multiply(float* out, int missing) {
  char* smem = dynamic_shared<char>();
  auto* first = reinterpret_cast<uint64_t*>(smem + (128 + 32) * 32);
  uint64_t* second = first + 1;
  const uint32_t d = set_up(first, 2, 32);
  for (uint32_t i = threadIdx.x; i < (128 + 32) * 16; i += 128) {
    reinterpret_cast<uint16_t*>(smem)[i] = 0x3f80;
  }
  fence_proxy_async();
  __syncthreads();
  const uint64_t a = plain_descriptor(smem, 128), b = plain_descriptor(smem + 128 * 32, 32);
  if (threadIdx.x == 0) {
    simt::tcgen05_mma(d, a, b, instruction(128, 32), false, kOne);  // [first mma]
    simt::tcgen05_commit(first, 1);
  }
  if (threadIdx.x == 32) {
    mbarrier_wait(first, 0);
    if (missing == 0) simt::tcgen05_fence_after_thread_sync();
    simt::tcgen05_mma(d, a, b, instruction(128, 32), true, kOne);  // [second mma]
    simt::tcgen05_commit(second, 1);
  }
  uint32_t r[32];
  read_lane(second, d, r);
  for (uint32_t n = 0; n < 32; ++n) out[threadIdx.x * 32 + n] = __uint_as_float(r[n]);
  give_back(d, 32);
}

TEST(Tcgen05, AFenceBetweenTwoWarpsThatMultiply) {
  const auto run = [](int missing) {
    return report_of(128 * 32, [missing](DeviceMemory& out) {
      run_kernel(two_multiply, {1, 128, (128 + 32) * 32 + 64}, out, missing);
    });
  };
  expect_right([&] { return run(0); }, [](size_t) { return 32; });
  const std::string advised = run(1).text;
  expect_parts(advised,
               {"advice: ", "an asynchronous operation of thread (32,0,0)", at("second mma"),
                "thread (0,0,0)", at("first mma"), "no tcgen05.fence::after_thread_sync"});
  EXPECT_EQ(advised.find("race"), std::string::npos) << advised;
}

/// Blocks of one and a half warps. In block `rank`, warp 0 stores and thread `issuer` copies over
/// that, without the fence of a store that another warp's copy needs.
__global__ void one_and_a_half_warps(uint32_t rank, uint32_t issuer) {
  char* smem = dynamic_shared<char>();
  auto* done = reinterpret_cast<uint64_t*>(smem + 512);
  const uint32_t d = set_up(done, 1, 32);
  for (uint32_t i = threadIdx.x; i < 512; i += 48) smem[i] = 0;
  fence_proxy_async();
  const uint32_t zeros[4] = {};
  if (threadIdx.x < 32 && cluster_block_rank() == rank) {
    simt::tmem_store(d, zeros, TmemShape::s32x32b, 4);  // [by the whole warp]
    simt::tmem_wait_store();
  }
  __syncthreads();
  if (cluster_block_rank() == rank) {
    if (threadIdx.x == issuer) {
      simt::tcgen05_fence_after_thread_sync();
      const uint64_t from = plain_descriptor(smem, 32);
      simt::tcgen05_cp(d, from, simt::TmemCopy::c32x128b, 1);  // [by one lane]
      simt::tcgen05_commit(done, 1);
    }
    mbarrier_wait(done, 0);
  }
  give_back(d, 32);
  cluster_sync();
}

TEST(Tcgen05, WarpsOfTwoBlocksAreNotOne) {
  for (const uint32_t rank : {0, 1}) {
    const auto run = [rank](uint32_t issuer) {
      return report_of(1,
                       [=](DeviceMemory&) {
                         run_kernel(one_and_a_half_warps, {2, 48, 512 + 64, 2}, rank, issuer);
                       })
          .text;
    };
    SCOPED_TRACE(rank);
    EXPECT_EQ(run(0), "");
    expect_parts(run(32), {"advice: ", at("by one lane"), at("by the whole warp"),
                           "no tcgen05.fence::before_thread_sync"});
  }
}

// ---- cluster launch control -------------------------------------------------------------------

enum ClcBug {
  clc_none,
  fenced_by_readers,  // right, too
  unfenced_answer,
  decodes_failure,
  asks_again,
  reuses_unordered
};

/// out[tile] = tile, by however many blocks start.
__global__ void steal(float* out, int bug) {
  char* smem = dynamic_shared<char>();
  auto* answer = reinterpret_cast<uint64_t*>(smem);
  uint64_t* bar = answer + 2;
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  uint32_t tile = blockIdx.x;
  for (uint32_t phase = 0;; phase ^= 1) {
    if (threadIdx.x == 0) {
      if (bug != unfenced_answer && bug != fenced_by_readers) fence_proxy_async();
      simt::clc_try_cancel(answer, bar, false);  // [try]
      mbarrier_arrive_expect_tx(bar, 16);
    }
    if (threadIdx.x < 32) out[tile * 32 + threadIdx.x] = static_cast<float>(tile);
    mbarrier_wait(bar, phase);
    const uint64_t low = answer[0], high = answer[1];  // [decode]
    if (bug == fenced_by_readers) fence_proxy_async();
    const bool granted = simt::clc_is_canceled(low, high);
    if (granted || bug == decodes_failure) tile = simt::clc_first_block(low, high).x;  // [first]
    if (bug != reuses_unordered) __syncthreads();
    if (!granted && bug != asks_again) break;
  }
}

Report run_steal(int bug) {
  return report_of(size_t{7} * 32, [bug](DeviceMemory& out) {
    run_kernel(steal, {7, 64, 64}, out, bug);
  });
}

TEST(Clc, EveryTileIsWorkedOnOnce) {
  for (const ClcBug right : {clc_none, fenced_by_readers}) {
    expect_right([&] { return run_steal(right); },
                 [](size_t i) { return static_cast<double>(i / 32); });
  }
}

/// Block 0 asks for the whole cluster, of which block 1 has come to its end.
__global__ void ask_for_two() {
  char* smem = dynamic_shared<char>();
  auto* bar = reinterpret_cast<uint64_t*>(smem + 16);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(bar, 16);
  }
  cluster_sync();
  if (cluster_block_rank() == 1) return;
  if (threadIdx.x == 0) simt::clc_try_cancel(smem, bar, true);  // [try two]
  mbarrier_wait(bar, 0);
}

TEST(Clc, PlantedBugs) {
  const Report two = report_of(1, [](DeviceMemory&) { run_kernel(ask_for_two, {2, 32, 64, 2}); });
  expect_parts(two.text, {"block 1 of the cluster has exited", at("try two")});
  expect_parts(run_steal(unfenced_answer).text,
               {"proxy: ", "read", at("decode"), at("try"), "with no fence_proxy_async() between"});
  expect_parts(run_steal(decodes_failure).text,
               {"get_first_ctaid of a request that failed", at("first")});
  expect_parts(run_steal(asks_again).text,
               {"after an earlier request was seen to have failed", at("try")});
  expect_parts(run_steal(reuses_unordered).text, {"race: ", at("decode"), at("try")});
}

}  // namespace
}  // namespace cookbook
