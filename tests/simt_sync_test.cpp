// SPDX-License-Identifier: MIT
//
// What the tracer says about synchronisation: mbarriers that are used before they exist, blocks
// that end too soon, warps that are not whole, barriers in two branches, scopes. Every mistake has
// a correct twin, for which nothing must be reported. This file is compiled as kernels are for
// tracing.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/backend/simt/runtime/launch.hpp"
#include "common/device/cluster.cuh"
#include "common/device/cluster_async.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/mma.cuh"
#include "common/device/sync.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"
#include "tests/places.hpp"
#include "tests/tensor_maps.hpp"
#include "tests/text.hpp"
#include "tests/traced.hpp"

namespace cookbook {
namespace {

using simt::AsyncSchedule;

// ---- helpers ----------------------------------------------------------------------------------

std::string at(const std::string& tag) { return place_of("tests/simt_sync_test.cpp", tag); }

/// The findings of a run, "kind: message" a line, and the error that ended it, if one did.
std::string report_of(const std::function<void()>& run) {
  std::string error;
  const std::string findings = findings_of(trace_of(run, &error));
  return findings + (error.empty() ? "" : "error: " + error + "\n");
}

/// Runs it under every schedule. `parts`: what a line of each report must contain, in this order;
/// nothing: each report must be empty.
void expect_report(const std::function<void()>& run, const std::vector<std::string>& parts) {
  for (const auto schedule : {AsyncSchedule::late, AsyncSchedule::early, AsyncSchedule::random}) {
    simt::set_async_schedule(schedule, 7);
    const std::string report = report_of(run);
    SCOPED_TRACE("schedule " + std::to_string(static_cast<int>(schedule)) + ":\n" + report);
    size_t place = 0;
    for (const std::string& part : parts) {
      place = report.find(part, place);
      EXPECT_NE(place, std::string::npos) << "not there: " << part;
      if (place == std::string::npos) break;
      place += part.size();
    }
    EXPECT_TRUE(!parts.empty() || report.empty());
  }
  simt::set_async_schedule(AsyncSchedule::late);
}

void expect_clean(const std::function<void()>& run) { expect_report(run, {}); }

struct Zeros : DeviceMemory {
  Zeros() : DeviceMemory(2048, "data") { fill(0); }
};

/// A launch in which each of the kernel's pointers points to zeros of its own.
template <class... T>
std::function<void()> on_zeros(void (*kernel)(T*...), const LaunchConfig& config) {
  return [=] { run_kernel(kernel, config, Zeros().as<T>()...); };
}

const LaunchConfig kPair{2, 32, 64, 2};  // a cluster of two blocks
const LaunchConfig kWarp{1, 32, 512}, kTwoWarps{1, 64, 512};

/// Lets every other thread of the group run for a while, so that what comes next is late.
__device__ __forceinline__ void dawdle() {
  for (int i = 0; i < 50; ++i) spin_pause();
}

// ---- mbarriers before they are there ----------------------------------------------------------

/// What stands between the initialisation of a barrier and its use by the other block.
enum class Handshake {
  cluster,
  block,
  relaxed_after_fence,
  relaxed_before_fence,
  cluster_no_fence
};

template <Handshake kHandshake>
__global__ void signal_neighbour(int* out) {
  auto* bar = dynamic_shared<uint64_t>();
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);  // [neighbour init]
    if (kHandshake == Handshake::relaxed_after_fence) fence_mbarrier_init();
    if (kHandshake == Handshake::cluster) fence_mbarrier_init();
  }
  if (kHandshake == Handshake::cluster || kHandshake == Handshake::cluster_no_fence) {
    cluster_sync();
  } else if (kHandshake == Handshake::block) {
    __syncthreads();
  } else {
    __syncthreads();
    cluster_arrive_relaxed();
    cluster_wait();
  }
  if (threadIdx.x == 0) {
    dawdle();
    mbarrier_arrive_cluster(bar, 1 - cluster_block_rank());  // [neighbour arrive]
  }
  mbarrier_wait_cluster(bar, 0);
  out[blockIdx.x * 32 + threadIdx.x] = 1;
  cluster_sync();
}

TEST(Barriers, OfAnotherBlockNeedAClusterBarrier) {
  expect_clean(on_zeros(signal_neighbour<Handshake::cluster>, kPair));
  expect_report(on_zeros(signal_neighbour<Handshake::block>, kPair),
                {"race: thread (0,0,0) of block",
                 "uses the mbarrier at dynamic shared memory + 0 bytes at ", at("neighbour arrive"),
                 "nothing orders that after its initialisation", at("neighbour init")});
}

