// SPDX-License-Identifier: MIT
//
// The tracer: counters equal to a GPU's on ordinary kernels, and every check with a kernel that has
// the mistake and one that has not. This file is compiled as kernels are for tracing.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/simt/language/intrinsics.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "common/device/bulk_add.cuh"
#include "common/device/cluster.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/mma.cuh"
#include "common/device/sync.cuh"
#include "common/device/tma.cuh"
#include "tests/ended.hpp"
#include "tests/parity/kernels.cuh"
#include "tests/places.hpp"
#include "tests/tensor_maps.hpp"
#include "tests/text.hpp"
#include "tests/traced.hpp"

namespace cookbook {
namespace {

using simt::AccessSite;
using simt::Op;
using simt::Space;
using simt::Trace;

// ---- kernels whose counters are known: parity/kernels.cuh has more ----------------------------

/// Shared loads and stores of 8 or 16 bytes; `stride` in elements between neighbouring lanes.
template <class T>
__global__ void shared_wide(float* out, int stride) {
  T* tile = dynamic_shared<T>();
  T value;
  value.x = 1.0f;
  value.y = 2.0f;
  for (unsigned i = threadIdx.x; i < 32u * 8; i += 32) tile[i] = value;
  __syncwarp();
  const T got = tile[threadIdx.x * stride];  // [wide load]
  out[threadIdx.x] = got.x + got.y;
}

__device__ __forceinline__ float twice(const float* p) { return 2.0f * *p; }  // [inlined load]

__global__ void through_helper(const float* in, float* out) {
  out[threadIdx.x] = twice(in + threadIdx.x);
}

/// Only block 2 has a stride between its lanes, and only half of each warp stores there.
__global__ void one_bad_block(float* x) {
  const bool bad = blockIdx.x == 2;
  if (bad && threadIdx.x % 32 >= 16) return;
  x[512 * blockIdx.x + threadIdx.x % 32 * (bad ? 32 : 1) + threadIdx.x / 32 * 512 * 4] = 1.0f;
}

// ---- kernels with and without mistakes --------------------------------------------------------

template <bool kBarrier>
__global__ void reverse(float* x) {
  __shared__ float s[256];
  s[threadIdx.x] = x[threadIdx.x];  // [reverse store]
  if (kBarrier) __syncthreads();
  x[threadIdx.x] = s[255 - threadIdx.x];  // [reverse load]
}

// A class type in a template: g++ guards the array's (empty) construction with a hidden variable.
template <class T>
__global__ void reverse_narrow(const T* in, T* out) {
  __shared__ T tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

template <bool kSecondBarrier>
__global__ void column_sums(const float* in, float* out, int n) {
  __shared__ float tile[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y;
  float sum = 0.0f;
  for (int t = 0; t < n; t += 32) {
    tile[ty][tx] = in[ty * n + t + tx];  // [tile store]
    __syncthreads();
    for (int k = 0; k < 32; ++k) sum += tile[k][tx];  // [tile load]
    if (kSecondBarrier) __syncthreads();
  }
  out[ty * 32 + tx] = sum;
}

/// Neighbours in a warp exchange values through shared memory.
template <int kHow>  // 0: nothing between, 1: __syncwarp, 2: a shuffle, which does not order memory
__global__ void exchange_in_warp(float* x) {
  float* s = dynamic_shared<float>();
  s[threadIdx.x] = x[threadIdx.x];
  if (kHow == 1) __syncwarp();
  float zero = 0.0f;
  if (kHow == 2) zero = __shfl_xor_sync(0xffffffffu, 0.0f, 1);
  x[threadIdx.x] = s[threadIdx.x ^ 1] + zero;
}

/// One writer, read by several warps; then thread 0 overwrites, having itself read last.
template <bool kBarrier>
__global__ void broadcast_then_overwrite(float* x) {
  float* s = dynamic_shared<float>();
  if (threadIdx.x == 0) s[0] = 1.0f;
  __syncthreads();
  if (threadIdx.x != 0) x[threadIdx.x] = s[0];
  __syncwarp();
  if (threadIdx.x == 0) x[0] = s[0];
  if (kBarrier) __syncthreads();
  if (threadIdx.x == 0) s[0] = 2.0f;
}

template <bool kAll>
__global__ void partly_filled(float* x) {
  float* s = dynamic_shared<float>();
  if (kAll || threadIdx.x != 7) s[threadIdx.x] = 1.0f;
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x ^ 1];  // [uninitialised load]
}

/// Halves of one word are written by different threads.
__global__ void halves_of_a_word(unsigned short* x) {
  auto* s = dynamic_shared<unsigned short>();
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[threadIdx.x];
}

__global__ void shifted_copy(const float* in, float* out, int shift) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i + shift];  // [shifted load]
}

__global__ void shared_index(float* x, int index) {
  float* s = dynamic_shared<float>();
  s[threadIdx.x] = 1.0f;
  x[threadIdx.x] = s[threadIdx.x + index];
}

struct TwoDoubles {
  double x, y;
};
__global__ void copy_doubles_at(const float* in, float* out, int offset) {
  reinterpret_cast<TwoDoubles*>(out + offset)[threadIdx.x] =
      reinterpret_cast<const TwoDoubles*>(in + offset)[threadIdx.x];
}

__global__ void load_float4_at(const float* in, float* out, int offset) {
  const float4 v =
      *reinterpret_cast<const float4*>(in + offset + 4 * threadIdx.x);  // [vector load]
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

template <bool kAtomic>
__global__ void histogram(const int* in, int* out) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  const int bin = in[threadIdx.x] & 7;
  if (kAtomic) {
    atomicAdd(&bins[bin], 1);
  } else {
    bins[bin] += 1;
  }
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}

__global__ void divergent_barrier(float* x) {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else if (threadIdx.x < 64) {
    __syncthreads();
  }
  x[threadIdx.x] = 1.0f;
}

template <bool kPlain>
__global__ void same_cell(int* x) {
  if (threadIdx.x != 0) return;
  if (kPlain) {
    x[0] = static_cast<int>(blockIdx.x);  // [same cell]
  } else {
    atomicAdd(x, 1);
  }
}

/// Threads of one block on global memory.
enum class InBlock {
  lost_update,
  late_update,
  atomic_update,
  same_value,
  shift,
  shift_in_step,
  handed,
  in_step
};
template <InBlock kWhat>
__global__ void in_one_block(int* x, int* y) {
  const int i = static_cast<int>(threadIdx.x);
  if (kWhat == InBlock::lost_update) y[0] += x[i];  // [lost update]
  if (kWhat == InBlock::late_update && (i == 5 || i == 6)) y[0] += x[i];
  if (kWhat == InBlock::atomic_update) atomicAdd(y, x[i]);
  if (kWhat == InBlock::same_value) y[0] = 5;
  if (kWhat == InBlock::shift || kWhat == InBlock::shift_in_step) {
    const int next = x[(i + 1) % 32];  // [shift reads]
    if (kWhat == InBlock::shift_in_step) __syncwarp();
    if (i < 32) x[i] = next;  // [shift writes]
  }
  if (kWhat == InBlock::handed || kWhat == InBlock::in_step) {
    if (i < 32) x[i] = i;  // [handed writes]
    if (kWhat == InBlock::in_step) __syncthreads();
    if (i >= 32) y[i] = x[i - 32];  // [handed reads]
  }
}

/// One thread of each warp adds to a value while it holds a lock.
enum class Lock { right, no_fence, block_fence, block_atomics, in_shared, in_shared_no_fence };
template <Lock kHow>
__global__ void add_locked(int* value, int* lock) {
  __shared__ int own_lock, own_value;
  constexpr bool kShared = kHow == Lock::in_shared || kHow == Lock::in_shared_no_fence;
  constexpr bool kFence = kHow != Lock::no_fence && kHow != Lock::in_shared_no_fence;
  if (kShared) {
    if (threadIdx.x == 0) own_lock = own_value = 0;
    __syncthreads();
    lock = &own_lock;
    value = &own_value;
  }
  const auto fence = [] {
    if (kHow == Lock::block_fence || kHow == Lock::block_atomics) __threadfence_block();
    if (kFence && kHow != Lock::block_fence && kHow != Lock::block_atomics) __threadfence();
  };
  if (threadIdx.x % 32 != 0) return;
  if (kHow == Lock::block_atomics) {
    while (atomicCAS_block(lock, 0, 1) != 0) __nanosleep(20);
  } else {
    while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
  }
  fence();
  *value += 1;  // [locked add]
  fence();
  if (kHow == Lock::block_atomics) {
    atomicExch_block(lock, 0);
  } else {
    atomicExch(lock, 0);
  }
}

/// Stores of several threads to one place, without a barrier.
enum class Over { same, other, same_shared, other_shared, volatile_count, bytes, same_byte };
template <Over kWhat>
__global__ void store_over(int* x, unsigned char* bytes) {
  __shared__ int one;
  const int t = static_cast<int>(threadIdx.x);
  if (kWhat == Over::same) x[0] = 7;
  if (kWhat == Over::other) x[0] = t;  // [stores of other values]
  if (kWhat == Over::same_shared) one = 7;
  if (kWhat == Over::other_shared) one = t;  // [shared stores of other values]
  if (kWhat == Over::same_shared || kWhat == Over::other_shared) {
    __syncthreads();
    if (t == 0) one += 1;  // must not pass for the value of the others' stores
    __syncthreads();
    x[t] = one;
  }
  if (kWhat == Over::volatile_count && t % 32 == 0) {
    auto* const count = static_cast<volatile int*>(x);
    *count = *count + 1;  // [volatile count]
  }
  if (kWhat == Over::bytes) bytes[t] = static_cast<unsigned char>(t);
  if (kWhat == Over::same_byte) bytes[t / 2] = static_cast<unsigned char>(t);  // [one byte]
}

/// Blocks count by atomics with the scope of a block, or of the device.
template <bool kBlockOnly>
__global__ void count_blocks(int* count) {
  if (kBlockOnly) atomicAdd_block(count, 1);  // [block count]
  if (!kBlockOnly) atomicAdd(count, 1);
}

__global__ void same_cell_from(unsigned* x, unsigned first) {
  if (blockIdx.x >= first) x[0] = blockIdx.x;
}

/// The last block to arrive sums what all wrote: ordered by an atomic counter.
__global__ void last_block_sums(int* parts, unsigned* counter, int* out) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = static_cast<int>(blockIdx.x);
  __threadfence();
  if (atomicAdd(counter, 1u) == gridDim.x - 1) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
    out[0] = sum;
  }
}

