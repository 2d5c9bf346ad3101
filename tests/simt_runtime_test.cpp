// SPDX-License-Identifier: MIT
// The SIMT runtime itself: launches, barriers, warp collectives, atomics, memory, and the errors it
// must find.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/runtime/settings.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/sync.hpp"
#include "common/device/cuda.cuh"
#include "tests/kernel_runs.hpp"
#include "tests/parity/kernels.cuh"
#include "tests/text.hpp"

namespace cookbook {
namespace {

constexpr unsigned kFull = 0xffffffffu;

// ---- kernels ----

template <int kTile>
__global__ void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += kTile) {
    const int ka = k0 + threadIdx.x, kb = k0 + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0;
    tile_b[threadIdx.y][threadIdx.x] = kb < k && column < n ? b[kb * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

__global__ void write_indices(uint3* thread, uint3* block) {
  const dim3 extent = blockDim;
  const unsigned in_block = threadIdx.x + extent.x * (threadIdx.y + extent.y * threadIdx.z);
  const unsigned block_id = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned i = block_id * extent.x * extent.y * extent.z + in_block;
  thread[i] = threadIdx;
  block[i] = blockIdx;
}

__global__ void shuffles(int* out) {
  const int lane = threadIdx.x;
  out[0 * 32 + lane] = __shfl_sync(kFull, lane, 5);
  out[1 * 32 + lane] = __shfl_sync(kFull, lane, 3, 8);
  out[2 * 32 + lane] = __shfl_up_sync(kFull, lane, 2, 16);
  out[3 * 32 + lane] = __shfl_down_sync(kFull, lane, 3, 8);
  out[4 * 32 + lane] = __shfl_xor_sync(kFull, lane, 17);
  out[5 * 32 + lane] = static_cast<int>(__shfl_sync(kFull, lane * 0.5, lane + 1) * 2);
  out[6 * 32 + lane] = static_cast<int>(float(__shfl_xor_sync(kFull, half(float(lane)), 1)));
  out[7 * 32 + lane] = __shfl_xor_sync(kFull, lane, 8, 8);
}

__global__ void collectives(unsigned* out) {
  const int lane = threadIdx.x;
  out[0 * 32 + lane] = __ballot_sync(kFull, lane % 3 == 0);
  out[1 * 32 + lane] = __any_sync(kFull, lane == 7) + 2 * __all_sync(kFull, lane < 32) +
                       4 * __all_sync(kFull, lane != 7);
  out[2 * 32 + lane] = __match_any_sync(kFull, lane % 4);
  int all_equal = -1;
  out[3 * 32 + lane] = __match_all_sync(kFull, 42, &all_equal) + all_equal;
  out[4 * 32 + lane] = __reduce_add_sync(kFull, lane);
  out[5 * 32 + lane] = __reduce_min_sync(kFull, lane - 16);
  out[6 * 32 + lane] = __reduce_max_sync(kFull, static_cast<unsigned>(lane - 16));
  out[7 * 32 + lane] = __reduce_xor_sync(kFull, 1u << lane);
  // Two halves of the warp meet separately, in different order.
  if (lane < 16) {
    out[8 * 32 + lane] = __reduce_add_sync(0x0000ffffu, 1u) + __ballot_sync(0x0000ffffu, 1);
  } else {
    out[8 * 32 + lane] = __ballot_sync(0xffff0000u, 1) + __reduce_add_sync(0xffff0000u, 2u);
  }
}

__global__ void exited_lanes_are_ignored(int* out) {
  const int lane = threadIdx.x;
  if (lane >= 20) return;
  out[lane] = __popc(__ballot_sync(kFull, 1));
  __syncwarp();
  __syncthreads();
}

__global__ void block_votes(int* out) {
  const int count = __syncthreads_count(threadIdx.x < 70);
  const int all = __syncthreads_and(threadIdx.x < 1000), any = __syncthreads_or(threadIdx.x == 99);
  if (threadIdx.x == 5) out[0] = count, out[1] = all, out[2] = any;
}

__global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, half2* h) {
  const int id = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&i[0], 1);
  atomicMax(&i[1], id);
  atomicMin(&i[2], -id);
  atomicOr(&u[0], 1u << (id % 32));
  atomicInc(&u[1], 9);
  atomicCAS(&u[2], 0u, 77u);
  atomicAdd(l, 1ull << 33);
  atomicAdd(f, 0.5f);
  atomicAdd(h, __floats2half2_rn(1.0f, 2.0f));
}

__global__ void dynamic_shared_values(unsigned* out) {
  unsigned* shared = dynamic_shared<unsigned>();
  if (threadIdx.x == 0) {
    out[0] = shared[0];
    out[1] = static_cast<unsigned>(reinterpret_cast<uintptr_t>(shared) % 1024);
    out[2] = static_cast<unsigned>(__cvta_generic_to_shared(shared + 1) -
                                   __cvta_generic_to_shared(shared));
    out[3] = __cvta_shared_to_generic(__cvta_generic_to_shared(shared + 3)) == shared + 3;
    shared[0] = 1;
  }
}

// Every block waits for a flag that only the last block sets.
__global__ void grid_flag(int* flag, int* seen) {
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) atomicExch(flag, 1);
  while (*static_cast<volatile int*>(flag) == 0) __nanosleep(20);
  if (threadIdx.x == 0) seen[blockIdx.x] = 1;
}

