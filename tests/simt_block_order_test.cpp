// SPDX-License-Identifier: MIT
// Which accesses of two blocks a flag in global memory orders: each right kernel beside the wrong
// ones that differ from it in one place. Compiled as kernels are for tracing.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "common/device/cuda.cuh"
#include "common/device/sync.cuh"
#include "tests/traced.hpp"

namespace cookbook {
namespace {

constexpr int kThreads = 64;

/// All that these kernels use: zeros at the start.
struct Memory {
  int data[2][kThreads];
  int flag[4];
  int other;
  int sink[kThreads];
};

__device__ void wait_for(int* flag, int value) {
  while (*static_cast<volatile int*>(flag) < value) spin_pause();
}

enum class Give { right, fences_of_all, no_barrier, block_fence, no_fence, plain_flag };

/// Block 0 fills data[0], block 1 reads all of it.
template <Give kGive>
__global__ void hand_over(Memory* m) {
  const int c = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0) {
    m->data[0][c] = c;
    if (kGive == Give::fences_of_all) __threadfence();
    if (kGive != Give::no_barrier) __syncthreads();
    if (c == 0) {
      if (kGive == Give::block_fence) __threadfence_block();
      if (kGive != Give::no_fence && kGive != Give::block_fence && kGive != Give::fences_of_all) {
        __threadfence();
      }
      if (kGive == Give::plain_flag) {
        m->flag[0] = 1;
      } else {
        atomicAdd(&m->flag[0], 1);
      }
    }
  } else {
    if (c == 0) wait_for(&m->flag[0], 1);
    __syncthreads();
    m->sink[c] = m->data[0][kThreads - 1 - c];
  }
}

enum class Take { right, no_barrier, no_wait, other_flag };

/// As before. Where the reader goes wrong.
template <Take kTake>
__global__ void take_over(Memory* m) {
  const int c = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0) {
    m->data[0][c] = c;
    __syncthreads();
    if (c == 0) store_release(&m->flag[0], 1);
  } else {
    if (c == 0) {
      if (kTake == Take::other_flag) store_release(&m->flag[1], load_acquire(&m->flag[2]) + 1);
      const bool waits = kTake == Take::right || kTake == Take::no_barrier;
      while (waits && load_acquire(&m->flag[0]) == 0) spin_pause();
    }
    if (kTake != Take::no_barrier) __syncthreads();
    m->sink[c] = m->data[0][c];
  }
}

/// Block b hands on to block b + 1, and the last one reads what the first one wrote.
template <bool kFences>
__global__ void chain(Memory* m) {
  if (threadIdx.x != 0) return;
  const int b = static_cast<int>(blockIdx.x);
  if (b == 0) m->data[0][0] = 1;
  if (b > 0) wait_for(&m->flag[b - 1], 1);
  if (b == 3) m->sink[0] = m->data[0][0];
  if (kFences || b == 0) __threadfence();
  atomicExch(&m->flag[b], 1);
}

/// Every block counts itself; the last one resets the counter and reads what all have written.
template <bool kFences>
__global__ void count_blocks(Memory* m) {
  if (threadIdx.x != 0) return;
  m->data[0][blockIdx.x] = 1;
  if (kFences) __threadfence();
  if (atomicAdd(&m->flag[0], 1) != static_cast<int>(gridDim.x) - 1) return;
  m->flag[0] = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) m->sink[0] += m->data[0][b];
}

enum class Plain { first_reads, last_reads, first_clears, last_clears };

/// All blocks but one add to a sum by atomics. The first or the last reads or clears it when it
/// likes.
template <Plain kPlain>
__global__ void read_a_sum(Memory* m) {
  if (threadIdx.x != 0) return;
  constexpr bool kFirst = kPlain == Plain::first_reads || kPlain == Plain::first_clears;
  if (blockIdx.x != (kFirst ? 0 : gridDim.x - 1)) {
    atomicAdd(&m->other, 1);
  } else if (kPlain == Plain::first_clears || kPlain == Plain::last_clears) {
    m->other = 0;
  } else {
    m->sink[0] = m->other;
  }
}

/// Two rounds through one flag: the data of the second need a fence of their own.
template <bool kSecondFence>
__global__ void two_rounds(Memory* m) {
  if (threadIdx.x != 0) return;
  for (int round = 0; round < 2; ++round) {
    if (blockIdx.x == 0) {
      m->data[round][0] = round;
      if (round == 0 || kSecondFence) __threadfence();
      atomicExch(&m->flag[0], round + 1);
    } else {
      wait_for(&m->flag[0], round + 1);
      m->sink[round] = m->data[round][0];
    }
  }
}