// The fence is what a relaxed arrival publishes; one that releases publishes everything.
TEST(Barriers, RelaxedHandshakeNeedsTheFence) {
  expect_clean(on_zeros(signal_neighbour<Handshake::relaxed_after_fence>, kPair));
  expect_clean(on_zeros(signal_neighbour<Handshake::cluster_no_fence>, kPair));
  expect_report(on_zeros(signal_neighbour<Handshake::relaxed_before_fence>, kPair),
                {"race: thread (0,0,0) of block", at("neighbour arrive"), at("neighbour init")});
}

/// A bulk load by another thread than the one that initialises. `kFence`: 0 none, 1
/// fence_mbarrier_init, 2 fence_proxy_async in the initialising thread, 3 in the using one.
template <bool kBarrier, int kFence>
__global__ void load_by_another(const float* in, float* out) {
  float* stage = dynamic_shared<float>();
  auto* bar = reinterpret_cast<uint64_t*>(stage + 32);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);  // [init]
    if (kFence == 1) fence_mbarrier_init();
    if (kFence == 2) fence_proxy_async();
  }
  if (kBarrier) __syncthreads();
  if (!kBarrier && threadIdx.x != 0) dawdle();
  if (threadIdx.x == 32) {
    if (kFence == 3) fence_proxy_async();
    mbarrier_arrive_expect_tx(bar, 128);  // [expect]
    bulk_load(stage, in, 128, bar);       // [load]
  }
  mbarrier_wait(bar, 0);
  if (threadIdx.x < 32) out[threadIdx.x] = stage[threadIdx.x];
}

TEST(Barriers, NeedABarrierBehindTheirInitialisation) {
  expect_clean(on_zeros(load_by_another<true, 1>, kTwoWarps));
  expect_report(
      on_zeros(load_by_another<false, 1>, kTwoWarps),
      {"race: thread (32,0,0) of block (0,0,0) uses the mbarrier", at("expect"), at("init")});
}

TEST(Barriers, NeedAFenceBeforeTma) {
  expect_clean(on_zeros(load_by_another<true, 2>, kTwoWarps));
  expect_clean(on_zeros(load_by_another<true, 3>, kTwoWarps));
  expect_report(on_zeros(load_by_another<true, 0>, kTwoWarps),
                {"proxy: an asynchronous operation of thread (32,0,0) of block (0,0,0) uses the "
                 "mbarrier at dynamic shared memory + 128 bytes at " +
                     at("load"),
                 "no fence_mbarrier_init() follows its initialisation", at("init")});
}

/// Each block loads half of a tile for both.
template <bool kCluster, bool kFence>
__global__ void load_for_both(const __grid_constant__ TensorMap map, float* out) {
  float* tile = dynamic_shared<float>();
  auto* full = reinterpret_cast<uint64_t*>(tile + 64);
  const int rank = static_cast<int>(cluster_block_rank());
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);  // [multicast init]
    if (kFence) fence_mbarrier_init();
    mbarrier_arrive_expect_tx(full, 256);
  }
  if (kCluster) {
    cluster_sync();
  } else {
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    dawdle();
    tma_load_2d_multicast(tile + 32 * rank, &map, full, 0, rank, 3);  // [multicast]
  }
  mbarrier_wait(full, 0);
  out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
}

template <bool kCluster, bool kFence>
void run_multicast() {
  const Zeros in, out;
  const TensorMap map = map_2d<float>(in.data(), 2, 32, 1, 32);
  run_kernel(load_for_both<kCluster, kFence>, {2, 32, 512, 2}, map, out);
}

TEST(Barriers, OfAMulticast) {
  expect_clean((run_multicast<true, true>));
  expect_report((run_multicast<false, true>),
                {"race: an asynchronous operation of thread (0,0,0) of block", at("multicast"),
                 "nothing orders that", at("multicast init")});
  expect_report((run_multicast<true, false>), {"proxy: an asynchronous operation of thread (0,0,0)",
                                               at("multicast"), at("multicast init")});
}

// ---- the begin and end of blocks --------------------------------------------------------------

enum class Use { load, store, arrive };