__global__ void spin_forever(volatile int* flag) {
  while (*flag == 0) __nanosleep(20);
}

__global__ void cluster_exchange(int* out) {
  int* mine = dynamic_shared<int>();
  simt::Block* block = simt::current_thread->block;
  if (threadIdx.x == 0) *mine = 100 + static_cast<int>(blockIdx.x);
  simt::cluster_barrier_arrive(nullptr);
  simt::cluster_barrier_wait(nullptr);
  const unsigned neighbour = (block->rank + 1) % block->group->block_count;
  const int value = *reinterpret_cast<int*>(block->group->blocks[neighbour]->shared);
  if (threadIdx.x == 0) out[blockIdx.x] = value;
  simt::cluster_barrier_arrive(nullptr);
  simt::cluster_barrier_wait(nullptr);
}

// A producer warp passes numbers to a consumer warp through one word, with two named barriers.
__global__ void named_barriers(int* out, int rounds) {
  int* slot = dynamic_shared<int>();
  constexpr unsigned kFilled = 1, kEmpty = 2, kThreads = 64;
  if (threadIdx.x < 32) {
    for (int i = 0; i < rounds; ++i) {
      simt::barrier_sync(kEmpty, kThreads, "bar.sync", nullptr);
      if (threadIdx.x == 0) *slot = i;
      simt::barrier_arrive(kFilled, kThreads, nullptr);
    }
  } else {
    simt::barrier_arrive(kEmpty, kThreads, nullptr);
    for (int i = 0; i < rounds; ++i) {
      simt::barrier_sync(kFilled, kThreads, "bar.sync", nullptr);
      if (threadIdx.x == 32) out[i] = *slot;
      if (i + 1 < rounds) simt::barrier_arrive(kEmpty, kThreads, nullptr);
    }
  }
}

__global__ void deadlock(int* out) {
  if (threadIdx.x < 64) {
    __syncthreads();
  } else if (threadIdx.x < 96) {
    simt::barrier_sync(3, 128, "bar.sync", __builtin_return_address(0));
  }
  out[threadIdx.x] = 1;
}

__global__ void not_in_mask() {
  if (threadIdx.x == 3) __shfl_sync(0x1u, 1, 0);
}

__global__ void different_operations() {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __ballot_sync(kFull, 1);
  }
}

__global__ void overrun_shared() { dynamic_shared<char>()[100] = 1; }

__global__ void fail_in_block(unsigned block) {
  if (blockIdx.x >= block && threadIdx.x == 9) __trap();
}

__global__ void overflow_buffer(float* data, int index) { data[index] = 1; }

__global__ void crash(int* pointer) {
  if (blockIdx.x == 1 && threadIdx.x == 7) *pointer = 1;
}

template <class A, class B>
struct Pair {};
using Pairs4 = Pair<Pair<int, int>, Pair<int, int>>;
using Pairs16 = Pair<Pair<Pairs4, Pairs4>, Pair<Pairs4, Pairs4>>;
using Pairs64 = Pair<Pair<Pairs16, Pairs16>, Pair<Pairs16, Pairs16>>;

// A name of more than 512 characters.
template <class T>
__global__ void crash_with_long_name(int* pointer) {
  *pointer = sizeof(T);
}

#if defined(__x86_64__)  // aarch64 divides by zero without a signal
__global__ void divide(int* out, int divisor) { out[threadIdx.x] = 1000 / divisor; }
#endif

__attribute__((noinline)) int recurse(volatile char* above, int depth) {
  volatile char frame[4096];
  frame[0] = above[0];
  if (depth == 0) return frame[0];
  return recurse(frame, depth - 1) + frame[0];
}
__global__ void deep_recursion(int* out, int depth) {
  volatile char start[1] = {1};
  out[0] = recurse(start, depth);
}