/// One block passes a value to the next through a flag.
__global__ void flag_chain(int* value, unsigned* flag) {
  if (threadIdx.x != 0) return;
  spin_wait_until_equal(flag, blockIdx.x);
  value[0] += 1;
  store_release(flag, blockIdx.x + 1);
}

/// The first thread of each block from `first` on adds to a value, in turn if kInTurn.
template <bool kInTurn>
__global__ void add_in_turn(int* value, unsigned* flag, unsigned first, unsigned rounds) {
  if (threadIdx.x != 0 || blockIdx.x < first) return;
  for (unsigned i = 0; i < rounds; ++i) {
    const unsigned turn = i * (gridDim.x - first) + blockIdx.x - first;
    if (kInTurn) spin_wait_until_equal(flag, turn);
    value[0] += 1;
    if (kInTurn) store_release(flag, turn + 1);
  }
}

/// Warp 0 produces, warp 1 consumes: named barriers 1 and 3 in turn say "full", 2 says "empty".
template <bool kWaitUntilEmpty>
__global__ void ping_pong(const float* in, float* out, int rounds) {
  float* s = dynamic_shared<float>();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < rounds; ++i) {
      if (kWaitUntilEmpty && i > 0) named_barrier_sync(2, 64);
      s[lane] = in[i * 32 + lane];  // [produce]
      named_barrier_arrive(1 + i % 2 * 2, 64);
    }
  } else {
    for (int i = 0; i < rounds; ++i) {
      named_barrier_sync(1 + i % 2 * 2, 64);
      out[i * 32 + lane] = s[31 - lane];  // [consume]
      if (kWaitUntilEmpty && i + 1 < rounds) named_barrier_arrive(2, 64);
    }
  }
}

/// Copies through shared memory with cp.async.
template <bool kWait>
__global__ void staged_copy(const float* in, float* out) {
  float* s = dynamic_shared<float>();
  cp_async<16>(s + 4 * threadIdx.x, in + 4 * threadIdx.x);  // [cp_async]
  cp_async_commit();
  if (kWait) cp_async_wait<0>();
  __syncthreads();
  for (int i = 0; i < 4; ++i) out[i * 64 + threadIdx.x] = s[i * 64 + threadIdx.x];  // [staged load]
}

/// Each lane copies one word, from rows of `per_row` lanes `pitch` words apart, to every `stride`th
/// word. Only the first `readers` lanes read, the others write zeros, as all do after one round.
__global__ void copy_words(const float* in, int per_row, int pitch, int stride, int readers,
                           int rounds) {
  const int lane = static_cast<int>(threadIdx.x);
  const float* from = in + lane / per_row * pitch + lane % per_row;
  float* to = dynamic_shared<float>() + lane * stride;
  for (int round = 0; round < rounds; ++round) {
    cp_async_zfill<4>(to, from, round == 0 && lane < readers ? 4 : 0);  // [word]
    cp_async_commit();
    cp_async_wait<0>();
  }
}

/// ldmatrix over rows of `pitch` bytes.
__global__ void load_matrices(float* out, int pitch) {
  char* s = dynamic_shared<char>();
  for (unsigned i = threadIdx.x; i < 32u * pitch / 4; i += 32) {
    reinterpret_cast<uint32_t*>(s)[i] = i;
  }
  __syncwarp();
  uint32_t r[4];
  ldmatrix_x4(r, s + threadIdx.x * pitch);  // [ldmatrix]
  out[threadIdx.x] = static_cast<float>(r[0] + r[1] + r[2] + r[3]);
}

enum class Waits { nobody, one, all };

/// A bulk load into shared memory, which every thread then reads.
template <Waits kWaits>
__global__ void bulk_copy_in(const float* in, float* out) {
  float* s = dynamic_shared<float>();
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    mbarrier_init(&bar, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&bar, 512);
    bulk_load(s, in, 512, &bar);  // [bulk load]
  }
  if (kWaits == Waits::all || (kWaits == Waits::one && threadIdx.x == 0)) mbarrier_wait(&bar, 0);
  out[threadIdx.x] = s[threadIdx.x];  // [bulk use]
  __syncthreads();
  mbarrier_wait(&bar, 0);
}

/// Ordinary stores, then a TMA store of them. Where the fence stands: 0 nowhere, 1 in the writing
/// threads, 2 in the issuing thread only, 3 in the writing threads but after the barrier. 4: where
/// it belongs, but the fence of global memory. 5: where it belongs, but there is no barrier.
template <int kFence>
__global__ void tma_copy_out(const __grid_constant__ TensorMap map) {
  float* s = dynamic_shared<float>();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);  // [ordinary store]
  if (kFence == 1 || kFence == 5) fence_proxy_async();
  if (kFence == 4) fence_proxy_async_global();
  if (kFence != 5) __syncthreads();
  if (kFence == 3) fence_proxy_async();
  if (threadIdx.x == 0) {
    if (kFence == 2) fence_proxy_async();
    tma_store_2d(&map, s, 0, 0);  // [tma store]
    tma_store_commit();
    tma_store_wait<0>();
  }
}

/// Every block adds to the same 16 floats. kReads: its first thread also reads one of them.
template <bool kReads>
__global__ void add_in_bulk(float* sums, float* seen) {
  float* s = dynamic_shared<float>();
  if (threadIdx.x < 16) s[threadIdx.x] = 1;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  bulk_store_add(sums, s, 16);  // [bulk add]
  tma_store_commit();
  tma_store_wait<0>();
  if (kReads) seen[blockIdx.x] = sums[0];  // [early read]
}

/// Overwrites what a TMA store still reads.
template <bool kWait>
__global__ void overwrite_stored(const __grid_constant__ TensorMap map) {
  float* s = dynamic_shared<float>();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, s, 0, 0);  // [tma store 2]
    tma_store_commit();
    if (kWait) tma_store_wait_read<0>();
  }
  __syncthreads();
  s[threadIdx.x] = 0.0f;  // [overwrite]
  if (threadIdx.x == 0) tma_store_wait<0>();
}