/// Touches the other block's shared memory, with or without a barrier before and behind.
template <Use kUse, bool kBefore, bool kBehind>
__global__ void touch_neighbour(int* out) {
  int* value = dynamic_shared<int>();
  auto* bar = reinterpret_cast<uint64_t*>(value + 2);
  value[threadIdx.x == 0 ? 0 : 4] = 0;
  if (threadIdx.x == 0 && kUse == Use::arrive) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
  }
  if (kBefore) {
    cluster_sync();
  } else {
    __syncthreads();
    dawdle();
  }
  const uint32_t other = 1 - cluster_block_rank();
  if (threadIdx.x == 0) {
    if (kUse == Use::load) out[blockIdx.x] = *map_shared(value, other);    // [remote load]
    if (kUse == Use::store) *map_shared(value + 1, other) = 1;             // [remote store]
    if (kUse == Use::arrive) mbarrier_arrive_cluster_relaxed(bar, other);  // [remote arrive]
  }
  if (kBehind) cluster_sync();
}

const LaunchConfig kPairOfTwoThreads{2, 2, 64, 2};

TEST(Clusters, BlocksMustHaveStarted) {
  expect_clean(on_zeros(touch_neighbour<Use::load, true, true>, kPairOfTwoThreads));
  expect_clean(on_zeros(touch_neighbour<Use::store, true, true>, kPairOfTwoThreads));
  expect_report(
      on_zeros(touch_neighbour<Use::store, false, true>, kPairOfTwoThreads),
      {"race: thread (0,0,0) of block", "writes dynamic shared memory + 4 bytes of another block",
       at("remote store"), "which may not have started"});
  expect_report(
      on_zeros(touch_neighbour<Use::load, false, true>, kPairOfTwoThreads),
      {"race: thread (0,0,0) of block", "reads dynamic shared memory + 0 bytes of another block",
       at("remote load"), "which may not have started"});
}

// The access need not be late: it is enough that nothing orders it before the end.
TEST(Clusters, BlocksMustNotHaveEnded) {
  expect_clean(on_zeros(touch_neighbour<Use::arrive, true, true>, kPairOfTwoThreads));
  const std::string ended = "may have ended when thread (0,0,0) of block";
  expect_report(on_zeros(touch_neighbour<Use::load, true, false>, kPairOfTwoThreads),
                {"exit: block", ended, at("remote load")});
  expect_report(on_zeros(touch_neighbour<Use::store, true, false>, kPairOfTwoThreads),
                {"exit: block", ended, at("remote store")});
  // Which of the two comes first is the schedule's: the arrival may meet a block that has exited.
  expect_report(on_zeros(touch_neighbour<Use::arrive, true, false>, kPairOfTwoThreads),
                {"exit", at("remote arrive")});
}

enum class Leftover { none, cp_async, bulk_load, bulk_store };

template <Leftover kLeftover>
__global__ void leave(const float* in, float* out) {
  float* stage = dynamic_shared<float>();
  auto* bar = reinterpret_cast<uint64_t*>(stage + 96);
  if (threadIdx.x != 0) return;
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  for (int i = 0; i < 4; ++i) stage[i] = 1.0f;
  fence_proxy_async();
  cp_async<16>(stage + 32, in);  // [leftover cp_async]
  cp_async_commit();
  mbarrier_arrive_expect_tx(bar, 16);
  bulk_load(stage + 64, in, 16, bar);  // [leftover load]
  bulk_store(out, stage, 16);          // [leftover store]
  tma_store_commit();
  if (kLeftover != Leftover::cp_async) cp_async_wait<0>();
  cp_async_zfill<16>(stage + 48, in, 0);  // zeros may come too late
  cp_async_commit();
  if (kLeftover != Leftover::bulk_load) mbarrier_wait(bar, 0);
  if (kLeftover != Leftover::bulk_store) tma_store_wait_read<0>();
}

TEST(Exits, WithWorkLeft) {
  expect_clean(on_zeros(leave<Leftover::none>, kWarp));
  const std::string begin =
      "exit: block (0,0,0) may end before an asynchronous operation that thread (0,0,0) issued at ";
  const std::string end = "nothing waits for it";
  expect_report(on_zeros(leave<Leftover::cp_async>, kWarp),
                {begin + at("leftover cp_async"), "dynamic shared memory + 128 bytes", end});
  expect_report(on_zeros(leave<Leftover::bulk_load>, kWarp),
                {begin + at("leftover load"), "dynamic shared memory + 256 bytes", end});
  expect_report(on_zeros(leave<Leftover::bulk_store>, kWarp),
                {begin + at("leftover store"), "dynamic shared memory + 0 bytes", end});
}