__global__ void record_deferred(int* out) {
  if (threadIdx.x == 0) simt::defer([out] { *out = 1; });
  __syncthreads();
  if (threadIdx.x == 1) out[1] = *out;
}

__global__ void print_and_assert(int n) {
  assert(n == 3);
  if (threadIdx.x == 0) printf("block %u of %u\n", blockIdx.x, gridDim.x);
}

// ---- launches ----

TEST(SimtRuntime, CopiesOddSizes) {
  for (int n : {1, 31, 257, 1000}) {
    std::vector<float> values(4 * n);
    std::iota(values.begin(), values.end(), 0.0f);
    const DeviceMemory in = upload(values, "in");
    DeviceMemory out(in.bytes(), "out");
    run_kernel(parity::copy_coalesced<float4>, {dim3((n + 255) / 256), dim3(256)}, in, out, n);
    EXPECT_EQ(download<float>(out), values);
    EXPECT_TRUE(out.guards_intact());
  }
}

TEST(SimtRuntime, IndicesOfThreeDimensions) {
  const dim3 grid(3, 2, 2), block(5, 3, 2);
  const unsigned count = 12 * 30;
  DeviceMemory thread(count * sizeof(uint3), "thread"), blocks(count * sizeof(uint3), "block");
  run_kernel(write_indices, {grid, block}, thread, blocks);
  const auto t = download<uint3>(thread), b = download<uint3>(blocks);
  for (unsigned i = 0; i < count; ++i) {
    EXPECT_EQ(t[i].x, i % 5);
    EXPECT_EQ(t[i].y, i / 5 % 3);
    EXPECT_EQ(t[i].z, i / 15 % 2);
    EXPECT_EQ(b[i].x, i / 30 % 3);
    EXPECT_EQ(b[i].y, i / 90 % 2);
    EXPECT_EQ(b[i].z, i / 180);
  }
}

TEST(SimtRuntime, TiledProductMatchesForAnyNumberOfWorkers) {
  const int m = 70, n = 45, k = 51;
  std::vector<float> a(m * k), b(k * n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i * 5 % 13) - 6);
  std::vector<float> expected(m * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int l = 0; l < k; ++l) expected[i * n + j] += a[i * k + l] * b[l * n + j];
  const DeviceMemory da = upload(a, "a"), db = upload(b, "b");
  for (int workers : {1, 2, 3}) {
    simt::set_workers(workers);
    DeviceMemory dc(m * n * sizeof(float), "c");
    run_kernel(sgemm<16>, {dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)}, da, db, dc, m, n, k);
    EXPECT_EQ(download<float>(dc), expected);
  }
  simt::set_workers(2);
}

TEST(SimtRuntime, ReductionWithShufflesAndAtomics) {
  std::vector<float> values(10000, 1.0f);
  const DeviceMemory in = upload(values, "in");
  DeviceMemory out = upload(std::vector<float>{0}, "out");
  run_kernel(parity::reduce<8>, {7, 256}, in, out, 10000);
  EXPECT_EQ(download<float>(out)[0], 10000.0f);
}

TEST(SimtRuntime, Atomics) {
  DeviceMemory i = upload(std::vector<int>{0, 0, 0}, "i");
  DeviceMemory u = upload(std::vector<unsigned>{0, 0, 0}, "u");
  DeviceMemory l = upload(std::vector<unsigned long long>{0}, "l");
  DeviceMemory f = upload(std::vector<float>{0}, "f");
  DeviceMemory h = upload(std::vector<unsigned>{0}, "h");
  run_kernel(atomics, {8, 128}, i, u, l, f, h);
  EXPECT_EQ(download<int>(i), (std::vector<int>{1024, 1023, -1023}));
  EXPECT_EQ(download<unsigned>(u), (std::vector<unsigned>{kFull, 4, 77}));
  EXPECT_EQ(download<unsigned long long>(l)[0], 1024ull << 33);
  EXPECT_EQ(download<float>(f)[0], 512.0f);
  unsigned bits = download<unsigned>(h)[0];
  EXPECT_EQ(simt::half_bits_to_float(static_cast<uint16_t>(bits)), 1024.0f);
  EXPECT_EQ(simt::half_bits_to_float(static_cast<uint16_t>(bits >> 16)), 2048.0f);
}

TEST(SimtRuntime, CooperativeGridWaitsForAFlag) {
  const unsigned blocks = static_cast<unsigned>(device_info().sm_count) * 2;
  DeviceMemory flag = upload(std::vector<int>{0}, "flag");
  DeviceMemory seen = upload(std::vector<int>(blocks, 0), "seen");
  run_kernel(grid_flag, {dim3(blocks), dim3(64), 0, 1, true}, flag, seen);
  EXPECT_EQ(download<int>(seen), std::vector<int>(blocks, 1));
}