/// A value and its flag in one word of 64 bits need no fence.
__global__ void one_word(unsigned long long* words) {
  if (threadIdx.x != 0) return;
  volatile unsigned long long* const own = words + blockIdx.x;
  unsigned long long sum = blockIdx.x;
  if (blockIdx.x > 0) {
    unsigned long long word = 0;
    while (((word = *(own - 1)) >> 32) == 0) spin_pause();
    sum += word & 0xffffffffu;
  }
  *own = 1ull << 32 | sum;
}

/// Block 1 reads, then says so; block 0 overwrites what it read.
template <bool kFences>
__global__ void overwrite(Memory* m) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    m->sink[0] = m->data[0][0];
    if (kFences) __threadfence();
    atomicExch(&m->flag[0], 1);
  } else {
    wait_for(&m->flag[0], 1);
    m->data[0][0] = 1;
  }
}

std::string findings(const std::function<void(Memory*)>& run) {
  DeviceMemory memory(sizeof(Memory), "memory");
  memory.fill(0);
  return findings_of(trace_of([&] { run(memory.as<Memory>()); }));
}

std::string run(void (*kernel)(Memory*), int blocks) {
  std::string all;
  for (const int workers : {1, 2}) {
    simt::set_workers(workers);
    const std::string found = findings([&](Memory* memory) {
      run_kernel(kernel, {dim3(static_cast<unsigned>(blocks)), dim3(kThreads)}, memory);
    });
    EXPECT_TRUE(workers == 1 || found.empty() == all.empty()) << found << "one worker: " << all;
    all += found;
  }
  simt::set_workers(2);
  return all;
}

bool races(const std::string& text) { return text.find("race: blocks") != std::string::npos; }

TEST(BlockOrder, AFenceOrdersWhatItsThreadKnows) {
  EXPECT_EQ(run(hand_over<Give::right>, 2), "");
  EXPECT_EQ(run(hand_over<Give::fences_of_all>, 2), "");
  EXPECT_TRUE(races(run(hand_over<Give::no_barrier>, 2)));
  EXPECT_TRUE(races(run(hand_over<Give::block_fence>, 2)));
  EXPECT_TRUE(races(run(hand_over<Give::no_fence>, 2)));
  EXPECT_TRUE(races(run(hand_over<Give::plain_flag>, 2)));
}

TEST(BlockOrder, OnlyThoseWhoKnowOfTheFlagMayRead) {
  EXPECT_EQ(run(take_over<Take::right>, 2), "");
  EXPECT_TRUE(races(run(take_over<Take::no_barrier>, 2)));
  EXPECT_TRUE(races(run(take_over<Take::no_wait>, 2)));
  EXPECT_TRUE(races(run(take_over<Take::other_flag>, 2)));
}

TEST(BlockOrder, IsTransitive) {
  EXPECT_EQ(run(chain<true>, 4), "");
  EXPECT_TRUE(races(run(chain<false>, 4)));
}

TEST(BlockOrder, TheLastBlockToCountReadsWhatAllWrote) {
  EXPECT_EQ(run(count_blocks<true>, 16), "");
  EXPECT_TRUE(races(run(count_blocks<false>, 16)));
}

TEST(BlockOrder, APlainReadOfASumIsARace) {
  EXPECT_TRUE(races(run(read_a_sum<Plain::first_reads>, 8)));
  EXPECT_TRUE(races(run(read_a_sum<Plain::last_reads>, 8)));
}

TEST(BlockOrder, OnlyABlockThatHasLookedAtACounterMayClearIt) {
  EXPECT_TRUE(races(run(read_a_sum<Plain::first_clears>, 8)));
  EXPECT_TRUE(races(run(read_a_sum<Plain::last_clears>, 8)));
}

TEST(BlockOrder, AFenceOrdersOnlyWhatCameBefore) {
  EXPECT_EQ(run(two_rounds<true>, 2), "");
  EXPECT_TRUE(races(run(two_rounds<false>, 2)));
}

TEST(BlockOrder, OneWordNeedsNoFence) {
  DeviceMemory words(8 * sizeof(unsigned long long), "words");
  words.fill(0);
  EXPECT_EQ(findings([&](Memory*) { run_kernel(one_word, {dim3(8), dim3(32)}, words); }), "");
}

TEST(BlockOrder, ReadsAreOrderedToo) {
  EXPECT_EQ(run(overwrite<true>, 2), "");
  EXPECT_TRUE(races(run(overwrite<false>, 2)));
}

}  // namespace
}  // namespace cookbook