// ---- warps that are not whole -----------------------------------------------------------------

enum class Aligned { ldmatrix, wgmma, setmaxnreg };
enum class Alone { nothing, acts, waits };
enum class Between { nothing, syncwarp, barrier, wait };

/// Lane 0 of a warp does something alone; then comes an instruction for the whole warp.
template <Aligned kAligned, Alone kAlone, Between kBetween>
__global__ void __launch_bounds__(128) split(float* out) {
  char* tile = dynamic_shared<char>();
  auto* bars = reinterpret_cast<uint64_t*>(tile + 8192);
  for (int i = threadIdx.x; i < 2048; i += 128) reinterpret_cast<uint32_t*>(tile)[i] = 0;
  if (threadIdx.x == 0) {
    mbarrier_init(&bars[0], 128);
    mbarrier_init(&bars[1], 1);
    fence_mbarrier_init();
  }
  fence_proxy_async();
  __syncthreads();
  mbarrier_arrive(&bars[0]);
  mbarrier_wait(&bars[0], 0);
  __syncthreads();
  if (threadIdx.x == 0 && kAlone == Alone::waits) {
    mbarrier_wait(&bars[0], 0);  // [waits alone]
  }
  if (threadIdx.x == 0 && kAlone == Alone::acts) {
    mbarrier_arrive(&bars[1]);  // [acts alone]
  }
  if (kBetween == Between::syncwarp) __syncwarp();
  if (kBetween == Between::barrier) __syncthreads();
  if (kBetween == Between::wait) mbarrier_wait(&bars[0], 0);
  if (kAligned == Aligned::ldmatrix) {
    uint32_t r[4];
    ldmatrix_x4(r, tile + threadIdx.x % 32 * 16);  // [ldmatrix]
    out[threadIdx.x] = static_cast<float>(r[0]);
  } else if (kAligned == Aligned::setmaxnreg) {
    register_dealloc<40>();  // [setmaxnreg]
  } else {
    float d[4] = {};
    wgmma_fence();
    wgmma_m64k16<8, bf16>(d, wgmma_descriptor<Swizzle::none>(tile, 128, 256),  // [wgmma]
                          wgmma_descriptor<Swizzle::none>(tile + 4096, 128, 256), false);
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
  }
}

template <Aligned kAligned, Alone kAlone, Between kBetween>
const auto run_split = on_zeros(split<kAligned, kAlone, kBetween>, {1, 128, 8448});

TEST(Warps, MustBeWholeAfterAWaitAlone) {
  expect_clean(run_split<Aligned::ldmatrix, Alone::nothing, Between::nothing>);
  expect_clean(run_split<Aligned::ldmatrix, Alone::waits, Between::syncwarp>);
  expect_clean(run_split<Aligned::wgmma, Alone::waits, Between::syncwarp>);
  expect_clean(run_split<Aligned::setmaxnreg, Alone::waits, Between::barrier>);
  const auto comes_to = [](const std::string& what) {
    return std::vector<std::string>{"divergence: thread (0,0,0) waited alone at " +
                                    at("waits alone") + ", and its warp comes to " + what + " at " +
                                    at(what) + " with no __syncwarp() between"};
  };
  expect_report(run_split<Aligned::ldmatrix, Alone::waits, Between::nothing>, comes_to("ldmatrix"));
  expect_report(run_split<Aligned::wgmma, Alone::waits, Between::nothing>, comes_to("wgmma"));
  expect_report(run_split<Aligned::setmaxnreg, Alone::waits, Between::nothing>,
                comes_to("setmaxnreg"));
  expect_report(run_split<Aligned::wgmma, Alone::waits, Between::wait>, comes_to("wgmma"));
}

// Acting alone takes no time: a wait of the whole warp is enough.
TEST(Warps, MustBeWholeAfterActingAlone) {
  expect_clean(run_split<Aligned::wgmma, Alone::acts, Between::syncwarp>);
  expect_clean(run_split<Aligned::wgmma, Alone::acts, Between::wait>);
  const std::string acted = "divergence: thread (0,0,0) acted alone at " + at("acts alone");
  expect_report(run_split<Aligned::wgmma, Alone::acts, Between::nothing>, {acted, at("wgmma")});
  // Lanes come to setmaxnreg one by one, and the one that was alone first of all.
  expect_report(run_split<Aligned::setmaxnreg, Alone::acts, Between::nothing>,
                {acted, at("setmaxnreg")});
  expect_clean(run_split<Aligned::setmaxnreg, Alone::acts, Between::barrier>);
}