TEST(SimtRuntime, ClusterReadsItsNeighboursSharedMemory) {
  DeviceMemory out(8 * sizeof(int), "out");
  run_kernel(cluster_exchange, {8, 96, 64, 4}, out);
  EXPECT_EQ(download<int>(out), (std::vector<int>{101, 102, 103, 100, 105, 106, 107, 104}));
}

TEST(SimtRuntime, NamedBarriersHandOver) {
  const int rounds = 20;
  DeviceMemory out(rounds * sizeof(int), "out");
  run_kernel(named_barriers, {1, 64, 16}, out, rounds);
  std::vector<int> expected(rounds);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(download<int>(out), expected);
}

TEST(SimtRuntime, DynamicSharedMemoryIsPoisonedAndAligned) {
  DeviceMemory out(4 * sizeof(unsigned), "out");
  for (int i = 0; i < 2; ++i) {
    run_kernel(dynamic_shared_values, {3, 32, 100}, out);
    EXPECT_EQ(download<unsigned>(out), (std::vector<unsigned>{kFull, 0, 4, 1}));
  }
}

TEST(SimtRuntime, EmptyGridLaunchesNothing) {
  run_kernel(fail_in_block, {0, 32}, 0u);
  run_kernel(fail_in_block, {dim3(1, 0), dim3(32)}, 0u);
}

// ---- warps ----

TEST(SimtRuntime, ShufflesHonourWidth) {
  DeviceMemory out(8 * 32 * sizeof(int), "out");
  run_kernel(shuffles, {1, 32}, out);
  const auto got = download<int>(out);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[0 * 32 + lane], 5);
    EXPECT_EQ(got[1 * 32 + lane], lane / 8 * 8 + 3);
    EXPECT_EQ(got[2 * 32 + lane], lane % 16 < 2 ? lane : lane - 2);
    EXPECT_EQ(got[3 * 32 + lane], lane % 8 + 3 < 8 ? lane + 3 : lane);
    EXPECT_EQ(got[4 * 32 + lane], lane ^ 17);
    EXPECT_EQ(got[5 * 32 + lane], (lane + 1) % 32);
    EXPECT_EQ(got[6 * 32 + lane], lane ^ 1);
    EXPECT_EQ(got[7 * 32 + lane], (lane ^ 8) <= (lane | 7) ? lane ^ 8 : lane);
  }
}

TEST(SimtRuntime, VotesMatchesAndReductions) {
  DeviceMemory out(9 * 32 * sizeof(unsigned), "out");
  run_kernel(collectives, {1, 32}, out);
  const auto got = download<unsigned>(out);
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[0 * 32 + lane], 0x49249249u);
    EXPECT_EQ(got[1 * 32 + lane], 3u);
    EXPECT_EQ(got[2 * 32 + lane], 0x11111111u << lane % 4);
    EXPECT_EQ(got[3 * 32 + lane], kFull + 1);
    EXPECT_EQ(got[4 * 32 + lane], 496u);
    EXPECT_EQ(static_cast<int>(got[5 * 32 + lane]), -16);
    EXPECT_EQ(got[6 * 32 + lane], kFull);
    EXPECT_EQ(got[7 * 32 + lane], kFull);
    EXPECT_EQ(got[8 * 32 + lane], lane < 16 ? 0xffffu + 16 : 0xffff0000u + 32);
  }
}

TEST(SimtRuntime, ExitedLanesAndThreadsAreIgnored) {
  DeviceMemory out(20 * sizeof(int), "out");
  run_kernel(exited_lanes_are_ignored, {1, 64}, out);
  for (int value : download<int>(out)) EXPECT_GE(value, 20);
}

TEST(SimtRuntime, BlockVotes) {
  DeviceMemory out(3 * sizeof(int), "out");
  run_kernel(block_votes, {1, 100}, out);
  EXPECT_EQ(download<int>(out), (std::vector<int>{70, 1, 1}));
}

// ---- launches that are rejected ----

