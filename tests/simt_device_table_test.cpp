// SPDX-License-Identifier: MIT
// The table of model devices: its values, instructions that a kernel cannot execute there, and
// levels whose `supports` accepts too much, which must be found.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/device/cluster.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/mma.cuh"
#include "common/device/mma_scaled.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"
#include "tests/kernel_runs.hpp"
#include "tests/on_device.hpp"
#include "tests/text.hpp"

namespace cookbook {
namespace {

TEST(DeviceTable, SaysWhatTheDevicesHave) {
  EXPECT_EQ(simt::device_names(), (std::vector<std::string>{"t4", "a100", "rtx3090", "rtx4090",
                                                            "h100", "h200", "b200", "rtx5090"}));
  {
    const OnDevice device("T4");  // in capitals or not
    EXPECT_EQ(device_info().name, "SIMT model of T4, cc 7.5");
  }
  EXPECT_EQ(device_info().name, "SIMT model of cc 9.0a");  // the environment's again
  EXPECT_EQ(device_info().sm_count, 4);
  EXPECT_EQ(device_info().smem_per_block_bytes, 232448u);
}

// As NVIDIA's documents have them: device, capability, SMs, KB of shared memory per block and per
// SM, threads and blocks per SM, MB of L2, GB of memory.
TEST(DeviceTable, EveryValue) {
  const struct {
    const char *name, *product;
    int cc, sms;
    size_t block_kb, sm_kb;
    unsigned threads, blocks;
    size_t l2_mb, memory_gb;
  } devices[] = {{"t4", "T4", 75, 40, 64, 64, 1024, 16, 4, 16},
                 {"a100", "A100", 80, 108, 163, 164, 2048, 32, 40, 80},
                 {"rtx3090", "RTX 3090", 86, 82, 99, 100, 1536, 16, 6, 24},
                 {"rtx4090", "RTX 4090", 89, 128, 99, 100, 1536, 24, 72, 24},
                 {"h100", "H100", 90, 132, 227, 228, 2048, 32, 50, 80},
                 {"h200", "H200", 90, 132, 227, 228, 2048, 32, 50, 141},
                 {"b200", "B200", 100, 148, 227, 228, 2048, 32, 126, 180},
                 {"rtx5090", "RTX 5090", 120, 170, 99, 100, 1536, 24, 96, 32}};
  const auto host_bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const auto& one : devices) {
    SCOPED_TRACE(one.name);
    const OnDevice device(one.name);
    const DeviceInfo& info = device_info();
    EXPECT_EQ(info.name, std::string("SIMT model of ") + one.product + ", cc " +
                             std::to_string(one.cc / 10) + "." + std::to_string(one.cc % 10) +
                             (one.cc == 90 ? "a" : ""));
    EXPECT_EQ(info.cc(), one.cc);
    EXPECT_EQ(info.sm_count, one.sms);
    EXPECT_EQ(info.smem_per_block_bytes, one.block_kb << 10);
    EXPECT_EQ(simt::sm_limits().reserved_shared_bytes, (one.sm_kb - one.block_kb) << 10);
    EXPECT_EQ(simt::sm_limits().threads, one.threads);
    EXPECT_EQ(simt::sm_limits().blocks, one.blocks);
    EXPECT_EQ(info.l2_bytes, one.l2_mb << 20);
    EXPECT_EQ(info.memory_bytes, std::min(host_bytes, one.memory_gb * 1'000'000'000));
  }
  EXPECT_EQ(simt::sm_limits().threads, 2048u);  // the default: an H100 with four SMs
  EXPECT_EQ(simt::sm_limits().blocks, 32u);
  EXPECT_EQ(simt::sm_limits().reserved_shared_bytes, 1024u);
  EXPECT_EQ(device_info().l2_bytes, 50u << 20);
  EXPECT_EQ(device_info().memory_bytes, host_bytes);
}

TEST(DeviceTable, VariablesOverrideSingleValues) {
  setenv("COOKBOOK_SIMT_DEVICE", "Rtx4090", 1);
  setenv("COOKBOOK_SIMT_SMS", "7", 1);
  simt::set_device("");
  EXPECT_EQ(device_info().name, "SIMT model of RTX 4090, cc 8.9");
  EXPECT_EQ(device_info().sm_count, 7);
  EXPECT_EQ(device_info().l2_bytes, 72u << 20);
  unsetenv("COOKBOOK_SIMT_SMS");
  simt::set_device("");
  EXPECT_EQ(device_info().sm_count, 128);
  unsetenv("COOKBOOK_SIMT_DEVICE");
  simt::set_device("");
}

TEST(DeviceTable, AChapterMayAskForAnotherModel) {
  simt::set_model_capability(100);
  EXPECT_EQ(device_info().cc(), 100);
  EXPECT_EQ(device_info().sm_count, 4);
  simt::set_device("h200");  // a device that is named is what it is
  EXPECT_EQ(device_info().cc(), 90);
  simt::set_device("");
  EXPECT_EQ(device_info().cc(), 100);
  simt::set_model_capability(0);
  EXPECT_EQ(device_info().cc(), 90);
}

TEST(DeviceTable, AnUnknownDeviceIsOneLineWithAll) {
  EXPECT_EQ(error_of<std::runtime_error>([] { simt::set_device("h300"); }),
            "COOKBOOK_SIMT_DEVICE takes t4, a100, rtx3090, rtx4090, h100, h200, b200, "
            "rtx5090; got 'h300'");
  EXPECT_EQ(device_info().cc(), 90);  // as before
}

// A cooperative grid of as many blocks as fit at once is accepted, and one of one more is rejected.
TEST(DeviceTable, ResidentBlocks) {
  // What chapter 1's notes say of block sizes: 32 threads per block do not fill an SM.
  for (const unsigned threads : {64, 128, 256, 512, 1024}) {
    EXPECT_EQ(simt::resident_blocks_per_sm(0, threads) * threads, 2048u);
  }
  EXPECT_EQ(simt::resident_blocks_per_sm(0, 32) * 32, 1024u);
  const auto refused = [](unsigned blocks, size_t smem_bytes) {
    const RunningBlocks none(simt::RunBlocks::none);
    const LaunchConfig config{dim3(blocks), dim3(256), smem_bytes, 1, true};
    return error_of<LaunchError>([&] {
             run_kernel(
                 +[](int) {}, config, 0);
           }) != "";
  };
  const OnDevice device("rtx3090");  // 82 SMs, of 1,536 threads and 100 KB each
  EXPECT_FALSE(refused(82 * 6, 0));
  EXPECT_TRUE(refused(82 * 6 + 1, 0));
  EXPECT_FALSE(refused(82 * 2, 49 << 10));
  EXPECT_TRUE(refused(82 * 2 + 1, 49 << 10));
}

// ---- instructions ----

void bf16_product(float* out) {
  const uint32_t a[4] = {}, b[2] = {};
  float d[4] = {};
  mma_m16n8k16<bf16>(d, a, b);
  out[threadIdx.x] = d[0];
}
template <int kPair, int kLane, int kByte>
void scaled_product(float* out) {
  const uint32_t a[4] = {}, b[2] = {};
  float d[4] = {};
  mma_m16n8k32_mxfp8(d, a, b, 0x7f7f7f7f, kPair, 0x7f7f7f7f, kLane, kByte);
  out[threadIdx.x] = d[0];
}
void barrier(float*) {
  auto* bar = dynamic_shared<uint64_t>();
  if (threadIdx.x == 0) mbarrier_init(bar, blockDim.x);
  __syncthreads();
  mbarrier_arrive(bar);
  mbarrier_wait(bar, 0);
}
void transaction(float*) {
  auto* bar = dynamic_shared<uint64_t>();
  if (threadIdx.x != 0) return;
  mbarrier_init(bar, 1);
  mbarrier_arrive_expect_tx(bar, 0);
}
void bulk_copy(float* out) {
  if (threadIdx.x != 0) return;
  bulk_store(out, dynamic_shared<float>(), 16);
  tma_store_commit();
  tma_store_wait<0>();
}
void proxy(float*) { fence_proxy_async(); }
void warpgroup(float*) { wgmma_fence(); }
void sum_of_lanes(float*) { __reduce_add_sync(0xffffffffu, 1u); }
void asynchronous_copy(float* out) {
  cp_async<4>(dynamic_shared<float>() + threadIdx.x, out + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
}

std::string execute(void (*kernel)(float*), const std::string& device_name) {
  const OnDevice device(device_name);
  DeviceMemory out(128 * sizeof(float), "out");
  return error_of([&] { run_kernel(kernel, {dim3(1), dim3(128), 1024}, out); });
}

TEST(DeviceTable, AnInstructionThatTheDeviceLacksIsNamed) {
  struct Instruction {
    void (*kernel)(float*);
    const char* first;    // device that has it ...
    const char* without;  // ... and one that does not
    const char* needs;
  };
  for (const Instruction& i : {
           Instruction{bf16_product, "a100", "t4", "needs sm_80; this is the SIMT model of T4"},
           Instruction{barrier, "a100", "t4", "mbarrier_init needs sm_80"},
           Instruction{transaction, "h100", "rtx4090", "mbarrier_arrive_expect_tx needs sm_90"},
           Instruction{bulk_copy, "rtx5090", "rtx4090", "bulk_store needs sm_90"},
           Instruction{proxy, "b200", "rtx4090", "fence_proxy_async needs sm_90"},
           Instruction{warpgroup, "h200", "b200", "wgmma needs sm_90a, which only cc 9.0 has"},
           Instruction{warpgroup, "h200", "a100", "wgmma needs sm_90a"},
           Instruction{scaled_product<1, 3, 3>, "rtx5090", "b200",
                       "mma.sync with block scales needs sm_120a"},
           Instruction{sum_of_lanes, "a100", "t4", "__reduce_sync needs sm_80"},
       }) {
    EXPECT_EQ(execute(i.kernel, i.first), "") << i.needs;
    const std::string error = execute(i.kernel, i.without);
    EXPECT_CONTAINS(error, i.needs);
    EXPECT_CONTAINS(error, "simt_device_table_test.cpp:");
  }
  EXPECT_EQ(execute(asynchronous_copy, "t4"), "");  // an ordinary copy there
}

TEST(DeviceTable, SelectorsOfScalesThatDoNotExistAreNamed) {
  EXPECT_CONTAINS(execute(scaled_product<2, 0, 0>, "rtx5090"), "thread-id of A is 2");
  EXPECT_CONTAINS(execute(scaled_product<0, 4, 0>, "rtx5090"), "thread-id of B is 4");
  EXPECT_CONTAINS(execute(scaled_product<0, 0, 4>, "rtx5090"),
                  "scale_vec::1X of A cannot begin at byte 4");
}

// ---- planted levels: `supports` accepts what the device rejects ----

struct Nothing {
  static Nothing make(const Size&, const Variant&) { return {}; }
  std::vector<TensorSpec> tensors() const {
    return {{"out", DType::f32, 1, 128, 128, Role::output}};
  }
  double bytes() const { return 1; }
  double flops() const { return 0; }
  void reference_row(const HostTensors&, const std::string&, std::int64_t, double*, double*) const {
  }
};
struct Out {
  float* out;
  static Out bind(const DevicePointers& at) { return {at.get<float>("out")}; }
};

template <bool kChecks>
struct Greedy : LevelOf<Nothing, Out> {
  static constexpr LevelText text{.name = "greedy"};
  static constexpr std::size_t kBytes = 128 << 10;
  static Support supports(const Nothing&, const DeviceInfo& device) {
    if (!kChecks || device.smem_per_block_bytes >= kBytes) return Support::yes();
    return Support::no("needs 128 KB of shared memory");
  }
  static void run(const Plan& plan, Stream stream) {
    launch(asynchronous_copy, {dim3(1), dim3(128), kBytes}, stream, plan.buffers.out);
  }
};

template <bool kChecks>
struct Product : LevelOf<Nothing, Out> {
  static constexpr LevelText text{.name = "product"};
  static Support supports(const Nothing&, const DeviceInfo& device) {
    return !kChecks || device.cc() >= 80 ? Support::yes() : Support::no("needs sm_80");
  }
  static void run(const Plan& plan, Stream stream) {
    launch(bf16_product, {dim3(1), dim3(128), 1024}, stream, plan.buffers.out);
  }
};

TEST(DeviceTable, ALevelThatAcceptsTooMuchIsFound) {
  const ProblemHolder<Nothing> problem(Nothing{});
  const SparseTensors tensors(problem);
  const auto complaint = [&](const LevelEntry& level, const char* name, bool expect_supported) {
    const OnDevice device(name);
    bool supported = !expect_supported;
    const std::string text = device_complaint(level, problem, tensors.pointers(), &supported);
    EXPECT_EQ(supported, expect_supported) << level.name << " on " << name;
    return text;
  };
  EXPECT_CONTAINS(complaint(make_level<Greedy<false>>(), "rtx4090", true), "at most 101376");
  EXPECT_EQ(complaint(make_level<Greedy<true>>(), "rtx4090", false), "");
  EXPECT_EQ(complaint(make_level<Greedy<true>>(), "a100", true), "");
  EXPECT_CONTAINS(complaint(make_level<Product<false>>(), "t4", true), "needs sm_80");
  EXPECT_EQ(complaint(make_level<Product<true>>(), "t4", false), "");
  EXPECT_EQ(complaint(make_level<Product<true>>(), "rtx3090", true), "");
}

}  // namespace
}  // namespace cookbook