/// Every block of a cluster reads its neighbour's shared memory.
template <bool kSync>
__global__ void neighbour_sum(float* out) {
  float* s = dynamic_shared<float>();
  s[threadIdx.x] = static_cast<float>(cluster_block_rank());  // [own store]
  if (kSync) cluster_sync();
  if (!kSync) __syncthreads();
  const float* other = map_shared(s, (cluster_block_rank() + 1) % cluster_size());
  out[blockIdx.x * 32 + threadIdx.x] = other[threadIdx.x];  // [remote load]
  cluster_sync();
}

__global__ void static_in_cluster(float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = 1.0f;  // [static store]
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];
}

// ---- helpers ----------------------------------------------------------------------------------

constexpr const char* kThisFile = "tests/simt_trace_test.cpp";
int line_of(const std::string& tag) { return cookbook::line_of(kThisFile, tag); }
std::string place_of(const std::string& tag) { return cookbook::place_of(kThisFile, tag); }

DeviceMemory ramp(size_t n, const char* name) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(i * 2654435761u % 1000) / 1000.0f - 0.5f;
  }
  return upload(values, name);
}

DeviceMemory zeros(size_t n, const char* name) { return upload(std::vector<int>(n), name); }

struct Sum {
  uint64_t requests = 0, units = 0, ideal = 0;
  bool operator==(const Sum&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sum& sum) {
  return out << sum.requests << " requests, " << sum.units << " units, ideal " << sum.ideal;
}

Sum sum(const Trace& trace, Space space, Op op, int line = 0) {
  Sum total;
  for (const AccessSite& site : trace.sites) {
    if (site.space != space || site.op != op || (line != 0 && site.line != line)) continue;
    total.requests += site.requests;
    total.units += space == Space::global ? site.sectors : site.wavefronts;
    total.ideal += space == Space::global ? site.ideal_sectors : site.ideal_wavefronts;
  }
  return total;
}

uint64_t copy_wavefronts(const Trace& trace) {
  uint64_t total = 0;
  for (const AccessSite& site : trace.sites) total += site.copy_wavefronts;
  return total;
}

// ---- counters ---------------------------------------------------------------------------------

TEST(Counters, Copies) {
  const int n = 1 << 14;
  DeviceMemory in = ramp(n, "in"), out = ramp(n, "out");
  Trace trace = trace_launch(parity::copy_coalesced<float>, {n / 256, 256}, in, out, n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{512, 2048, 2048}));
  EXPECT_EQ(sum(trace, Space::global, Op::store), (Sum{512, 2048, 2048}));
  ASSERT_EQ(trace.kernels.size(), 1u);
  EXPECT_EQ(trace.kernels[0].launches, 1u);
  EXPECT_EQ(trace.kernels[0].blocks, 64u);
  EXPECT_DOUBLE_EQ(trace.kernels[0].mean_active_lanes, 32.0);
  EXPECT_EQ(trace.kernels[0].bytes_requested, 2u * n * 4);
  EXPECT_EQ(trace.kernels[0].distinct_bytes, 2u * n * 4);
  ASSERT_EQ(trace.sites.size(), 2u);
  for (const AccessSite& site : trace.sites) {
    EXPECT_EQ(site.buffer, site.op == Op::load ? "in" : "out");
    EXPECT_EQ(site.bytes_per_lane, 4);
    EXPECT_EQ(site.lanes, 512u * 32);
    EXPECT_EQ(site.bytes, static_cast<uint64_t>(n) * 4);
    EXPECT_CONTAINS(site.kernel, "copy");
  }

  EXPECT_EQ(sum(trace_launch(parity::copy_strided<float>, {n / 256, 256}, in, out, n, 32),
                Space::global, Op::load),
            (Sum{512, 16384, 2048}));

  trace = trace_launch(parity::copy_coalesced<float4>, {n / 1024, 256}, in, out, n / 4);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{128, 2048, 2048}));
  EXPECT_EQ(sum(trace, Space::global, Op::store), (Sum{128, 2048, 2048}));
}

struct alignas(8) EightAligned {
  float x[2];
};
struct alignas(16) SixteenAligned {
  float x[4];
};
struct alignas(16) TwoSixteens {
  float x[8];
};
struct MixedMembers {
  int x;
  char y;
};

/// Loads of a warp that copies a T per lane.
template <class T>
uint64_t loads_of() {
  DeviceMemory in = ramp(32 * sizeof(T) / 4, "in"), out = ramp(32 * sizeof(T) / 4, "out");
  const Trace trace = trace_launch(parity::copy_coalesced<T>, {1, 32}, in, out, 32);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::store), sum(trace, Space::global, Op::load));
  return sum(trace, Space::global, Op::load).requests;
}

TEST(Counters, AStructIsCopiedInPartsOfItsAlignment) {
  using parity::Members;
  EXPECT_EQ(loads_of<float3>(), 3u);
  EXPECT_EQ((loads_of<std::array<float, 4>>()), 4u);
  EXPECT_EQ((loads_of<Members<float, 8>>()), 8u);
  EXPECT_EQ(loads_of<EightAligned>(), 1u);
  EXPECT_EQ(loads_of<SixteenAligned>(), 1u);
  EXPECT_EQ(loads_of<MixedMembers>(), 2u);
  EXPECT_EQ((loads_of<Members<uint16_t, 2>>()), 2u);
  // What the hooks do not tell: nvcc makes 4, 2, 3 and 2.
  EXPECT_EQ((loads_of<Members<uint16_t, 4>>()), 2u);
  EXPECT_EQ((loads_of<Members<double, 2>>()), 1u);
  EXPECT_EQ((loads_of<Members<double, 3>>()), 6u);
  EXPECT_EQ(loads_of<TwoSixteens>(), 8u);
}

TEST(Counters, Products) {
  const int n = 64;
  DeviceMemory a = ramp(n * n, "a"), b = ramp(n * n, "b"), c = ramp(n * n, "c");
  const LaunchConfig config{dim3(2, 2), dim3(32, 32)};
  Trace trace = trace_launch(parity::sgemm<true>, config, a, b, c, n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{16384, 270336, 40960}));
  trace = trace_launch(parity::sgemm<false>, config, a, b, c, n);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{16384, 40960, 40960}));
  trace = trace_launch(parity::sgemm_tiled<32>, config, a, b, c, n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{512, 2048, 2048}));
  EXPECT_EQ(sum(trace, Space::shared, Op::load), (Sum{16384, 16384, 16384}));
  EXPECT_EQ(sum(trace, Space::shared, Op::store), (Sum{512, 512, 512}));
}

TEST(Counters, TransposeConflicts) {
  const int n = 64;
  DeviceMemory in = ramp(n * n, "in"), out = ramp(n * n, "out");
  const LaunchConfig config{dim3(2, 2), dim3(32, 8)};
  Trace trace = trace_launch(parity::transpose<0>, config, in, out, n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{128, 512, 512}));
  EXPECT_EQ(sum(trace, Space::shared, Op::load), (Sum{128, 4096, 128}));
  trace = trace_launch(parity::transpose<1>, config, in, out, n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::shared, Op::load), (Sum{128, 128, 128}));
}

TEST(Counters, ReductionAndDivergence) {
  const int n = 10000;
  DeviceMemory in = ramp(n, "in"), out = ramp(1, "out");
  Trace trace = trace_launch(parity::reduce<8>, {4, 256}, in, out, n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{313, 1250, 1250}));
  EXPECT_EQ(sum(trace, Space::shared, Op::load), (Sum{4, 4, 4}));
  EXPECT_EQ(sum(trace, Space::global, Op::atomic), (Sum{4, 4, 4}));

  const int rows = 8, cols = 1000;
  DeviceMemory x = ramp(rows * cols, "x"), y = ramp(rows * cols, "y");
  trace = trace_launch(parity::softmax_online<float>, {2, 128}, x, y, rows, cols);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{512, 2000, 2000}));
}

TEST(Counters, WideSharedLoads) {
  DeviceMemory out = ramp(32, "out");
  const auto wavefronts = [&](auto kernel, int stride) {
    const Trace trace = trace_launch(kernel, {1, 32, 4096}, out, stride);
    EXPECT_NO_FINDINGS(trace);
    return sum(trace, Space::shared, Op::load, line_of("wide load"));
  };
  EXPECT_EQ(wavefronts(shared_wide<float2>, 1), (Sum{1, 2, 2}));
  EXPECT_EQ(wavefronts(shared_wide<float2>, 0), (Sum{1, 1, 1}));  // the halves agree: one phase
  EXPECT_EQ(wavefronts(shared_wide<float2>, 2), (Sum{1, 4, 2}));
  EXPECT_EQ(wavefronts(shared_wide<float4>, 1), (Sum{1, 4, 4}));
  EXPECT_EQ(wavefronts(shared_wide<float4>, 8), (Sum{1, 32, 4}));
}