TEST(SimtRuntime, RefusesWhatAGpuRefuses) {
  const auto message = [](const LaunchConfig& config) {
    return error_of<LaunchError>([&] { run_kernel(fail_in_block, config, 1000000u); });
  };
  EXPECT_CONTAINS(message({1, 1025}), "1025 x 1 x 1 threads");
  EXPECT_CONTAINS(message({1, 1025}), "fail_in_block");
  EXPECT_CONTAINS(message({dim3(1), dim3(1, 1, 65)}), "z at most 64");
  EXPECT_CONTAINS(message({1, 0}), "1 to 1024 threads");
  EXPECT_CONTAINS(message({dim3(1, 65536), dim3(1)}), "65535");
  EXPECT_CONTAINS(message({1, 32, 232449}), "at most 232448");
  EXPECT_CONTAINS(message({32, 32, 0, 17}), "1 to 16");
  EXPECT_CONTAINS(message({9, 32, 0, 2}), "not a multiple");
  EXPECT_CONTAINS(message({9, 1024, 0, 1, true}), "8 are resident");
  EXPECT_EQ(message({8, 1024, 0, 1, true}), "");
  EXPECT_EQ(message({16, 32, 232448, 16}), "");
}

// More dynamic shared memory would reach the addresses of static shared memory.
TEST(SimtRuntime, SharedMemoryFitsItsWindow) {
  const auto message = [](const char* bytes) {
    setenv("COOKBOOK_SIMT_SMEM_BYTES", bytes, 1);
    const std::string text = error_of<std::runtime_error>(simt::check_environment);
    unsetenv("COOKBOOK_SIMT_SMEM_BYTES");
    return text;
  };
  EXPECT_EQ(message("260096"), "");
  EXPECT_EQ(message("260097"),
            "COOKBOOK_SIMT_SMEM_BYTES takes a whole number from 1 to 260096; got '260097'");
}

// ---- errors in kernels ----

TEST(SimtRuntime, DeadlockNamesWhoWaitsWhere) {
  DeviceMemory out(256 * sizeof(int), "out");
  const std::string text = launch_error(deadlock, {1, 128}, out);
  EXPECT_CONTAINS(text, "deadlock in block (0,0,0): threads 0..63 wait in __syncthreads at ");
  EXPECT_CONTAINS(text, "simt_runtime_test.cpp:");
  EXPECT_CONTAINS(text, "threads 64..95 wait in bar.sync");
  EXPECT_CONTAINS(text, "threads 96..127 exited");
  // The runtime still works after an abandoned launch.
  run_kernel(block_votes, {1, 100}, out);
  EXPECT_EQ(download<int>(out)[0], 70);
}

TEST(SimtRuntime, WarpMisuse) {
  const std::string mask = launch_error(not_in_mask, {1, 32});
  EXPECT_CONTAINS(mask, "lane 3 is not in its own mask 0x00000001");
  EXPECT_CONTAINS(mask, "thread (3,0,0)");
  EXPECT_CONTAINS(launch_error(different_operations, {1, 32}), "different operations");
}

TEST(SimtRuntime, SharedMemoryOverrun) {
  EXPECT_CONTAINS(launch_error(overrun_shared, {1, 1, 100}),
                  "100 bytes of dynamic shared memory, at offset 100");
}

TEST(SimtRuntime, FirstFailingBlockIsReported) {
  for (int workers : {1, 2, 4}) {
    simt::set_workers(workers);
    EXPECT_CONTAINS(launch_error(fail_in_block, {50, 32}, 20u), "block (20,0,0), thread (9,0,0)");
  }
  simt::set_workers(2);
}

TEST(SimtRuntime, EndlessSpinIsAnError) {
  DeviceMemory flag = upload(std::vector<int>{0}, "flag");
  setenv("COOKBOOK_SIMT_SPIN_SECONDS", "1", 1);
  EXPECT_CONTAINS(launch_error(spin_forever, {3, 32}, flag),
                  "only spins: block (0,0,0): threads 0..31 spin at simt_runtime_test.cpp:");
}

#if defined(__x86_64__)
__device__ __noinline__ void store_16_bytes(float* out) {
  typedef float Four __attribute__((vector_size(16)));
  *reinterpret_cast<volatile Four*>(out) = Four{};
}
__global__ void store_misaligned(float* out) { store_16_bytes(out + 1); }
#endif

__global__ void store_far_outside(int* out) { out[1 << 20] = 1; }

// The kernel ends the process, which names the crash.
#define EXPECT_CRASH(LAUNCH, MESSAGE) \
  EXPECT_EXIT(LAUNCH, testing::ExitedWithCode(simt::kCrashStatus), MESSAGE)