/// Warps that state their registers twice. Between the two, lane `lane` of the first acts alone, or
/// all of its lanes but this one act.
__global__ void alone_between_two(unsigned lane, bool others) {
  auto* bar = dynamic_shared<uint64_t>();
  if (threadIdx.x == 0) mbarrier_init(bar, 1000);
  __syncthreads();
  register_dealloc<40>();
  __syncthreads();
  if (threadIdx.x < 32 && (threadIdx.x == lane) != others) {
    mbarrier_arrive(bar);  // [alone between two]
  }
  register_dealloc<32>();  // [second setmaxnreg]
}

TEST(Warps, MustBeWholeAtEverySetmaxnreg) {
  const auto run = [](unsigned lane, bool others) {
    return [=] { run_kernel(alone_between_two, {1, 128, 64}, lane, others); };
  };
  const auto report = [](unsigned lane) {
    return std::vector<std::string>{"divergence: thread (" + std::to_string(lane) +
                                        ",0,0) acted alone at " + at("alone between two"),
                                    at("second setmaxnreg")};
  };
  expect_clean(run(1000, false));
  expect_clean(run(1000, true));
  for (const unsigned lane : {0u, 1u, 31u}) expect_report(run(lane, false), report(lane));
  // The lanes that act come first: one of them is named, whichever came first of all.
  for (const unsigned lane : {0u, 1u, 31u})
    expect_report(run(lane, true), report(lane == 0 ? 1 : 0));
}

// ---- setmaxnreg twice -------------------------------------------------------------------------

enum class Joins {
  warpgroup,       ///< a named barrier of its 128 threads
  elected,         ///< a lane of each warp arrives at an mbarrier, and all wait
  one_waits,       ///< likewise, and one lane of each warp waits
  through_one,     ///< warp 3 hears of the others, then they hear of warp 3
  none,            ///< only __syncwarp(), of each warp
  three_warps,     ///< all but warp 3
  pairs,           ///< warps 0 and 1, and warps 2 and 3
  one_way,         ///< warp 3 hears of the others
  all_but_one,     ///< likewise, and the others hear of each other
  arrived_before,  ///< the arrivals come before the first setmaxnreg
  others,          ///< the other warpgroup
};

// A named barrier of 128 threads, at which this thread waits or only arrives.
__device__ void meet_at(int id, bool waits) {
  if (waits) {
    named_barrier_sync(id, 128);
  } else {
    named_barrier_arrive(id, 128);
  }
}

__global__ void registers_twice(Joins joins, unsigned last) {
  auto* bar = dynamic_shared<uint64_t>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) mbarrier_init(bar, 4);
  __syncthreads();
  if (warp >= 4) {
    if (joins == Joins::others) named_barrier_sync(1, 128);
    return;
  }
  if (joins == Joins::arrived_before && lane == 0) mbarrier_arrive(bar);
  __syncwarp();
  register_dealloc<64>();  // [first of two]
  if (joins == Joins::warpgroup) named_barrier_sync(1, 128);
  if (joins == Joins::elected || joins == Joins::one_waits) {
    if (lane == 5) mbarrier_arrive(bar);
    if (lane == 5 || joins == Joins::elected) mbarrier_wait(bar, 0);
  }
  if (joins == Joins::through_one || joins == Joins::one_way) meet_at(1, warp == 3);
  if (joins == Joins::through_one) meet_at(2, warp != 3);
  if (joins == Joins::three_warps && warp < 3) named_barrier_sync(1, 96);
  if (joins == Joins::pairs) named_barrier_sync(static_cast<int>(1 + warp / 2), 64);
  if (joins == Joins::all_but_one) {
    meet_at(1, warp == last);
    if (warp != last) named_barrier_sync(2, 96);
  }
  if (joins == Joins::arrived_before) mbarrier_wait(bar, 0);
  __syncwarp();
  register_dealloc<40>();  // [second of two]
}

