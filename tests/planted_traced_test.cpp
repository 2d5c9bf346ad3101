// SPDX-License-Identifier: MIT
// Planted bugs that only the tracer sees: a lucky schedule gives the right result all the same.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "common/backend/simt/units/tcgen05.hpp"
#include "common/device/bulk_add.cuh"
#include "common/harness/run/traced.hpp"
#include "tests/ended_run.hpp"
#include "tests/on_device.hpp"
#include "tests/planted/product.hpp"
#include "tests/planted/reverse.hpp"
#include "tests/planted/small_types.hpp"
#include "tests/traced_level.hpp"

namespace cookbook::planted {
namespace {

TracedRun trace_first(const Ladder& ladder, const Size& size) {
  Instance instance(ladder, size, InputKind::normal, 1);
  return trace_level(ladder.levels[0], instance);
}
template <Bug kBug>
TracedRun trace(const Size& size = {4, 64}) {
  return trace_first(reverse_ladder<kBug>(), size);
}

std::string messages(const TracedRun& run) {
  std::string text;
  for (const FoundFault& finding : run.findings) text += finding.message + "\n";
  return text;
}

void expect_found(const TracedRun& run, Fault fault, const std::string& words) {
  for (const FoundFault& finding : run.findings) {
    if (finding.fault == fault && finding.message.find(words) != std::string::npos) return;
  }
  ADD_FAILURE() << "no finding '" << fault_name(fault) << "' with '" << words << "' among "
                << messages(run);
}

TEST(PlantedTraced, TheRightKernelHasNoFindingAndItsClaimsHold) {
  const TracedRun run = trace<Bug::none>();
  EXPECT_TRUE(run.findings.empty()) << messages(run);
  ASSERT_EQ(run.claims.size(), 2u);
  for (const ClaimResult& claim : run.claims) EXPECT_EQ(claim.holds, true) << claim.claim.text;
}

TEST(PlantedTraced, TypesOfOneByteAreCounted) {
  const Ladder ladder = small_types::ladder<small_types::Bug::none>();
  const TracedRun run = trace_first(ladder, ladder.trace_size);
  EXPECT_EQ(run.check.status, CheckResult::Status::ok) << run.check.reason;
  EXPECT_TRUE(run.findings.empty()) << messages(run);
  ASSERT_EQ(run.claims.size(), 5u);
  for (const ClaimResult& claim : run.claims) {
    EXPECT_EQ(claim.holds, true) << claim.claim.text << ": " << claim.measured;
  }
}

TEST(PlantedTraced, MissingBarrier) {
  expect_found(trace<Bug::missing_barrier>(), Fault::race, "reverse.cu:");
}
TEST(PlantedTraced, MissingWarpBarrier) {
  expect_found(trace<Bug::missing_warp_barrier>({4, 32}), Fault::race, "reverse.cu:");
}
TEST(PlantedTraced, RaceBetweenTwoWarps) {
  expect_found(trace<Bug::race_between_two_warps>(), Fault::race, "thread (40,0,0)");
}
TEST(PlantedTraced, UninitialisedShared) {
  expect_found(trace<Bug::uninitialised_shared>(), Fault::uninitialised, "reverse.cu:");
}
TEST(PlantedTraced, OutOfBoundsLoad) {
  expect_found(trace<Bug::out_of_bounds_load>(), Fault::out_of_bounds,
               "thread (0,0,0) reads 4 bytes");
  expect_found(trace<Bug::out_of_bounds_load>(), Fault::out_of_bounds, "of 'in'");
}

template <ProductBug kBug>
TracedRun trace_product() {
  return trace_first(product_ladder<kBug>(), {32, 16, 192});
}

TEST(PlantedTraced, TheRightProductHasNoFinding) {
  const TracedRun run = trace_product<ProductBug::none>();
  EXPECT_TRUE(run.findings.empty()) << messages(run);
  EXPECT_EQ(run.check.status, CheckResult::Status::ok) << run.check.reason;
}
TEST(PlantedTraced, MissingWait) {
  expect_found(trace_product<ProductBug::missing_wait>(), Fault::race, "product.cu:");
}
TEST(PlantedTraced, StageUsedTooEarly) {
  expect_found(trace_product<ProductBug::stage_used_too_early>(), Fault::race, "product.cu:");
}

// Four blocks add 1 to every element.
struct SumsProblem {
  static SumsProblem make(const Size&, const Variant&) { return {}; }
  std::vector<TensorSpec> tensors() const {
    return {{"sums", DType::f32, 1, 16, 16, Role::in_out}};
  }
  double bytes() const { return 128; }
  double flops() const { return 0; }
  void reference_row(const HostTensors& at, const std::string&, std::int64_t, double* value,
                     double* bound) const {
    for (int x = 0; x < 16; ++x) value[x] = at["sums"].at(0, x) + 4, bound[x] = 1e-5;
  }
};
struct SumsBuffers {
  float* sums;
  static SumsBuffers bind(const DevicePointers& at) { return {at.get<float>("sums")}; }
};
__global__ void add_ones(float* sums) {
  float* ones = dynamic_shared<float>();
  if (threadIdx.x < 16) ones[threadIdx.x] = 1;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store_add(sums, ones, 16);
    tma_store_commit();
    tma_store_wait<0>();
  }
}
template <bool kSays>
struct AddsInAnyOrder : LevelOf<SumsProblem, SumsBuffers> {
  static constexpr LevelText text{.name = "adds_in_any_order"};
  static constexpr bool same_every_run = kSays;
  static void run(const Plan& plan, Stream stream) {
    launch(add_ones, {4, 32, 64}, stream, plan.buffers.sums);
  }
};

// Bulk reductions of several blocks to one place: a level that claims the same bytes in every run
// is found although its result is right.
TEST(PlantedTraced, BulkAdditionsWithoutAnOrder) {
  Ladder ladder = ladder_over<SumsProblem>("sums", "sums += 4", {"n"});
  ladder.levels = rows<AddsInAnyOrder<true>>();
  const TracedRun run = trace_first(ladder, {16});
  EXPECT_EQ(run.check.status, CheckResult::Status::ok) << run.check.reason;
  expect_found(run, Fault::runs_differ, "add to byte offset 0 of 'sums' by bulk reductions");
  ladder.levels = rows<AddsInAnyOrder<false>>();
  const TracedRun honest = trace_first(ladder, {16});
  EXPECT_TRUE(honest.findings.empty()) << messages(honest);
}

// The same by one block: warp 4 adds what warp 0 has stored in its lanes of tensor memory.
template <bool kFenced>
__global__ void add_from_tensor_memory(float* sums) {
  auto* address = dynamic_shared<uint32_t>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) simt::tmem_alloc(address, 32, 1);
  __syncthreads();
  uint32_t four = __float_as_uint(4.0f);
  if (warp == 0) {
    simt::tmem_store(*address, &four, simt::TmemShape::s32x32b, 1);
    simt::tmem_wait_store();
    simt::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();
  if (warp == 4) {
    if (kFenced) simt::tcgen05_fence_after_thread_sync();
    simt::tmem_load(&four, *address, simt::TmemShape::s32x32b, 1);
    simt::tmem_wait_load();
    if (lane < 16) sums[lane] += __uint_as_float(four);
  }
  __syncthreads();
  if (warp == 0) simt::tmem_dealloc(*address, 32, 1);
}
template <bool kFenced>
struct AddsFromTensorMemory : LevelOf<SumsProblem, SumsBuffers> {
  static constexpr LevelText text{.name = "adds_from_tensor_memory"};
  static void run(const Plan& plan, Stream stream) {
    launch(add_from_tensor_memory<kFenced>, {1, 160, 64}, stream, plan.buffers.sums);
  }
};

// A level of the book follows all advice, although it is right without.
TEST(PlantedTraced, AdviceFailsALevel) {
  const OnDevice device("b200");
  Ladder ladder = ladder_over<SumsProblem>("sums", "sums += 4", {"n"});
  ladder.levels = rows<AddsFromTensorMemory<true>>();
  expect_right(trace_first(ladder, {16}), "{16}", "./run");
  ladder.levels = rows<AddsFromTensorMemory<false>>();
  const TracedRun run = trace_first(ladder, {16});
  EXPECT_EQ(run.check.status, CheckResult::Status::ok) << run.check.reason;
  EXPECT_TRUE(run.findings.empty()) << messages(run);
  EXPECT_NONFATAL_FAILURE(expect_right(run, "{16}", "./run"),
                          "no tcgen05.fence::after_thread_sync");
}

TEST(PlantedTraced, AWrongClaimIsFalse) {
  Ladder ladder = reverse_ladder<Bug::none>();
  ladder.levels[0].claims = [](const AnyProblem&) {
    return Claims{global_loads("in").sectors_per_request(32),
                  shared_loads().wavefronts_per_request(4),
                  global_stores("nothing_of_that_name").coalesced(),
                  global_stores("nothing_of_that_name").bytes(1e9, Relation::at_most)};
  };
  const TracedRun run = trace_first(ladder, {4, 64});
  ASSERT_EQ(run.claims.size(), 4u);
  for (const ClaimResult& claim : run.claims) EXPECT_EQ(claim.holds, false) << claim.claim.text;
  EXPECT_EQ(run.claims[0].measured, "4");
  EXPECT_EQ(run.claims[2].measured, "no such access");  // not vacuously true
  EXPECT_EQ(run.claims[3].measured, "no such access");
}

// A claim that nothing has checked is not one that holds: here the tracer has not run the level.
TEST(PlantedTraced, AnUncheckedClaimFailsAnExercise) {
  Chapter chapter = chapter_of({reverse_ladder<Bug::none>()});
  chapter.exercises[0].claims = [](const AnyProblem&) {
    return Claims{global_loads("in").coalesced(), faster_than_previous(1.1)};
  };
  chapter.exercises[0].supports = [](const AnyProblem&, const DeviceInfo&) {
    return Support::no("not today");
  };
  const EndedRun ended = run_with_json(chapter, {"--exercise", "1"});
  EXPECT_EQ(ended.status, 1);
  const auto& checks = ended.json.at("checks");
  ASSERT_EQ(checks.size(), 2u) << checks;
  EXPECT_EQ(checks[0].at("reason"), "not today");
  EXPECT_EQ(checks[1].at("passed"), false);
  EXPECT_EQ(checks[1].at("reason"), "was not checked");
  EXPECT_EQ(checks[1].at("fault"), "not-counted");
}

}  // namespace
}  // namespace cookbook::planted