TEST(SimtRuntimeDeathTest, CrashNamesBlockAndThread) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_CRASH(run_kernel(crash, {2, 32}, nullptr),
               "block \\(1,0,0\\), thread \\(7,0,0\\).*crash at simt_runtime");
  EXPECT_CRASH(run_kernel(crash_with_long_name<Pairs64>, {1, 1}, nullptr),
               "kernel [^ ]*crash_with_long_name<.{512}.*> at simt_runtime");
  DeviceMemory out(128, "out");
  EXPECT_CRASH(run_kernel(deep_recursion, {1, 1}, out, 100), "stack overflow.*deep_recursion at");
  EXPECT_CRASH(run_kernel(print_and_assert, {2, 2}, 4),
               "assertion.*print_and_assert at simt_runtime_test.cpp:");
  EXPECT_CRASH(run_kernel(store_far_outside, {1, 1}, out),
               "not mapped.*store_far_outside at simt_runtime_test.cpp:");
#if defined(__x86_64__)
  EXPECT_CRASH(
      run_kernel(store_misaligned, {1, 1}, out),
      "error: misaligned access of 16 bytes.*thread \\(0,0,0\\), kernel .*store_misaligned "
      "at simt_runtime_test.cpp:.* .called at simt_runtime_test.cpp:");
  EXPECT_CRASH(run_kernel(divide, {1, 1}, out, 0), "division by zero");
#endif
}

__global__ void loop_without_increment(volatile int* out, int n) {
  for (int i = threadIdx.x == 7 ? 0 : n; i < n;) out[i] = 1;
}
__global__ void barrier_in_an_endless_loop(const volatile int* flag) {
  while (*flag == 0) __syncthreads();
}

// A loop that calls nothing and one that goes through barriers: in neither does a thread finish.
TEST(SimtRuntimeDeathTest, AHangNamesWhereEveryThreadIs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  DeviceMemory out = upload(std::vector<int>{0}, "out");
  simt::set_time_limit(1);
  EXPECT_CRASH(
      run_kernel(loop_without_increment, {2, 32}, out, 1),
      "loop_without_increment: no thread has finished for 1 s .*: block \\(0,0,0\\): threads "
      "0..6 exited; thread 7 runs at simt_runtime_test.cpp:[0-9]+; threads 8..31 are ready");
  EXPECT_CRASH(run_kernel(barrier_in_an_endless_loop, {1, 64}, out),
               "no thread has finished for 1 s .*wait in __syncthreads at simt_runtime_test.cpp:");
  simt::set_time_limit(60);
}

// The thread that launches and one for each other worker, which the next launch uses again.
TEST(SimtRuntimeDeathTest, ThereAreAsManyThreadsAsWorkers) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<int>(std::distance(begin(tasks), end(tasks)));
  };
  // In a process of its own, in which nothing has been launched.
  EXPECT_EXIT(
      {
        DeviceMemory out = upload(std::vector<float>(32), "out");
        const auto run = [&](int workers) {
          simt::set_workers(workers);
          run_kernel(overflow_buffer, {8, 1}, out, 1);
        };
        run(1);
        const int before = threads();
        run(3);
        run(2);
        const int three = threads() - before;
        run(5);
        std::exit(10 * three + threads() - before);
      },
      testing::ExitedWithCode(24), "");
}

cpu_set_t only(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return one;
}

// An endless loop of ordinary priority, for some time, on the CPU of a thread that has the lowest.
class Hog {
 public:
  explicit Hog(std::chrono::milliseconds time) : time_(time) {}
  ~Hog() { thread_.join(); }

  // Gives way to the hog until it ends. Returns the share of its time in which this thread ran.
  double give_way() {
    cpu_set_t all;
    const sched_param none{};
    const int cpu = sched_getcpu();
    const cpu_set_t one = only(cpu);
    sched_getaffinity(0, sizeof(all), &all);
    sched_setaffinity(0, sizeof(one), &one);
    sched_setscheduler(0, SCHED_IDLE, &none);
    const double before = cpu_seconds();
    cpu_ = cpu;
    while (!done_) {
    }
    const double ran = cpu_seconds() - before;
    sched_setaffinity(0, sizeof(all), &all);
    return ran / std::chrono::duration<double>(time_).count();
  }

 private:
  static double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  void run() {
    while (cpu_ < 0) std::this_thread::yield();
    const cpu_set_t one = only(cpu_);
    sched_setaffinity(0, sizeof(one), &one);
    const auto end = std::chrono::steady_clock::now() + time_;
    while (std::chrono::steady_clock::now() < end) {
    }
    done_ = true;
  }

  const std::chrono::milliseconds time_;
  std::atomic<int> cpu_{-1};
  std::atomic<bool> done_{false};
  std::thread thread_{[this] { run(); }};
};

__global__ void give_way_to(Hog* hog) { hog->give_way(); }