TEST(Setmaxnreg, NeedsABarrierOfItsWarpgroupBetweenTwo) {
  const auto run = [](Joins joins, unsigned last = 0) {
    return [=] { run_kernel(registers_twice, {1, 256, 64}, joins, last); };
  };
  const std::string thread = "divergence: thread (";
  const std::string comes =
      "comes to setmaxnreg at " + at("second of two") + ", and no barrier shows that thread (";
  const std::string end = "of its warpgroup has passed the one at " + at("first of two");
  for (const Joins joins :
       {Joins::warpgroup, Joins::elected, Joins::one_waits, Joins::through_one}) {
    SCOPED_TRACE(static_cast<int>(joins));
    expect_clean(run(joins));
  }
  for (const Joins joins : {Joins::none, Joins::three_warps, Joins::pairs, Joins::one_way,
                            Joins::arrived_before, Joins::others}) {
    SCOPED_TRACE(static_cast<int>(joins));
    expect_report(run(joins), {thread, comes, end});
  }
  for (const unsigned last : {0u, 1u, 2u, 3u}) {
    const std::string other = std::to_string(32 * last) + ",0,0) ";
    expect_report(run(Joins::all_but_one, last), {thread, comes + other + end});
  }
}

/// A third setmaxnreg, with a barrier after the first and perhaps after the second.
__global__ void registers_three_times(bool again) {
  register_dealloc<64>();
  __syncthreads();
  register_dealloc<40>();  // [second of three]
  if (again) __syncthreads();
  register_dealloc<24>();  // [third of three]
}

TEST(Setmaxnreg, NeedsABarrierBeforeTheThirdToo) {
  const auto run = [](bool again) {
    return [=] { run_kernel(registers_three_times, {1, 128}, again); };
  };
  expect_clean(run(true));
  expect_report(run(false), {"comes to setmaxnreg at " + at("third of three"),
                             "has passed the one at " + at("second of three")});
}

// ---- one operation in two places --------------------------------------------------------------

enum class Place { same, other_warp, same_warp };

template <Place kPlace>
__global__ void two_barriers(int* out) {
  const bool other = kPlace == Place::other_warp  ? threadIdx.x >= 32
                     : kPlace == Place::same_warp ? threadIdx.x % 2 != 0
                                                  : false;
  if (other) {
    out[threadIdx.x] = 1;
    __syncthreads();  // [barrier 1]
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();  // [barrier 2]
  }
}

template <Place kPlace>
__global__ void two_named_barriers(int* out) {
  const bool other = kPlace == Place::other_warp ? threadIdx.x >= 32 : threadIdx.x % 2 != 0;
  if (other) {
    out[threadIdx.x] = 1;
    named_barrier_sync(1, 64);  // [named 1]
  } else {
    out[threadIdx.x] = 2;
    named_barrier_sync(1, 64);  // [named 2]
  }
}

enum class Meeting { shuffle, vote, sync };

template <Meeting kMeeting>
__global__ void two_meetings(int* out) {
  int got = 0;
  if (threadIdx.x % 2 != 0) {
    out[threadIdx.x] = 1;
    if (kMeeting == Meeting::shuffle) got = __shfl_xor_sync(~0u, 1, 2);  // [shuffle 1]
    if (kMeeting == Meeting::vote) got = __any_sync(~0u, true);          // [vote 1]
    if (kMeeting == Meeting::sync) __syncwarp();
  } else {
    out[threadIdx.x] = 2;
    if (kMeeting == Meeting::shuffle) got = __shfl_xor_sync(~0u, 3, 2);  // [shuffle 2]
    if (kMeeting == Meeting::vote) got = __any_sync(~0u, false);         // [vote 2]
    if (kMeeting == Meeting::sync) __syncwarp();
  }
  out[threadIdx.x] += got;
}

/// In either order.
void expect_two_places(void (*kernel)(int*), const std::string& operation, const std::string& tag) {
  const auto run = on_zeros(kernel, kTwoWarps);
  const std::string report = report_of(run);
  for (const std::string& part : {"executes " + operation + " at ", at(tag + " 1"), at(tag + " 2"),
                                  std::string("where both must execute the same one")}) {
    EXPECT_CONTAINS(report, part);
  }
  expect_report(run, {"divergence: thread"});
}

TEST(Places, BarrierOfABlock) {
  expect_clean(on_zeros(two_barriers<Place::same>, kTwoWarps));
  expect_two_places(two_barriers<Place::other_warp>, "__syncthreads", "barrier");
  expect_two_places(two_barriers<Place::same_warp>, "__syncthreads", "barrier");
}