TEST(Counters, DoNotDependOnWorkers) {
  const int n = 64;
  DeviceMemory a = ramp(n * n, "a"), b = ramp(n * n, "b"), c = ramp(n * n, "c");
  const auto run = [&](int workers) {
    simt::set_workers(workers);
    const Trace trace =
        trace_launch(parity::sgemm_tiled<32>, {dim3(2, 2), dim3(32, 32)}, a, b, c, n);
    EXPECT_NO_FINDINGS(trace);
    return simt::explain(trace);
  };
  const std::string one = run(1);
  EXPECT_EQ(one, run(2));
  EXPECT_EQ(one, run(3));
  simt::set_workers(2);
}

// Of each line the worst request is kept, of equal ones a typical one, whatever worker had it.
TEST(Counters, KeepTheWorstRequestOfALine) {
  const int n = 64;
  DeviceMemory in = ramp(n * n, "in"), out = ramp(n * n, "out");
  const auto worst = [](const Trace& trace, Space space, Op op) -> simt::Request {
    for (const AccessSite& site : trace.sites) {
      if (site.space == space && site.op == op && site.worst) return *site.worst;
    }
    return {};
  };
  EXPECT_EQ(worst(trace_launch(parity::transpose<0>, {dim3(2, 2), dim3(32, 8)}, in, out, n),
                  Space::shared, Op::load)
                .active,
            0u);
  simt::keep_requests = true;
  for (const int workers : {1, 3}) {
    simt::set_workers(workers);
    const Trace trace = trace_launch(parity::transpose<0>, {dim3(2, 2), dim3(32, 8)}, in, out, n);
    const simt::Request column = worst(trace, Space::shared, Op::load);
    EXPECT_EQ(column.units, 32u);
    EXPECT_EQ(column.ideal, 1u);
    EXPECT_EQ(column.active, ~0u);
    EXPECT_EQ(column.warp, 4u);
    EXPECT_EQ(column.block, (std::array<uint32_t, 3>{}));
    EXPECT_EQ(column.start, "tile");
    EXPECT_STREQ(column.rule, "load_store");
    for (uint64_t lane = 0; lane < 32; ++lane) EXPECT_EQ(column.address[lane], 128 * lane + 16);
    const simt::Request row = worst(trace, Space::global, Op::load);
    for (uint64_t lane = 0; lane < 32; ++lane) EXPECT_EQ(row.address[lane], 4 * n * 4 + 4 * lane);

    const Trace mixed = trace_launch(one_bad_block, {4, 64}, out);
    const simt::Request bad = worst(mixed, Space::global, Op::store);
    EXPECT_EQ(bad.block, (std::array<uint32_t, 3>{2, 0, 0}));
    EXPECT_EQ(bad.units - bad.ideal, 14u);
    EXPECT_EQ(bad.active, 0x0000ffffu);
    EXPECT_EQ(bad.address[1] - bad.address[0], 128u);
  }
  simt::keep_requests = false;
  simt::set_workers(2);
}

TEST(Counters, LinesOfInlinedFunctions) {
  DeviceMemory in = ramp(32, "in"), out = ramp(32, "out");
  const Trace trace = trace_launch(through_helper, {1, 32}, in, out);
  EXPECT_EQ(sum(trace, Space::global, Op::load, line_of("inlined load")), (Sum{1, 4, 4}));
  const std::string text = simt::explain(trace);
  EXPECT_CONTAINS(text, "model of the source as written");
  EXPECT_CONTAINS(text, place_of("inlined load"));
}

// ---- reconvergence ----------------------------------------------------------------------------
// The lanes of a warp diverge and must meet again as soon as they can: the requests and lanes of
// each line, counted by hand.

struct Expected {
  const char* text;  ///< part of the line
  Op op;
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
  const DeviceMemory in = ramp(kElements, "in"), out = ramp(kElements, "out");
  const Trace trace = trace_launch(kernel, {2, 32 * kWarps / 2}, in, out, kElements);
  EXPECT_NO_FINDINGS(trace);
  ASSERT_EQ(trace.sites.size(), expected.size()) << simt::explain(trace);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const AccessSite& site = trace.sites[i];
    EXPECT_CONTAINS(source_line(site.file, site.line), expected[i].text)
        << site.file << ":" << site.line;
    EXPECT_EQ(site.op, expected[i].op) << expected[i].text;
    EXPECT_EQ(site.requests, expected[i].requests) << expected[i].text;
    EXPECT_EQ(site.lanes, expected[i].lanes) << expected[i].text;
  }
}

constexpr auto kLoad = Op::load, kStore = Op::store;

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