// The worker gets next to nothing of its CPU for twice the time limit, and then ends.
TEST(SimtRuntimeDeathTest, AWorkerThatWaitsForItsCpuIsNotHung) {
  double share = 1;
  std::thread([&share] { share = Hog(std::chrono::milliseconds(400)).give_way(); }).join();
  if (share > 0.1) GTEST_SKIP() << "no thread can be kept from its CPU here: it had " << share;
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  simt::set_time_limit(1);
  // In a process of its own: the worker stays as it is.
  EXPECT_EXIT(
      {
        Hog hog(std::chrono::milliseconds(2000));
        run_kernel(give_way_to, {1, 1}, &hog);
        std::fputs("the kernel ended", stderr);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "the kernel ended");
  simt::set_time_limit(60);
}

// ---- asynchronous operations ----

TEST(SimtRuntime, DeferredOperationsFollowTheSchedule) {
  const auto check = [] {
    DeviceMemory out = upload(std::vector<int>{0, -1}, "out");
    run_kernel(record_deferred, {1, 32}, out);
    const auto got = download<int>(out);
    EXPECT_EQ(got[0], 1);
    if (simt::async_schedule() != simt::AsyncSchedule::random) {
      EXPECT_EQ(got[1], simt::async_schedule() == simt::AsyncSchedule::early);
    }
  };
  for_all_schedules(check, {3});
}

// ---- memory ----

TEST(SimtRuntime, DeviceMemoryGuardsAndRegistry) {
  DeviceMemory memory(100 * sizeof(float), "values", 4);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 256, 4u);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  ASSERT_NE(simt::find_allocation(address + 399), nullptr);
  EXPECT_EQ(simt::find_allocation(address + 399)->name, "values");
  EXPECT_EQ(simt::find_allocation(address + 400), nullptr);
  EXPECT_EQ(simt::find_allocation(address - 1), nullptr);
  ASSERT_NE(simt::find_nearest_allocation(address + 400, 64), nullptr);
  ASSERT_NE(simt::find_nearest_allocation(address - 1, 64), nullptr);
  EXPECT_EQ(simt::find_nearest_allocation(address + 500, 64), nullptr);
  ASSERT_NE(simt::find_nearest_allocation(address + 463, 64), nullptr);
  EXPECT_EQ(simt::find_nearest_allocation(address + 464, 64), nullptr);
  ASSERT_NE(simt::find_nearest_allocation(address - 64, 64), nullptr);
  EXPECT_EQ(simt::find_nearest_allocation(address - 65, 64), nullptr);
  run_kernel(overflow_buffer, {1, 1}, memory, 99);
  EXPECT_TRUE(memory.guards_intact());
  run_kernel(overflow_buffer, {1, 1}, memory, 100);
  EXPECT_FALSE(memory.guards_intact());
  DeviceMemory other(64, "other");
  run_kernel(overflow_buffer, {1, 1}, other, -1);
  EXPECT_FALSE(other.guards_intact());
  DeviceMemory moved = std::move(memory);
  EXPECT_EQ(moved.name(), "values");
  EXPECT_EQ(memory.data(), nullptr);
  float value = 0;
  moved.copy_to_host(&value, 4, 396);
  EXPECT_EQ(error_of<std::out_of_range>([&] { moved.copy_to_host(&value, 4, 397); }),
            "copy of 4 bytes at offset 397 of buffer values, which has 400");
  EXPECT_EQ(error_of<std::out_of_range>([&] { moved.copy_from_host(&value, 8, 393); }),
            "copy of 8 bytes at offset 393 of buffer values, which has 400");
  moved = DeviceMemory();
  EXPECT_EQ(simt::find_allocation(address), nullptr);
}

TEST(SimtRuntime, TheNearerOfTwoBuffersIsFound) {
  const auto at = [](uintptr_t address) { return reinterpret_cast<const void*>(address); };
  const auto name = [](uintptr_t address) {
    const simt::Allocation* found = simt::find_nearest_allocation(address, 200);
    return found ? found->name : "";
  };
  simt::register_memory(at(1000), 100, "first");
  simt::register_memory(at(1200), 100, "second");
  EXPECT_EQ(name(999), "first");
  EXPECT_EQ(name(1099), "first");
  EXPECT_EQ(name(1149), "first");   // 50 past its end, 51 before the other
  EXPECT_EQ(name(1150), "second");  // 51 and 50
  EXPECT_EQ(name(1151), "second");  // 52 past the end, 49 before the other
  EXPECT_EQ(name(1200), "second");
  EXPECT_EQ(name(1499), "second");
  EXPECT_EQ(name(1500), "");
  simt::unregister_memory(at(1200));
  EXPECT_EQ(name(1151), "first");
  simt::register_memory(at(1201), 100, "third");
  EXPECT_EQ(name(1150), "third");  // 51 and 51: the one above
  simt::unregister_memory(at(1201));
  simt::unregister_memory(at(1000));
  EXPECT_EQ(name(1099), "");
}