// Warps may come to a named barrier from different places: producers and consumers do.
TEST(Places, NamedBarrier) {
  expect_clean(on_zeros(two_named_barriers<Place::other_warp>, kTwoWarps));
  expect_two_places(two_named_barriers<Place::same_warp>, "a named barrier", "named");
}

// bar.warp.sync counts the lanes, wherever they come from.
TEST(Places, MeetingsOfAWarp) {
  expect_clean(on_zeros(two_meetings<Meeting::sync>, kTwoWarps));
  expect_two_places(two_meetings<Meeting::shuffle>, "__shfl_sync", "shuffle");
  expect_two_places(two_meetings<Meeting::vote>, "warp vote", "vote");
}

// ---- scopes -----------------------------------------------------------------------------------

/// Block 0 writes into block 1's shared memory and signals it.
template <bool kReleases, bool kAcquires>
__global__ void pass_value(int* out) {
  auto* bar = dynamic_shared<uint64_t>();
  int* value = reinterpret_cast<int*>(bar + 1);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
  }
  cluster_sync();
  if (threadIdx.x == 0 && cluster_block_rank() == 0) {
    *map_shared(value, 1) = 7;  // [passed]
    if (kReleases) {
      mbarrier_arrive_cluster(bar, 1);
    } else {
      mbarrier_arrive_cluster_relaxed(bar, 1);
    }
  }
  if (threadIdx.x == 0 && cluster_block_rank() == 1) {
    if (kAcquires) {
      mbarrier_wait_cluster(bar, 0);
    } else {
      mbarrier_wait(bar, 0);
    }
    *out = *value;  // [received]
  }
  cluster_sync();
}

TEST(Scopes, BothSidesMustNameTheCluster) {
  expect_clean(on_zeros(pass_value<true, true>, kPair));
  const std::vector<std::string> race = {
      "race: read after write", "(0,0,0) wrote at " + at("passed"), "reads at " + at("received")};
  expect_report(on_zeros(pass_value<false, true>, kPair), race);
  expect_report(on_zeros(pass_value<true, false>, kPair), race);
  expect_report(on_zeros(pass_value<false, false>, kPair), race);
}

/// Block 1 has read its value and signals this; block 0 then overwrites it. The scope of the block
/// is enough, since only an order is passed.
template <bool kWaits>
__global__ void give_back(int* out) {
  auto* bar = dynamic_shared<uint64_t>();
  int* value = reinterpret_cast<int*>(bar + 1);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    *value = 1;
  }
  cluster_sync();
  if (threadIdx.x == 0 && cluster_block_rank() == 1) {
    *out = *value;  // [last read]
    mbarrier_arrive_cluster_relaxed(bar, 0);
  }
  if (threadIdx.x == 0 && cluster_block_rank() == 0) {
    if (kWaits) mbarrier_wait(bar, 0);
    *map_shared(value, 1) = 2;  // [overwritten]
  }
  cluster_sync();
}

TEST(Scopes, AnyScopeTellsThatReadsAreOver) {
  expect_clean(on_zeros(give_back<true>, kPair));
  expect_report(on_zeros(give_back<false>, kPair),
                {"race: ", "dynamic shared memory + 8 bytes", at("overwritten")});
}

template <bool kOfCluster>
__global__ void send(int* out) {
  auto* full = dynamic_shared<uint64_t>();
  int* value = reinterpret_cast<int*>(full + 1);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(full, 4);
  }
  cluster_sync();
  if (threadIdx.x == 0) store_async_cluster(value, 7, full, 1 - cluster_block_rank());  // [sent]
  if (kOfCluster) {
    mbarrier_wait_cluster(full, 0);
  } else {
    mbarrier_wait(full, 0);
  }
  out[blockIdx.x] = *value;  // [arrived]
  cluster_sync();
}

TEST(Scopes, OfStAsync) {
  expect_clean(on_zeros(send<true>, {2, 1, 64, 2}));
  expect_report(on_zeros(send<false>, {2, 1, 64, 2}),
                {"race: read after write", at("sent"), at("arrived")});
  expect_report(on_zeros(send<true>, {2, 1, 64, 1}),
                {"store_async_cluster: the launch has clusters of one block"});
}