TEST(Reconvergence, InlinedReturnsInLoop) {
  // In each step, one quarter of the lanes takes each of two early returns.
  expect_requests(parity::inlined_returns_in_loop,
                  {{"first = in[i]", kLoad, 4 * kWarps, 4 * 24 * kWarps},
                   {"second = in[n / 2 + i]", kLoad, 4 * kWarps, 4 * 16 * kWarps},
                   {"sum += in[i]", kLoad, 4 * kWarps, 4 * 32 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, InlinedReturnsTwice) {
  expect_requests(parity::inlined_returns_twice,
                  {{"first = in[i]", kLoad, 2 * kWarps, 2 * 24 * kWarps},
                   {"second = in[n / 2 + i]", kLoad, 2 * kWarps, 2 * 16 * kWarps},
                   {"out[i] = one + other", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, SortedInsertion) {
  expect_requests(parity::sorted_insertion,
                  {{"value = in[", kLoad, 16 * kWarps, 16 * 32 * kWarps},
                   {"out[i] = best[0]", kStore, kWarps, 32 * kWarps},
                   {"out[n / 2 + i] = best[3]", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, ReturnFromNestedLoops) {
  // As Breaks, twice.
  expect_requests(parity::return_from_nested_loops,
                  {{"sum += in[i]", kLoad, 2 * 7 * kWarps, 2 * 112 * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, 2 * kWarps, 2 * 32 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, ReturnsFromTemplates) {
  // Calls 3, 2, 1 have 24, 16, 8 lanes in both steps, call 0 has 8 in the second.
  expect_requests(parity::returns_from_templates,
                  {{"first = in[i]", kLoad, 7 * kWarps, (2 * 48 + 8) * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, 2 * kWarps, 2 * 32 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, AndCondition) {
  expect_requests(parity::and_condition,
                  {{"lane % 2 == 0 && in[n / 2 + i]", kLoad, kWarps, 16 * kWarps},
                   {"value = in[i]", kLoad, kWarps, 8 * kWarps},
                   {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, OrCondition) {
  // The 8 lanes that skip the load and the odd ones enter the branch together.
  expect_requests(parity::or_condition,
                  {{"lane % 4 == 0 || in[n / 2 + i]", kLoad, kWarps, 24 * kWarps},
                   {"value = in[i]", kLoad, kWarps, 24 * kWarps},
                   {"2.0f * in[i]", kLoad, kWarps, 8 * kWarps},
                   {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, MixedCondition) {
  // Both loads of the condition have 24 lanes, the branch has the upper half of those.
  expect_requests(parity::mixed_condition, {{"(lane % 4 == 0 || in[i] < one) && in[n / 2 + i]",
                                             kLoad, 2 * kWarps, 2 * 24 * kWarps},
                                            {"value = in[i]", kLoad, kWarps, 12 * kWarps},
                                            {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, TernaryChain) {
  expect_requests(parity::ternary_chain,
                  {{"turn == 0 ? in[i]", kLoad, 3 * kWarps, (8 + 8 + 16) * kWarps},
                   {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, ElseIfs) {
  expect_requests(parity::else_ifs, {{"value = in[i]", kLoad, kWarps, 4 * kWarps},
                                     {"2.0f * in[n / 2 + i]", kLoad, kWarps, 8 * kWarps},
                                     {"out[n / 2 + i]", kStore, kWarps, 8 * kWarps},
                                     {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, FallsThrough) {
  expect_requests(parity::falls_through, {{"case 0", kLoad, kWarps, 8 * kWarps},
                                          {"case 1", kLoad, kWarps, 16 * kWarps},
                                          {"case 2", kStore, kWarps, 8 * kWarps},
                                          {"out[i] = value", kStore, kWarps, 24 * kWarps}});
}

TEST(Reconvergence, ContinueInInnerLoop) {
  expect_requests(parity::continue_in_inner_loop,
                  {{"sum += in[i]", kLoad, 9 * kWarps, 9 * 16 * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, 3 * kWarps, 3 * 32 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, BreakOfInnerLoop) {
  // As TripCounts, in each of three steps.
  expect_requests(parity::break_of_inner_loop,
                  {{"sum += in[i]", kLoad, 3 * 3 * kWarps, 3 * 48 * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, 3 * kWarps, 3 * 32 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, SkippedInnerLoop) {
  // Even lanes make 0 or 2 inner steps, in the first and the last step; odd lanes 1 or 3.
  expect_requests(parity::skipped_inner_loop,
                  {{"sum += in[i]", kLoad, 3 * kWarps, 3 * 32 * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, (2 + 3 + 2) * kWarps, (16 + 32 + 16) * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, LoopAfterLoop) {
  expect_requests(parity::loop_after_loop,
                  {{"sum += in[i]", kLoad, 3 * kWarps, 48 * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, 4 * kWarps, 4 * 32 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, LoopsOnBothSides) {
  expect_requests(parity::loops_on_both_sides,
                  {{"sum += in[i]", kLoad, 2 * kWarps, 16 * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, 3 * kWarps, 32 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, DoWhile) {
  expect_requests(parity::do_while, {{"sum += in[i]", kLoad, 3 * kWarps, (32 + 16 + 8) * kWarps},
                                     {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, LoadingCondition) {
  expect_requests(parity::loading_condition,
                  {{"while (in[i] < limit)", kLoad, 4 * kWarps, (32 + 48) * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, 3 * kWarps, 48 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, EndlessLoop) {
  // Of the lanes that stay, the odd ones store after the first and the third step.
  expect_requests(parity::endless_loop,
                  {{"sum += in[i]", kLoad, 4 * kWarps, (32 + 48) * kWarps},
                   {"out[n / 2 + i] = sum", kStore, 3 * kWarps, (16 + 8 + 8) * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, EndlessLoopContinues) {
  expect_requests(parity::endless_loop_continues,
                  {{"sum += in[i]", kLoad, 4 * kWarps, (32 + 48) * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, 2 * kWarps, (8 + 8) * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, SameConditionTwice) {
  expect_requests(parity::same_condition_twice,
                  {{"value = in[i]", kLoad, kWarps, 16 * kWarps},
                   {"value += in[n / 2 + i]", kLoad, kWarps, 32 * kWarps},
                   {"out[n / 2 + i] = value", kStore, kWarps, 16 * kWarps},
                   {"out[i] = value", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, FoundFlag) {
  // Steps 0 to 3 have 32, 24, 16 and 8 lanes; all find it.
  expect_requests(parity::found_flag,
                  {{"sum += in[i]", kLoad, 4 * kWarps, 80 * kWarps},
                   {"sum += in[n / 2 + i]", kLoad, kWarps, 32 * kWarps},
                   {"if (found) out[n / 2 + i] = sum", kStore, kWarps, 32 * kWarps},
                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

TEST(Reconvergence, States) {
  // Lanes that start in state 0 or 1 are one or two steps later in state 2.
  expect_requests(parity::states, {{"case 0", kLoad, kWarps, 8 * kWarps},
                                   {"case 1", kLoad, 2 * kWarps, (8 + 4) * kWarps},
                                   {"default", kStore, 3 * kWarps, (8 + 12 + 4) * kWarps},
                                   {"out[i] = sum", kStore, kWarps, 32 * kWarps}});
}

// ---- races ------------------------------------------------------------------------------------

TEST(Races, MissingBarrier) {
  DeviceMemory x = ramp(256, "x");
  EXPECT_FINDING(trace_launch(reverse<false>, {1, 256}, x), "race",
                 {place_of("reverse store"), place_of("reverse load")});
  EXPECT_NO_FINDINGS(trace_launch(reverse<true>, {1, 256}, x));
}

TEST(Races, MissingSecondBarrier) {
  DeviceMemory in = ramp(32 * 128, "in"), out = ramp(1024, "out");
  const LaunchConfig config{1, dim3(32, 32)};
  const Trace trace = trace_launch(column_sums<false>, config, in, out, 128);
  const std::string store = place_of("tile store"), load = place_of("tile load");
  EXPECT_TRUE(has_finding(trace, "race", {"write after read", load, store}) ||
              has_finding(trace, "race", {"read after write", store, load}))
      << findings_of(trace);
  EXPECT_NO_FINDINGS(trace_launch(column_sums<true>, config, in, out, 128));
}

TEST(Races, WithinAWarp) {
  DeviceMemory x = ramp(32, "x");
  EXPECT_FINDING(trace_launch(exchange_in_warp<0>, {1, 32, 128}, x), "race", {"read after write"});
  EXPECT_FINDING(trace_launch(exchange_in_warp<2>, {1, 32, 128}, x), "race", {"read after write"});
  EXPECT_NO_FINDINGS(trace_launch(exchange_in_warp<1>, {1, 32, 128}, x));
}

TEST(Races, WriteAfterReadsOfManyWarps) {
  DeviceMemory x = ramp(256, "x");
  EXPECT_FINDING(trace_launch(broadcast_then_overwrite<false>, {1, 256, 16}, x), "race",
                 {"write after read"});
  EXPECT_NO_FINDINGS(trace_launch(broadcast_then_overwrite<true>, {1, 256, 16}, x));
}

TEST(Races, BytesOfAWordAreApart) {
  DeviceMemory x = ramp(64, "x");
  EXPECT_NO_FINDINGS(trace_launch(halves_of_a_word, {1, 64, 128}, x));
}

TEST(Races, AtomicsDoNotRace) {
  DeviceMemory in = ramp(128, "in"), out = ramp(8, "out");
  Trace trace = trace_launch(histogram<true>, {1, 128}, in, out);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::shared, Op::atomic).requests, 4u);
  EXPECT_FINDING(trace_launch(histogram<false>, {1, 128}, in, out), "race");
}

TEST(Races, BetweenBlocks) {
  DeviceMemory x = ramp(16, "x"), counter = zeros(1, "counter"), out = ramp(1, "out");
  EXPECT_FINDING(trace_launch(same_cell<true>, {8, 32}, x), "race", {"'x'", place_of("same cell")});
  EXPECT_NO_FINDINGS(trace_launch(same_cell<false>, {8, 32}, x));
  EXPECT_NO_FINDINGS(trace_launch(last_block_sums, {16, 32}, x, counter, out));
}

TEST(Races, OnGlobalMemoryWithinABlock) {
  DeviceMemory x = ramp(64, "x"), y = ramp(64, "y");
  const auto run = [&](auto kernel, unsigned threads) {
    return trace_launch(kernel, {1, threads}, x, y);
  };
  // Run one after the other, the lanes lose nothing: the result is right here and not on a GPU.
  y.fill(0);
  EXPECT_FINDING(run(in_one_block<InBlock::lost_update>, 32), "race",
                 {"thread (0,0,0)", "'y'", place_of("lost update"), "thread (1,0,0)",
                  "with no barrier between"});
  EXPECT_FINDING(run(in_one_block<InBlock::lost_update>, 2), "race", {"'y'"});
  EXPECT_FINDING(run(in_one_block<InBlock::late_update>, 32), "race",
                 {"thread (5,0,0)", "'y'", "thread (6,0,0)"});
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::lost_update>, 1));
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::atomic_update>, 64));
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::same_value>, 64));
  EXPECT_FINDING(
      run(in_one_block<InBlock::shift>, 32), "race",
      {" read ", "'x'", place_of("shift reads"), " writes it at ", place_of("shift writes")});
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::shift_in_step>, 32));
  EXPECT_FINDING(
      run(in_one_block<InBlock::handed>, 64), "race",
      {" wrote ", "'x'", place_of("handed writes"), " reads it at ", place_of("handed reads")});
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::in_step>, 64));
}

TEST(Races, Locks) {
  DeviceMemory value = zeros(1, "value"), lock = zeros(1, "lock");
  const auto run = [&](auto kernel, unsigned blocks) {
    lock.fill(0);
    return trace_launch(kernel, {blocks, 96}, value, lock);
  };
  for (const unsigned blocks : {1u, 3u}) {
    EXPECT_NO_FINDINGS(run(add_locked<Lock::right>, blocks));
    EXPECT_FINDING(run(add_locked<Lock::no_fence>, blocks), "race",
                   {"'value'", place_of("locked add")});
    EXPECT_NO_FINDINGS(run(add_locked<Lock::in_shared>, blocks));
    EXPECT_FINDING(run(add_locked<Lock::in_shared_no_fence>, blocks), "race",
                   {"'own_value'", place_of("locked add")});
  }
  EXPECT_NO_FINDINGS(run(add_locked<Lock::block_fence>, 1));
  EXPECT_NO_FINDINGS(run(add_locked<Lock::block_atomics>, 1));
  EXPECT_FINDING(run(add_locked<Lock::block_fence>, 2), "race", {"blocks ", "'value'"});
  EXPECT_FINDING(run(add_locked<Lock::block_atomics>, 2), "race", {"blocks ", "'value'"});
  DeviceMemory count = zeros(1, "count");
  EXPECT_NO_FINDINGS(trace_launch(count_blocks<false>, {2, 32}, count));
  EXPECT_NO_FINDINGS(trace_launch(count_blocks<true>, {1, 64}, count));
  EXPECT_FINDING(trace_launch(count_blocks<true>, {2, 32}, count), "race",
                 {"blocks ", "'count'", "updated at", "updates at", place_of("block count")});
}

TEST(Races, StoresOfOneValueAndOfSeveral) {
  DeviceMemory x = zeros(64, "x"), bytes(64, "bytes");
  const auto run = [&](auto kernel, unsigned blocks) {
    return trace_launch(kernel, {blocks, 64}, x, bytes);
  };
  for (const unsigned blocks : {1u, 2u}) {
    EXPECT_NO_FINDINGS(run(store_over<Over::same>, blocks));
    EXPECT_FINDING(run(store_over<Over::other>, blocks), "race",
                   {"'x'", place_of("stores of other values"), "writes"});
  }
  EXPECT_NO_FINDINGS(run(store_over<Over::same_shared>, 1));
  EXPECT_FINDING(run(store_over<Over::other_shared>, 1), "race",
                 {"'one'", place_of("shared stores of other values"), "writes"});
  EXPECT_FINDING(run(store_over<Over::volatile_count>, 1), "race",
                 {"'x'", place_of("volatile count"), "writes"});
  EXPECT_NO_FINDINGS(run(store_over<Over::bytes>, 1));
  EXPECT_FINDING(run(store_over<Over::same_byte>, 1), "race", {"'bytes'", place_of("one byte")});
}

// The tracer has 20 bits for a block's number. It must not name a wrong block, and must say so.
TEST(Races, BetweenMoreBlocksThanHaveNames) {
  const unsigned blocks = (1u << 20) + 2;
  DeviceMemory x(4, "x");
  const std::string notice = stderr_of([&] {
    EXPECT_NO_FINDINGS(trace_launch(same_cell_from, {blocks, 1}, x, blocks - 2));
  });
  EXPECT_CONTAINS(notice, "same_cell_from runs 1048578 blocks");
  EXPECT_CONTAINS(notice, "among the first 1048575");
}

// Threads beyond number 16,383, which the threads of a cluster do not reach.
TEST(Races, InACooperativeGridOfManyThreads) {
  DeviceMemory value(4, "value"), flag(4, "flag");
  const LaunchConfig config{.grid = 18, .block = 1024, .cooperative = true};
  const auto run = [&](auto kernel, unsigned first) {
    value.fill(0);
    flag.fill(0);
    return trace_launch(kernel, config, value, flag, first, 3);
  };
  simt::set_sm_count(9);
  const Trace in_turn = run(add_in_turn<true>, 0);
  EXPECT_EQ(download<int>(value)[0], 18 * 3);
  const Trace at_once = run(add_in_turn<false>, 16);
  simt::set_sm_count(0);
  EXPECT_NO_FINDINGS(in_turn);
  EXPECT_FINDING(at_once, "race", {"'value'", "from block (16,0,0)", "(block (17,0,0))"});
}

// The clock of a thread that has set a flag 140,000 times does not fit the 16 bits that are kept.
TEST(Races, InMoreTurnsThanAClockHas) {
  const DeviceMemory value = zeros(1, "value"), flag = zeros(1, "flag");
  const LaunchConfig config{.grid = 2, .block = 32, .cooperative = true};
  EXPECT_NO_FINDINGS(trace_launch(add_in_turn<true>, config, value, flag, 0u, 140000u));
}

TEST(Races, FlagsBetweenBlocks) {
  const DeviceMemory value = zeros(1, "value"), flag = zeros(1, "flag");
  EXPECT_NO_FINDINGS(trace_launch(flag_chain, {6, 32}, value, flag));
  EXPECT_EQ(download<int>(value)[0], 6);
}

TEST(Races, NamedBarriers) {
  DeviceMemory in = ramp(32 * 8, "in"), out = ramp(32 * 8, "out");
  EXPECT_NO_FINDINGS(trace_launch(ping_pong<true>, {1, 64, 128}, in, out, 8));
  EXPECT_FINDING(trace_launch(ping_pong<false>, {1, 64, 128}, in, out, 2), "race",
                 {place_of("produce"), place_of("consume")});
}

// ---- asynchronous units -----------------------------------------------------------------------

TEST(Async, CopiesOfThreads) {
  DeviceMemory in = ramp(256, "in"), out = ramp(256, "out");
  const auto check = [&] {
    const Trace trace = trace_launch(staged_copy<true>, {1, 64, 1024}, in, out);
    EXPECT_NO_FINDINGS(trace);
    EXPECT_EQ(sum(trace, Space::global, Op::async_load, line_of("cp_async")), (Sum{2, 32, 32}));
    EXPECT_EQ(sum(trace, Space::shared, Op::async_store, line_of("cp_async")), (Sum{2, 8, 8}));
    EXPECT_EQ(copy_wavefronts(trace), 8u);
    EXPECT_FINDING(trace_launch(staged_copy<false>, {1, 64, 1024}, in, out), "race",
                   {"read after write", place_of("cp_async"), place_of("staged load")});
  };
  for_all_schedules(check, {});  // late and early
}

TEST(Async, CopiesPassAsOftenAsTheirSlowerSide) {
  DeviceMemory in = ramp(1024, "in");
  const auto passes = [&](int offset, int per_row, int pitch, int stride, int readers,
                          int rounds = 1) {
    const Trace trace = trace_launch(copy_words, {1, 32, 1024}, in.as<float>() + offset, per_row,
                                     pitch, stride, readers, rounds);
    EXPECT_NO_FINDINGS(trace);
    // The banks of shared memory alone, which claims use.
    EXPECT_EQ(sum(trace, Space::shared, Op::async_store, line_of("word")),
              (Sum{uint64_t(rounds), uint64_t(rounds * stride), uint64_t(rounds)}));
    return copy_wavefronts(trace);
  };
  EXPECT_EQ(passes(0, 32, 0, 1, 32), 1u);
  EXPECT_EQ(passes(3, 32, 0, 1, 32), 1u);  // two 128-byte lines, but 32 columns
  EXPECT_EQ(passes(0, 8, 96, 1, 32), 4u);  // chapter 4's A: four rows in the same columns
  EXPECT_EQ(passes(5, 8, 96, 1, 32), 4u);
  EXPECT_EQ(passes(0, 8, 72, 1, 32), 1u);  // as many lines, in columns of their own
  EXPECT_EQ(passes(0, 8, 67, 1, 32), 3u);  // rows overlap by five columns
  EXPECT_EQ(passes(0, 8, 67, 1, 16), 2u);
  EXPECT_EQ(passes(0, 1, 0, 1, 32), 32u);  // one word to 32 places
  EXPECT_EQ(passes(0, 1, 0, 1, 0), 1u);    // zeros are not read
  EXPECT_EQ(passes(0, 8, 96, 1, 32, 2), 4u + 1u);
  EXPECT_EQ(passes(0, 32, 0, 2, 32), 2u);
  EXPECT_EQ(passes(0, 8, 96, 2, 32), 4u);
}

TEST(Async, MatrixLoads) {
  DeviceMemory out = ramp(32, "out");
  const auto wavefronts = [&](int pitch) {
    const Trace trace = trace_launch(load_matrices, {1, 32, 8192}, out, pitch);
    EXPECT_NO_FINDINGS(trace);
    return sum(trace, Space::shared, Op::load, line_of("ldmatrix"));
  };
  EXPECT_EQ(wavefronts(16), (Sum{1, 4, 4}));
  EXPECT_EQ(wavefronts(128), (Sum{1, 32, 4}));
  EXPECT_EQ(wavefronts(144), (Sum{1, 4, 4}));
}

TEST(Async, BulkLoads) {
  DeviceMemory in = ramp(128, "in"), out = ramp(128, "out");
  const auto check = [&] {
    const Trace trace = trace_launch(bulk_copy_in<Waits::all>, {1, 128, 1024}, in, out);
    EXPECT_NO_FINDINGS(trace);
    EXPECT_EQ(sum(trace, Space::global, Op::async_load, line_of("bulk load")), (Sum{1, 16, 16}));
    const std::string load = place_of("bulk load"), use = place_of("bulk use");
    const auto wrong = [&](auto kernel) { return trace_launch(kernel, {1, 128, 1024}, in, out); };
    EXPECT_FINDING(wrong(bulk_copy_in<Waits::nobody>), "race", {load, use});
    EXPECT_FINDING(wrong(bulk_copy_in<Waits::one>), "race", {use, load});
  };
  for_all_schedules(check, {});  // late and early
}

// The operations of a block are numbered from the same one: one operation per block is still as
// many requests as there are blocks.
TEST(Async, BulkLoadsOfBlocksAreCountedApart) {
  const DeviceMemory in(512, "in"), out(512, "out");
  const Trace trace = trace_launch(bulk_copy_in<Waits::all>, {6, 128, 1024}, in, out);
  EXPECT_EQ(sum(trace, Space::global, Op::async_load).requests, 6u);
  EXPECT_EQ(sum(trace, Space::shared, Op::async_store).requests, 6u);
}

TEST(Async, ProxyFences) {
  DeviceMemory out = ramp(128, "out");
  const TensorMap map = map_2d<float>(out.data(), 4, 32, 4, 32);
  const auto run = [&](auto kernel) { return trace_launch(kernel, {1, 128, 1024}, map); };
  EXPECT_NO_FINDINGS(run(tma_copy_out<1>));
  for (const Trace& trace :
       {run(tma_copy_out<0>), run(tma_copy_out<2>), run(tma_copy_out<3>), run(tma_copy_out<4>)}) {
    EXPECT_FINDING(trace, "proxy",
                   {place_of("ordinary store"), place_of("tma store"), "fence_proxy_async()"});
    EXPECT_FALSE(has_finding(trace, "race")) << findings_of(trace);
  }
  EXPECT_FINDING(run(tma_copy_out<5>), "race", {place_of("ordinary store"), place_of("tma store")});
}

// Additions of several blocks do not race, but they have no order. Those of one block are not told
// apart.
TEST(Async, BulkAdditions) {
  DeviceMemory sums = zeros(16, "sums"), seen = zeros(4, "seen");
  const auto run = [&](auto kernel, unsigned blocks) {
    return trace_launch(kernel, {blocks, 32, 1024}, sums, seen);
  };
  const Trace several = run(add_in_bulk<false>, 4);
  EXPECT_NO_FINDINGS(several);
  ASSERT_EQ(several.unordered_sums.size(), 1u);
  EXPECT_EQ(several.unordered_sums[0].kind, "runs-differ");
  for (const std::string& part :
       {std::string("'sums'"), place_of("bulk add"), std::string("differ from run to run")}) {
    EXPECT_NE(several.unordered_sums[0].message.find(part), std::string::npos)
        << several.unordered_sums[0].message;
  }
  EXPECT_TRUE(run(add_in_bulk<false>, 1).unordered_sums.empty());
  EXPECT_FINDING(run(add_in_bulk<true>, 4), "race", {"'sums'", place_of("early read")});
}

TEST(Async, OverwritingWhatIsStored) {
  DeviceMemory out = ramp(128, "out");
  const TensorMap map = map_2d<float>(out.data(), 4, 32, 4, 32);
  EXPECT_NO_FINDINGS(trace_launch(overwrite_stored<true>, {1, 128, 1024}, map));
  EXPECT_FINDING(trace_launch(overwrite_stored<false>, {1, 128, 1024}, map), "race",
                 {"write after read", place_of("tma store 2"), place_of("overwrite")});
}

TEST(Clusters, DistributedSharedMemory) {
  DeviceMemory out = ramp(4 * 32, "out");
  const LaunchConfig config{4, 32, 128, 2};
  EXPECT_NO_FINDINGS(trace_launch(neighbour_sum<true>, config, out));
  const Trace trace = trace_launch(neighbour_sum<false>, config, out);
  const std::string load = place_of("remote load");
  EXPECT_TRUE(has_finding(trace, "race", {place_of("own store"), "from block", load}) ||
              has_finding(trace, "uninitialised", {load}))
      << findings_of(trace);
}

TEST(Clusters, StaticSharedMemory) {
  DeviceMemory out = ramp(4 * 32, "out");
  EXPECT_NO_FINDINGS(trace_launch(static_in_cluster, {4, 32}, out));
  EXPECT_FINDING(trace_launch(static_in_cluster, {4, 32, 0, 2}, out), "static-shared",
                 {place_of("static store")});
}

// ---- addresses --------------------------------------------------------------------------------

TEST(Addresses, Uninitialised) {
  DeviceMemory x = ramp(64, "x");
  EXPECT_FINDING(
      trace_launch(partly_filled<false>, {1, 64, 256}, x), "uninitialised",
      {"thread (6,0,0)", "dynamic shared memory + 28 bytes", place_of("uninitialised load")});
  EXPECT_NO_FINDINGS(trace_launch(partly_filled<true>, {1, 64, 256}, x));
}

TEST(Addresses, OutOfBounds) {
  DeviceMemory in = ramp(256, "in"), out = ramp(256, "out");
  const auto run = [&](int shift) {
    return [&, shift] { run_kernel(shifted_copy, {1, 256}, in, out, shift); };
  };
  EXPECT_NO_FINDINGS(trace_of(run(0)));
  for (const int shift : {1, -1}) {
    const Trace trace = trace_of(run(shift));
    ASSERT_EQ(trace.findings.size(), 1u);
    EXPECT_FINDING(trace, "out-of-bounds", {"'in'", place_of("shifted load")});
    EXPECT_EQ(trace.findings[0].count, 1u);
  }
  std::string message;
  EXPECT_FINDING(trace_of(run(1 << 28), &message), "out-of-bounds");
  EXPECT_CONTAINS(message, "out of bounds");
  EXPECT_CONTAINS(message, place_of("shifted load"));
}

TEST(Addresses, DynamicSharedSize) {
  DeviceMemory x = ramp(32, "x");
  EXPECT_NO_FINDINGS(trace_launch(shared_index, {1, 32, 128}, x, 0));
  EXPECT_FINDING(trace_launch(shared_index, {1, 32, 128}, x, 32), "out-of-bounds",
                 {"dynamic shared memory"});
}

// There is a gap between the arrays of a kernel: an access beyond one is not in another.
template <class T>
__global__ void beyond(const T* in, T* out, int shift) {
  __shared__ T first[64];
  __shared__ T second[64];
  const int t = threadIdx.x;
  first[t] = in[t];
  second[t] = in[t];
  __syncthreads();
  out[t] = first[t + shift] + second[63 - t];  // [beyond load]
}
__global__ void store_beyond(const float* in, float* out, int shift) {
  __shared__ float rows[8][16];
  __shared__ float other[128];
  const int t = threadIdx.x;
  other[t] = in[t];
  rows[t / 16 + shift][t % 16] = in[t];  // [beyond store]
  __syncthreads();
  out[t] = other[t] + (shift == 0 ? rows[t / 16][t % 16] : 0.0f);
}

TEST(Addresses, StaticSharedSize) {
  DeviceMemory in = ramp(128, "in"), out = ramp(128, "out");
  const auto read = [&](int shift) { return trace_launch(beyond<float>, {1, 64}, in, out, shift); };
  const auto write = [&](int shift) {
    return trace_launch(store_beyond, {1, 128}, in, out, shift);
  };
  EXPECT_NO_FINDINGS(read(0));
  EXPECT_NO_FINDINGS(write(0));
  for (const int shift : {1, -1}) {
    const Trace trace = read(shift);
    ASSERT_EQ(trace.findings.size(), 1u) << findings_of(trace);
    EXPECT_EQ(trace.findings[0].count, 1u);
    EXPECT_FINDING(
        trace, "out-of-bounds",
        {shift > 0 ? "reads 4 bytes at byte offset 256 of the __shared__ variable 'first'"
                   : "reads 4 bytes at byte offset -4 of the __shared__ variable 'first'",
         "which has 256 bytes", place_of("beyond load")});
    const Trace rows = write(shift);
    EXPECT_FINDING(
        rows, "out-of-bounds",
        {shift > 0 ? "writes 4 bytes at byte offset 512 of the __shared__ variable 'rows'"
                   : "writes 4 bytes at byte offset -64 of the __shared__ variable 'rows'",
         place_of("beyond store")});
    EXPECT_EQ(rows.findings[0].count, 16u);
  }
}

// On a GPU every thread has its own local memory, whatever the address.
__global__ void borrowed(const float* in, float* out, int lane) {
  __shared__ float* where[32];
  float local = in[threadIdx.x];
  where[threadIdx.x] = &local;
  __syncthreads();
  out[threadIdx.x] = *where[threadIdx.x ^ lane];  // [borrowed load]
  __syncthreads();
}

TEST(Addresses, AnotherThreadsLocalMemory) {
  DeviceMemory in = ramp(32, "in"), out = ramp(32, "out");
  EXPECT_NO_FINDINGS(trace_launch(borrowed, {1, 32}, in, out, 0));
  EXPECT_FINDING(trace_launch(borrowed, {1, 32}, in, out, 1), "out-of-bounds",
                 {"reads 4 bytes of another thread's local memory", place_of("borrowed load")});
}

int of_the_host = 0;
enum class Written { global, thread_index };
// What belongs to no kernel, and would be memory that nobody counts.
__global__ void writes_elsewhere(Written what, int* global) {
  int* const index = reinterpret_cast<int*>(const_cast<unsigned*>(&threadIdx.z));
  int* const place = what == Written::global ? global : index;
  if (threadIdx.x == 0) *place = 0;  // [elsewhere]
}
__global__ void all_match(int value, int* out) {
  int* const equal = &out[threadIdx.x];
  __match_all_sync(0xffffffffu, value, equal);  // [match]
}

TEST(Addresses, WhatBelongsToNoKernelIsNotWritten) {
  const auto error = [](Written what) {
    std::string said;
    trace_of([&] { run_kernel(writes_elsewhere, {1, 32}, what, &of_the_host); }, &said);
    return said;
  };
  EXPECT_CONTAINS(error(Written::global), "writes 4 bytes through a pointer to host memory");
  EXPECT_CONTAINS(error(Written::thread_index), "writes 4 bytes of the backend's own");
  DeviceMemory out = ramp(32, "out");
  const Trace trace = trace_launch(all_match, {1, 32}, 42, out);
  EXPECT_EQ(sum(trace, Space::global, Op::store), (Sum{1, 4, 4}));
}

__global__ void racing_rows(const float* in, float* out) {
  __shared__ float unused_one[32];
  __shared__ float rows[2][32];
  const int t = threadIdx.x;
  unused_one[t % 32] = static_cast<float>(t);
  rows[t / 32][t % 32] = in[t];
  out[t] = rows[1 - t / 32][t % 32];
  out[t] += unused_one[t % 32];
}

TEST(Addresses, RacesNameTheVariable) {
  DeviceMemory in = ramp(64, "in"), out = ramp(64, "out");
  const Trace trace = trace_launch(racing_rows, {1, 64}, in, out);
  EXPECT_FINDING(trace, "race", {"on 'rows' + "});
  EXPECT_FINDING(trace, "race", {"on 'unused_one' + "});
}

// ---- signed arithmetic --------------------------------------------------------------------------

__global__ void last_index(const int* in, long long* out, int stride) {
  const int row = in[threadIdx.x];
  out[threadIdx.x] = row * stride;  // [overflowing product]
}
__global__ void grid_stride(long long* out, int n, int start) {
  long long steps = 0;
  int i = start + static_cast<int>(threadIdx.x);
  for (; i < n && steps < 4; i += 1 << 20) ++steps;  // [int index]
  out[threadIdx.x] = steps;
}
__global__ void unsigned_wraps(unsigned* out, unsigned factor) {
  out[threadIdx.x] = threadIdx.x * factor;
}

TEST(Arithmetic, SignedOverflow) {
  const DeviceMemory rows = upload(std::vector<int>(32, 65536), "rows"), out(32 * 8, "out");
  const auto index = [&](int stride) {
    return trace_launch(last_index, {1, 32}, rows, out, stride);
  };
  EXPECT_NO_FINDINGS(index(32767));
  const Trace trace = index(32768);
  EXPECT_FINDING(trace, "overflow",
                 {"65536 * 32768, which does not fit in 'int'", place_of("overflowing product")});
  ASSERT_EQ(trace.findings.size(), 1u);
  EXPECT_EQ(trace.findings[0].count, 32u);

  const auto loop = [&](int n) { return trace_launch(grid_stride, {1, 32}, out, n, n - 64); };
  EXPECT_NO_FINDINGS(loop(1 << 30));
  EXPECT_FINDING(loop(2147483647), "overflow",
                 {" + 1048576, which does not fit", place_of("int index")});

  EXPECT_NO_FINDINGS(trace_launch(unsigned_wraps, {1, 32}, out, 0xffffffffu));
}

// What a level's host part computes, such as a number of blocks.
TEST(Arithmetic, OfHostCode) {
  volatile int rows = 65536, cols = 32768;
  simt::take_host_overflows();
  [[maybe_unused]] volatile int blocks = rows * cols;  // [host product]
  const std::vector<simt::Finding> found = simt::take_host_overflows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "overflow");
  EXPECT_EQ(found[0].message,
            "overflow: host code computes 65536 * 32768, which does not fit in 'int', at " +
                place_of("host product"));
  EXPECT_EQ(found[0].remedy, "convert an operand to std::int64_t first");
  EXPECT_EQ(simt::take_host_overflows().size(), 0u);
}

TEST(Addresses, Misaligned) {
  DeviceMemory in = ramp(256, "in"), out = ramp(32, "out");
  EXPECT_NO_FINDINGS(trace_launch(load_float4_at, {1, 32}, in, out, 4));
  std::string message;
  for (const int offset : {1, 2}) {
    const auto run = [&] { run_kernel(load_float4_at, {1, 32}, in, out, offset); };
    EXPECT_FINDING(trace_of(run, &message), "misaligned", {place_of("vector load")});
    EXPECT_CONTAINS(message, "misaligned");
  }
  // Two doubles need a multiple of 8 only.
  EXPECT_NO_FINDINGS(trace_launch(copy_doubles_at, {1, 8}, in, out, 0));
  const Trace trace = trace_launch(copy_doubles_at, {1, 7}, in, out, 2);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load).requests, 2u);
}

TEST(Addresses, DivergentBarrier) {
  DeviceMemory x = ramp(128, "x");
  std::string message;
  trace_of([&] { run_kernel(divergent_barrier, {1, 128}, x); }, &message);
  EXPECT_NE(message, "");
}

TEST(Tracing, NothingIsRecordedOutside) {
  DeviceMemory in = ramp(256, "in"), out = ramp(256, "out");
  EXPECT_TRUE(simt::tracing_available());
  run_kernel(parity::copy_coalesced<float>, {1, 256}, in, out, 256);
  EXPECT_TRUE(trace_of([] {}).sites.empty());
}

TEST(Tracer, HiddenGuardVariablesOfSharedArraysAreNotReported) {
  const DeviceMemory in(128, "in"), out(128, "out");
  EXPECT_NO_FINDINGS(trace_launch(reverse_narrow<bf16>, {1, 64}, in, out));
}

}  // namespace
}  // namespace cookbook