// ---- 16-bit types ----

TEST(SimtTypes, EveryHalfSurvivesTheRoundTrip) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = simt::half_bits_to_float(static_cast<uint16_t>(bits));
    const float bf16_value = simt::bf16_bits_to_float(static_cast<uint16_t>(bits));
    if (value == value) {
      EXPECT_EQ(simt::float_to_half_bits(value), bits);
    } else {
      EXPECT_EQ(simt::float_to_half_bits(value), 0x7fff);
    }
    if (bf16_value == bf16_value) {
      EXPECT_EQ(simt::float_to_bf16_bits(bf16_value), bits);
    }
  }
}

TEST(SimtTypes, RoundsToNearestEven) {
  const auto round_half = [](double v) { return float(half(v)); };
  // Against the definition: the nearer of the two neighbours, the even one in a tie.
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const double low = simt::half_bits_to_float(static_cast<uint16_t>(bits));
    const double high = simt::half_bits_to_float(static_cast<uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    EXPECT_EQ(round_half(middle), bits % 2 == 0 ? low : high);
    EXPECT_EQ(round_half(std::nextafter(middle, 0.0)), low);
    EXPECT_EQ(round_half(std::nextafter(middle, 1e9)), high);
    EXPECT_EQ(float(half(static_cast<float>(middle))), bits % 2 == 0 ? low : high);
  }
  EXPECT_EQ(round_half(65519.996), 65504.0f);
  EXPECT_EQ(round_half(65520.0), std::numeric_limits<float>::infinity());
  EXPECT_EQ(round_half(-1e30), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(float(bf16(1.00390625f)), 1.0f);  // a tie: to even
  EXPECT_EQ(float(bf16(1.01171875f)), 1.015625f);
  EXPECT_EQ(float(bf16(std::numeric_limits<float>::max())), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float(bf16(std::nanf("")))));
  EXPECT_EQ(bf16(std::nanf("")).bits, 0x7fff);
}

TEST(SimtTypes, ArithmeticAndPairs) {
  static_assert(sizeof(half2) == 4 && alignof(half2) == 4 && sizeof(__nv_bfloat162) == 4);
  static_assert(sizeof(float4) == 16 && alignof(float4) == 16 && alignof(float2) == 8);
  const half2 a = __floats2half2_rn(1.5f, -2.0f), b = __float2half2_rn(4.0f);
  EXPECT_EQ(__half22float2(__hfma2(a, b, a)).x, 7.5f);
  EXPECT_EQ(__half22float2(__hmax2(a, b)).y, 4.0f);
  EXPECT_EQ(__half22float2(__h2div(b, a)).y, -2.0f);
  EXPECT_EQ(float(half(2048.0f) + half(1.0f)), 2048.0f);
  const __nv_bfloat162 c = __floats2bfloat162_rn(3.0f, 5.0f);
  EXPECT_EQ(__bfloat1622float2(c * c + c).y, 30.0f);
  EXPECT_EQ(__low2float(c), 3.0f);
  EXPECT_EQ(__brev(1u), 0x80000000u);
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0x7250u), 0x77225500u);
  EXPECT_EQ(max(1, 2.5f), 2.5f);
  EXPECT_EQ(min(std::nanf(""), 1.0f), 1.0f);
}

// ---- names and speed ----

TEST(SimtRuntime, KernelNames) {
  EXPECT_EQ(simt::kernel_name(reinterpret_cast<void*>(&sgemm<16>)), "sgemm<16>");
  EXPECT_EQ(simt::kernel_name(reinterpret_cast<void*>(&shuffles)), "shuffles");
}

TEST(SimtRuntime, TiledProductIsFastEnoughToBeUsable) {
  const int size = 256;
  const DeviceMemory a = upload(std::vector<float>(size * size, 1.0f), "a");
  DeviceMemory c(a.bytes(), "c");
  simt::set_workers(1);
  const std::clock_t start = std::clock();  // CPU time: other processes do not count
  run_kernel(sgemm<16>, {dim3(size / 16, size / 16), dim3(16, 16)}, a, a, c, size, size, size);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  simt::set_workers(2);
  RecordProperty("milliseconds", static_cast<int>(seconds * 1e3));
  EXPECT_EQ(download<float>(c)[size + 1], 256.0f);
  EXPECT_LT(seconds, 5.0);  // generous: only a broken scheduler takes this long
}

}  // namespace
}  // namespace cookbook