/// Thread 0 copies; all threads read the copy. Its completion is known by the mbarrier alone.
template <bool kWaits>
__global__ void copy_for_others(const float* in, float* out) {
  float* stage = dynamic_shared<float>();
  auto* bar = reinterpret_cast<uint64_t*>(stage + 4);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    cp_async<4>(stage, in);  // [copied for others]
    cp_async_mbarrier_arrive_noinc(bar);
  }
  __syncthreads();
  if (kWaits || threadIdx.x == 0) mbarrier_wait(bar, 0);
  out[threadIdx.x] = *stage;  // [read by others]
  if (threadIdx.x == 0) {
    cp_async_commit();
    cp_async_wait<0>();
  }
}

TEST(Barriers, OrderTheCopiesThatArriveOnThem) {
  expect_clean(on_zeros(copy_for_others<true>, kTwoWarps));
  expect_report(on_zeros(copy_for_others<false>, kTwoWarps),
                {"race: ", at("copied for others"), at("read by others")});
}

// ---- dependent launches -------------------------------------------------------------------------

enum class GlobalUse { none, load, store, atomic, cp_async, bulk_load, bulk_store };

/// Uses global memory. Thread 0 of block 0 waits for the launch before, of block 1 if kBlock1Waits;
/// otherwise block 1 waits at its end.
template <GlobalUse kUse, bool kBlock1Waits>
__global__ void use_in_dependent_launch(unsigned* data) {
  auto* values = dynamic_shared<unsigned>();
  auto* bar = reinterpret_cast<uint64_t*>(values + 256);
  const bool first = kBlock1Waits || blockIdx.x == 0;
  unsigned* mine = data + 256 * blockIdx.x + 4 * threadIdx.x;
  for (int i = 0; i < 4; ++i) values[4 * threadIdx.x + i] = 1;  // shared memory may be used before
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    fence_proxy_async();
    if (first) wait_for_previous_launch();
  }
  __syncthreads();
  if (kUse == GlobalUse::load) values[4 * threadIdx.x] = *mine;  // [dependent load]
  if (kUse == GlobalUse::store) *mine = 1;                       // [dependent store]
  if (kUse == GlobalUse::atomic) atomicAdd(mine, 1u);            // [dependent atomic]
  if (kUse == GlobalUse::cp_async) {
    cp_async<16>(values + 4 * threadIdx.x, mine);  // [dependent cp_async]
    cp_async_commit();
    cp_async_wait<0>();
  }
  if (kUse == GlobalUse::bulk_load && threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(bar, 16);
    bulk_load(values, mine, 16, bar);  // [dependent bulk_load]
    mbarrier_wait(bar, 0);
  }
  if (kUse == GlobalUse::bulk_store && threadIdx.x == 0) {
    bulk_store(mine, values, 16);  // [dependent bulk_store]
    tma_store_commit();
    tma_store_wait<0>();
  }
  if (!first && threadIdx.x == 0) wait_for_previous_launch();
}

template <GlobalUse kUse, bool kBlock1Waits, bool kDependent>
const auto run_use =
    on_zeros(use_in_dependent_launch<kUse, kBlock1Waits>,
             {.grid = 2, .block = 64, .smem_bytes = 1040, .dependent = kDependent});

/// Before the wait it is an error that names the place; after it, or in another launch, it is none.
template <GlobalUse kUse>
void expect_use_needs_wait(const std::string& does, const std::string& tag) {
  SCOPED_TRACE(tag);
  expect_clean(run_use<kUse, true, true>);
  expect_clean(run_use<kUse, false, false>);
  const std::string message = " 'data' in a dependent launch before wait_for_previous_launch()";
  expect_report(run_use<kUse, false, true>, {"error: ", does + message, at(tag), "block (1,0,0)"});
}

TEST(DependentLaunch, UsesGlobalMemoryAfterTheWait) {
  expect_clean(run_use<GlobalUse::none, false, true>);
  expect_use_needs_wait<GlobalUse::load>("reads", "dependent load");
  expect_use_needs_wait<GlobalUse::store>("writes", "dependent store");
  expect_use_needs_wait<GlobalUse::atomic>("writes", "dependent atomic");
  expect_use_needs_wait<GlobalUse::cp_async>("reads", "dependent cp_async");
  expect_use_needs_wait<GlobalUse::bulk_load>("reads", "dependent bulk_load");
  expect_use_needs_wait<GlobalUse::bulk_store>("writes", "dependent bulk_store");
}

}  // namespace
}  // namespace cookbook
