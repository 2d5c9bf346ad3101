// SPDX-License-Identifier: MIT
//
// The tracer: counters equal to a GPU's on ordinary kernels, and every check with a kernel that has
// the mistake and one that has not. This file is compiled as kernels are for tracing.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "common/backend/tensor_map.hpp"
#include "common/device/cluster.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/mma.cuh"
#include "common/device/sync.cuh"
#include "common/device/tma.cuh"
#include "tests/ended.hpp"
#include "tests/places.hpp"
#include "tests/text.hpp"
#include "tests/traced.hpp"

namespace cookbook {
namespace {

using simt::AccessSite;
using simt::Op;
using simt::Space;
using simt::Trace;

// ---- kernels whose counters are compared with a GPU's -----------------------------------------

__global__ void copy(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

__global__ void copy_strided(const float* in, float* out, int n, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = (i * stride) % n + (i * stride) / n;
  if (i < n) out[j] = in[j];
}

__global__ void copy_float4(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i < n) {
    float4 v = reinterpret_cast<const float4*>(in)[i];
    v.x += 1.0f;
    v.w += 1.0f;
    reinterpret_cast<float4*>(out)[i] = v;
  }
}

template <bool kRowFromX>
__global__ void sgemm(const float* a, const float* b, float* c, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int row = kRowFromX ? x : y;
  const int col = kRowFromX ? y : x;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}

__global__ void sgemm_tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float a_tile[32][32];
  __shared__ float b_tile[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * 32 + ty, col = blockIdx.x * 32 + tx;
  float sum = 0.0f;
  for (int t = 0; t < n; t += 32) {
    a_tile[ty][tx] = a[row * n + t + tx];
    b_tile[ty][tx] = b[(t + ty) * n + col];
    __syncthreads();
    for (int k = 0; k < 32; ++k) sum += a_tile[ty][k] * b_tile[k][tx];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

template <int kPad>
__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][32 + kPad];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float part[32];
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += in[i];
  }
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}

__global__ void online_softmax(const float* in, float* out, int rows, int cols) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float m = -INFINITY, d = 0.0f;
  for (int c = lane; c < cols; c += 32) {
    const float x = in[row * cols + c], next = fmaxf(m, x);
    d = d * expf(m - next) + expf(x - next);
    m = next;
  }
  for (int o = 16; o > 0; o >>= 1) {
    const float other_m = __shfl_xor_sync(0xffffffffu, m, o);
    const float other_d = __shfl_xor_sync(0xffffffffu, d, o);
    const float next = fmaxf(m, other_m);
    d = d * expf(m - next) + other_d * expf(other_m - next);
    m = next;
  }
  for (int c = lane; c < cols; c += 32) out[row * cols + c] = expf(in[row * cols + c] - m) / d;
}

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

/// A bulk load into shared memory, which every thread then reads.
template <bool kWait>
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
  if (kWait) mbarrier_wait(&bar, 0);
  out[threadIdx.x] = s[threadIdx.x];  // [bulk use]
  __syncthreads();
  mbarrier_wait(&bar, 0);
}

/// Ordinary stores, then a TMA store of them. Where the fence stands: 0 nowhere, 1 in the writing
/// threads, 2 in the issuing thread only, 3 in the writing threads but after the barrier. 4: where
/// it belongs, but the fence of global memory.
template <int kFence>
__global__ void tma_copy_out(const __grid_constant__ TensorMap map) {
  float* s = dynamic_shared<float>();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);  // [ordinary store]
  if (kFence == 1) fence_proxy_async();
  if (kFence == 4) fence_proxy_async_global();
  __syncthreads();
  if (kFence == 3) fence_proxy_async();
  if (threadIdx.x == 0) {
    if (kFence == 2) fence_proxy_async();
    tma_store_2d(&map, s, 0, 0);  // [tma store]
    tma_store_commit();
    tma_store_wait<0>();
  }
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
  DeviceMemory memory(n * sizeof(float), name);
  memory.copy_from_host(values.data(), n * sizeof(float));
  return memory;
}

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

bool has(const Trace& trace, const std::string& kind, const std::vector<std::string>& parts = {}) {
  for (const auto& finding : trace.findings) {
    if (finding.kind != kind) continue;
    bool all = true;
    for (const std::string& part : parts) {
      all = all && finding.message.find(part) != std::string::npos;
    }
    if (all) return true;
  }
  return false;
}

#define EXPECT_FINDING(trace, ...) EXPECT_TRUE(has(trace, __VA_ARGS__)) << findings_of(trace)

// ---- counters ---------------------------------------------------------------------------------

TEST(Counters, Copies) {
  const int n = 1 << 14;
  DeviceMemory in = ramp(n, "in"), out = ramp(n, "out");
  Trace trace = trace_launch(copy, {n / 256, 256}, in.as<float>(), out.as<float>(), n);
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

  trace = trace_launch(copy_strided, {n / 256, 256}, in.as<float>(), out.as<float>(), n, 32);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{512, 16384, 2048}));

  trace = trace_launch(copy_float4, {n / 1024, 256}, in.as<float>(), out.as<float>(), n);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{128, 2048, 2048}));
  EXPECT_EQ(sum(trace, Space::global, Op::store), (Sum{128, 2048, 2048}));
}

TEST(Counters, Products) {
  const int n = 64;
  DeviceMemory a = ramp(n * n, "a"), b = ramp(n * n, "b"), c = ramp(n * n, "c");
  const LaunchConfig config{dim3(2, 2), dim3(32, 32)};
  const auto run = [&](auto kernel) {
    return trace_of(
        [&] { launch(kernel, config, {}, a.as<float>(), b.as<float>(), c.as<float>(), n); });
  };
  Trace trace = run(sgemm<true>);
  EXPECT_NO_FINDINGS(trace);
  Sum loads = sum(trace, Space::global, Op::load);
  EXPECT_EQ(loads.requests, 16384u);
  EXPECT_EQ(loads.units, 270336u);

  trace = run(sgemm<false>);
  loads = sum(trace, Space::global, Op::load);
  EXPECT_EQ(loads.requests, 16384u);
  EXPECT_EQ(loads.units, 40960u);

  trace = run(sgemm_tiled);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{512, 2048, 2048}));
  EXPECT_EQ(sum(trace, Space::shared, Op::load), (Sum{16384, 16384, 16384}));
  EXPECT_EQ(sum(trace, Space::shared, Op::store), (Sum{512, 512, 512}));
}

TEST(Counters, TransposeConflicts) {
  const int n = 64;
  DeviceMemory in = ramp(n * n, "in"), out = ramp(n * n, "out");
  const LaunchConfig config{dim3(2, 2), dim3(32, 8)};
  Trace trace = trace_launch(transpose<0>, config, in.as<float>(), out.as<float>(), n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{128, 512, 512}));
  EXPECT_EQ(sum(trace, Space::shared, Op::load), (Sum{128, 4096, 128}));
  trace = trace_launch(transpose<1>, config, in.as<float>(), out.as<float>(), n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::shared, Op::load), (Sum{128, 128, 128}));
}

TEST(Counters, ReductionAndDivergence) {
  const int n = 10000;
  DeviceMemory in = ramp(n, "in"), out = ramp(1, "out");
  Trace trace = trace_launch(reduce, {4, 256}, in.as<float>(), out.as<float>(), n);
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::global, Op::load), (Sum{313, 1250, 1250}));
  EXPECT_EQ(sum(trace, Space::shared, Op::load), (Sum{4, 4, 4}));
  EXPECT_EQ(sum(trace, Space::global, Op::atomic), (Sum{4, 4, 4}));

  const int rows = 8, cols = 1000;
  DeviceMemory x = ramp(rows * cols, "x"), y = ramp(rows * cols, "y");
  trace = trace_launch(online_softmax, {2, 128}, x.as<float>(), y.as<float>(), rows, cols);
  EXPECT_NO_FINDINGS(trace);
  const Sum loads = sum(trace, Space::global, Op::load);
  EXPECT_EQ(loads.requests, 512u);
  EXPECT_EQ(loads.units, 2000u);
}

TEST(Counters, WideSharedLoads) {
  DeviceMemory out = ramp(32, "out");
  const auto wavefronts = [&](auto kernel, int stride) {
    const Trace trace = trace_launch(kernel, {1, 32, 4096}, out.as<float>(), stride);
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
    const Trace trace = trace_launch(sgemm_tiled, {dim3(2, 2), dim3(32, 32)}, a.as<float>(),
                                     b.as<float>(), c.as<float>(), n);
    EXPECT_NO_FINDINGS(trace);
    return simt::explain(trace);
  };
  const std::string one = run(1);
  EXPECT_EQ(one, run(2));
  EXPECT_EQ(one, run(3));
  simt::set_workers(2);
}

TEST(Counters, LinesOfInlinedFunctions) {
  DeviceMemory in = ramp(32, "in"), out = ramp(32, "out");
  const Trace trace = trace_launch(through_helper, {1, 32}, in.as<float>(), out.as<float>());
  EXPECT_EQ(sum(trace, Space::global, Op::load, line_of("inlined load")), (Sum{1, 4, 4}));
  const std::string text = simt::explain(trace);
  EXPECT_CONTAINS(text, "model of the source as written");
  EXPECT_CONTAINS(text, place_of("inlined load"));
}

// ---- races ------------------------------------------------------------------------------------

TEST(Races, MissingBarrier) {
  DeviceMemory x = ramp(256, "x");
  Trace trace = trace_launch(reverse<false>, {1, 256}, x.as<float>());
  EXPECT_FINDING(trace, "race", {place_of("reverse store"), place_of("reverse load")});
  trace = trace_launch(reverse<true>, {1, 256}, x.as<float>());
  EXPECT_NO_FINDINGS(trace);
}

TEST(Races, MissingSecondBarrier) {
  DeviceMemory in = ramp(32 * 128, "in"), out = ramp(1024, "out");
  const LaunchConfig config{1, dim3(32, 32)};
  Trace trace = trace_launch(column_sums<false>, config, in.as<float>(), out.as<float>(), 128);
  EXPECT_TRUE(
      has(trace, "race", {"write after read", place_of("tile load"), place_of("tile store")}) ||
      has(trace, "race", {"read after write", place_of("tile load"), place_of("tile store")}))
      << findings_of(trace);
  trace = trace_launch(column_sums<true>, config, in.as<float>(), out.as<float>(), 128);
  EXPECT_NO_FINDINGS(trace);
}

TEST(Races, WithinAWarp) {
  DeviceMemory x = ramp(32, "x");
  Trace trace = trace_launch(exchange_in_warp<0>, {1, 32, 128}, x.as<float>());
  EXPECT_FINDING(trace, "race", {"read after write"});
  trace = trace_launch(exchange_in_warp<2>, {1, 32, 128}, x.as<float>());
  EXPECT_FINDING(trace, "race", {"read after write"});
  trace = trace_launch(exchange_in_warp<1>, {1, 32, 128}, x.as<float>());
  EXPECT_NO_FINDINGS(trace);
}

TEST(Races, WriteAfterReadsOfManyWarps) {
  DeviceMemory x = ramp(256, "x");
  Trace trace = trace_launch(broadcast_then_overwrite<false>, {1, 256, 16}, x.as<float>());
  EXPECT_FINDING(trace, "race", {"write after read"});
  trace = trace_launch(broadcast_then_overwrite<true>, {1, 256, 16}, x.as<float>());
  EXPECT_NO_FINDINGS(trace);
}

TEST(Races, BytesOfAWordAreApart) {
  DeviceMemory x = ramp(64, "x");
  EXPECT_NO_FINDINGS(trace_launch(halves_of_a_word, {1, 64, 128}, x.as<unsigned short>()));
}

TEST(Races, AtomicsDoNotRace) {
  DeviceMemory in = ramp(128, "in"), out = ramp(8, "out");
  Trace trace = trace_launch(histogram<true>, {1, 128}, in.as<int>(), out.as<int>());
  EXPECT_NO_FINDINGS(trace);
  EXPECT_EQ(sum(trace, Space::shared, Op::atomic).requests, 4u);
  trace = trace_launch(histogram<false>, {1, 128}, in.as<int>(), out.as<int>());
  EXPECT_FINDING(trace, "race");
}

TEST(Races, BetweenBlocks) {
  DeviceMemory x = ramp(16, "x"), counter(4, "counter"), out = ramp(1, "out");
  Trace trace = trace_launch(same_cell<true>, {8, 32}, x.as<int>());
  EXPECT_FINDING(trace, "race", {"'x'", place_of("same cell")});
  EXPECT_NO_FINDINGS(trace_launch(same_cell<false>, {8, 32}, x.as<int>()));
  counter.fill(0);
  EXPECT_NO_FINDINGS(
      trace_launch(last_block_sums, {16, 32}, x.as<int>(), counter.as<unsigned>(), out.as<int>()));
}

TEST(Races, OnGlobalMemoryWithinABlock) {
  DeviceMemory x = ramp(64, "x"), y = ramp(64, "y");
  const auto run = [&](auto kernel, unsigned threads) {
    return trace_launch(kernel, {1, threads}, x.as<int>(), y.as<int>());
  };
  // Run one after the other, the lanes lose nothing: the result is right here and not on a GPU.
  y.fill(0);
  Trace trace = run(in_one_block<InBlock::lost_update>, 32);
  EXPECT_FINDING(trace, "race",
                 {"'y'", "thread (0,0,0)", "thread (1,0,0)", place_of("lost update"),
                  "with no barrier between"});
  EXPECT_FINDING(run(in_one_block<InBlock::lost_update>, 2), "race", {"'y'"});
  trace = run(in_one_block<InBlock::late_update>, 32);
  EXPECT_FINDING(trace, "race", {"'y'", "thread (5,0,0)", "thread (6,0,0)"});
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::lost_update>, 1));
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::atomic_update>, 64));
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::same_value>, 64));
  trace = run(in_one_block<InBlock::shift>, 32);
  EXPECT_FINDING(
      trace, "race",
      {"'x'", " read ", place_of("shift reads"), " writes it at ", place_of("shift writes")});
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::shift_in_step>, 32));
  trace = run(in_one_block<InBlock::handed>, 64);
  EXPECT_FINDING(
      trace, "race",
      {"'x'", " wrote ", place_of("handed writes"), " reads it at ", place_of("handed reads")});
  EXPECT_NO_FINDINGS(run(in_one_block<InBlock::in_step>, 64));
}

// The tracer has 20 bits for a block's number. It must not name a wrong block, and must say so.
TEST(Races, BetweenMoreBlocksThanHaveNames) {
  const unsigned blocks = (1u << 20) + 2;
  DeviceMemory x(4, "x");
  Trace trace;
  const std::string notice = stderr_of([&] {
    trace = trace_launch(same_cell_from, {blocks, 1}, x.as<unsigned>(), blocks - 2);
  });
  EXPECT_NO_FINDINGS(trace);
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
    return trace_of(
        [&] { launch(kernel, config, {}, value.as<int>(), flag.as<unsigned>(), first, 3); });
  };
  simt::set_sm_count(9);
  const Trace in_turn = run(add_in_turn<true>, 0);
  int sum = 0;
  value.copy_to_host(&sum, 4);
  const Trace at_once = run(add_in_turn<false>, 16);
  simt::set_sm_count(0);
  EXPECT_NO_FINDINGS(in_turn);
  EXPECT_EQ(sum, 18 * 3);
  EXPECT_FINDING(at_once, "race", {"'value'", "from block (16,0,0)", "(block (17,0,0))"});
}

// The clock of a thread that has set a flag 140,000 times does not fit the 16 bits that are kept.
TEST(Races, InMoreTurnsThanAClockHas) {
  DeviceMemory value(4, "value"), flag(4, "flag");
  value.fill(0);
  flag.fill(0);
  const LaunchConfig config{.grid = 2, .block = 32, .cooperative = true};
  EXPECT_NO_FINDINGS(
      trace_launch(add_in_turn<true>, config, value.as<int>(), flag.as<unsigned>(), 0u, 140000u));
}

TEST(Races, FlagsBetweenBlocks) {
  DeviceMemory value(4, "value"), flag(4, "flag");
  value.fill(0);
  flag.fill(0);
  EXPECT_NO_FINDINGS(trace_launch(flag_chain, {6, 32}, value.as<int>(), flag.as<unsigned>()));
  int result = 0;
  value.copy_to_host(&result, 4);
  EXPECT_EQ(result, 6);
}

TEST(Races, NamedBarriers) {
  DeviceMemory in = ramp(32 * 8, "in"), out = ramp(32 * 8, "out");
  Trace trace = trace_launch(ping_pong<true>, {1, 64, 128}, in.as<float>(), out.as<float>(), 8);
  EXPECT_NO_FINDINGS(trace);
  trace = trace_launch(ping_pong<false>, {1, 64, 128}, in.as<float>(), out.as<float>(), 2);
  EXPECT_FINDING(trace, "race", {place_of("produce"), place_of("consume")});
}

// ---- asynchronous units -----------------------------------------------------------------------

TEST(Async, CopiesOfThreads) {
  DeviceMemory in = ramp(256, "in"), out = ramp(256, "out");
  for (const auto schedule : {simt::AsyncSchedule::late, simt::AsyncSchedule::early}) {
    simt::set_async_schedule(schedule);
    Trace trace = trace_launch(staged_copy<true>, {1, 64, 1024}, in.as<float>(), out.as<float>());
    EXPECT_NO_FINDINGS(trace);
    EXPECT_EQ(sum(trace, Space::global, Op::async_load, line_of("cp_async")), (Sum{2, 32, 32}));
    EXPECT_EQ(sum(trace, Space::shared, Op::async_store, line_of("cp_async")), (Sum{2, 8, 8}));
    EXPECT_EQ(copy_wavefronts(trace), 8u);
    trace = trace_launch(staged_copy<false>, {1, 64, 1024}, in.as<float>(), out.as<float>());
    EXPECT_FINDING(trace, "race",
                   {"read after write", place_of("cp_async"), place_of("staged load")});
  }
  simt::set_async_schedule(simt::AsyncSchedule::late);
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
    const Trace trace = trace_launch(load_matrices, {1, 32, 8192}, out.as<float>(), pitch);
    EXPECT_NO_FINDINGS(trace);
    return sum(trace, Space::shared, Op::load, line_of("ldmatrix"));
  };
  EXPECT_EQ(wavefronts(16), (Sum{1, 4, 4}));
  EXPECT_EQ(wavefronts(128), (Sum{1, 32, 4}));
  EXPECT_EQ(wavefronts(144), (Sum{1, 4, 4}));
}

TEST(Async, BulkLoads) {
  DeviceMemory in = ramp(128, "in"), out = ramp(128, "out");
  for (const auto schedule : {simt::AsyncSchedule::late, simt::AsyncSchedule::early}) {
    simt::set_async_schedule(schedule);
    Trace trace = trace_launch(bulk_copy_in<true>, {1, 128, 1024}, in.as<float>(), out.as<float>());
    EXPECT_NO_FINDINGS(trace);
    EXPECT_EQ(sum(trace, Space::global, Op::async_load, line_of("bulk load")), (Sum{1, 16, 16}));
    trace = trace_launch(bulk_copy_in<false>, {1, 128, 1024}, in.as<float>(), out.as<float>());
    EXPECT_FINDING(trace, "race", {place_of("bulk load"), place_of("bulk use")});
  }
  simt::set_async_schedule(simt::AsyncSchedule::late);
}

// The operations of a block are numbered from the same one: one operation per block is still as
// many requests as there are blocks.
TEST(Async, BulkLoadsOfBlocksAreCountedApart) {
  const DeviceMemory in(512, "in"), out(512, "out");
  const Trace trace =
      trace_launch(bulk_copy_in<true>, {6, 128, 1024}, in.as<float>(), out.as<float>());
  EXPECT_EQ(sum(trace, Space::global, Op::async_load).requests, 6u);
  EXPECT_EQ(sum(trace, Space::shared, Op::async_store).requests, 6u);
}

TensorMap map_of(const DeviceMemory& memory) {
  TensorMapSpec spec;
  spec.dtype = TensorType::f32;
  spec.base = memory.data();
  spec.extents = {32, 4};
  spec.strides_bytes = {128};
  spec.box = {32, 4};
  return make_tensor_map(spec);
}

TEST(Async, ProxyFences) {
  DeviceMemory out = ramp(128, "out");
  const TensorMap map = map_of(out);
  const auto run = [&](auto kernel) { return trace_launch(kernel, {1, 128, 1024}, map); };
  EXPECT_NO_FINDINGS(run(tma_copy_out<1>));
  for (const Trace& trace :
       {run(tma_copy_out<0>), run(tma_copy_out<2>), run(tma_copy_out<3>), run(tma_copy_out<4>)}) {
    EXPECT_FINDING(trace, "proxy",
                   {place_of("ordinary store"), place_of("tma store"), "fence_proxy_async()"});
    EXPECT_FALSE(has(trace, "race")) << findings_of(trace);
  }
}

TEST(Async, OverwritingWhatIsStored) {
  DeviceMemory out = ramp(128, "out");
  const TensorMap map = map_of(out);
  EXPECT_NO_FINDINGS(trace_launch(overwrite_stored<true>, {1, 128, 1024}, map));
  const Trace trace = trace_launch(overwrite_stored<false>, {1, 128, 1024}, map);
  EXPECT_FINDING(trace, "race",
                 {"write after read", place_of("tma store 2"), place_of("overwrite")});
}

TEST(Clusters, DistributedSharedMemory) {
  DeviceMemory out = ramp(4 * 32, "out");
  LaunchConfig config{4, 32, 128};
  config.cluster = 2;
  EXPECT_NO_FINDINGS(trace_launch(neighbour_sum<true>, config, out.as<float>()));
  const Trace trace = trace_launch(neighbour_sum<false>, config, out.as<float>());
  EXPECT_TRUE(has(trace, "race", {place_of("own store"), place_of("remote load"), "from block"}) ||
              has(trace, "uninitialised", {place_of("remote load")}))
      << findings_of(trace);
}

TEST(Clusters, StaticSharedMemory) {
  DeviceMemory out = ramp(4 * 32, "out");
  LaunchConfig config{4, 32};
  EXPECT_NO_FINDINGS(trace_launch(static_in_cluster, config, out.as<float>()));
  config.cluster = 2;
  const Trace trace = trace_launch(static_in_cluster, config, out.as<float>());
  EXPECT_FINDING(trace, "static-shared", {place_of("static store")});
}

// ---- addresses --------------------------------------------------------------------------------

TEST(Addresses, Uninitialised) {
  DeviceMemory x = ramp(64, "x");
  Trace trace = trace_launch(partly_filled<false>, {1, 64, 256}, x.as<float>());
  EXPECT_FINDING(
      trace, "uninitialised",
      {"thread (6,0,0)", "dynamic shared memory + 28 bytes", place_of("uninitialised load")});
  trace = trace_launch(partly_filled<true>, {1, 64, 256}, x.as<float>());
  EXPECT_NO_FINDINGS(trace);
}

TEST(Addresses, OutOfBounds) {
  DeviceMemory in = ramp(256, "in"), out = ramp(256, "out");
  const auto run = [&](int shift) {
    return [&, shift] {
      launch(shifted_copy, {1, 256}, {}, in.as<float>(), out.as<float>(), shift);
    };
  };
  EXPECT_NO_FINDINGS(trace_of(run(0)));
  for (const int shift : {1, -1}) {
    const Trace trace = trace_of(run(shift));
    ASSERT_EQ(trace.findings.size(), 1u);
    EXPECT_FINDING(trace, "out-of-bounds", {"'in'", place_of("shifted load")});
    EXPECT_EQ(trace.findings[0].count, 1u);
  }
  std::string message;
  const Trace trace = trace_of(run(1 << 28), &message);
  EXPECT_CONTAINS(message, "out of bounds");
  EXPECT_CONTAINS(message, place_of("shifted load"));
  EXPECT_FINDING(trace, "out-of-bounds");
}

TEST(Addresses, DynamicSharedSize) {
  DeviceMemory x = ramp(32, "x");
  EXPECT_NO_FINDINGS(trace_launch(shared_index, {1, 32, 128}, x.as<float>(), 0));
  const Trace trace = trace_launch(shared_index, {1, 32, 128}, x.as<float>(), 32);
  EXPECT_FINDING(trace, "out-of-bounds", {"dynamic shared memory"});
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
  const auto read = [&](int shift) {
    return trace_launch(beyond<float>, {1, 64}, in.as<float>(), out.as<float>(), shift);
  };
  const auto write = [&](int shift) {
    return trace_launch(store_beyond, {1, 128}, in.as<float>(), out.as<float>(), shift);
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

__global__ void racing_rows(const float* in, float* out) {
  __shared__ float unused_one[32];
  __shared__ float rows[2][32];
  const int t = threadIdx.x;
  unused_one[t % 32] = 0;
  rows[t / 32][t % 32] = in[t];
  out[t] = rows[1 - t / 32][t % 32];
  out[t] += unused_one[t % 32];
}

TEST(Addresses, RacesNameTheVariable) {
  DeviceMemory in = ramp(64, "in"), out = ramp(64, "out");
  const Trace trace = trace_launch(racing_rows, {1, 64}, in.as<float>(), out.as<float>());
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
  DeviceMemory rows(32 * sizeof(int), "rows"), out(32 * sizeof(long long), "out");
  const std::vector<int> values(32, 65536);
  rows.copy_from_host(values.data(), 32 * sizeof(int));
  const auto index = [&](int stride) {
    return trace_launch(last_index, {1, 32}, rows.as<int>(), out.as<long long>(), stride);
  };
  EXPECT_NO_FINDINGS(index(32767));
  Trace trace = index(32768);
  EXPECT_FINDING(trace, "overflow",
                 {"65536 * 32768, which does not fit in 'int'", place_of("overflowing product")});
  ASSERT_EQ(trace.findings.size(), 1u);
  EXPECT_EQ(trace.findings[0].count, 32u);

  const auto loop = [&](int n) {
    return trace_launch(grid_stride, {1, 32}, out.as<long long>(), n, n - 64);
  };
  EXPECT_NO_FINDINGS(loop(1 << 30));
  trace = loop(2147483647);
  EXPECT_FINDING(trace, "overflow", {" + 1048576, which does not fit", place_of("int index")});

  EXPECT_NO_FINDINGS(trace_launch(unsigned_wraps, {1, 32}, out.as<unsigned>(), 0xffffffffu));
}

TEST(Addresses, Misaligned) {
  DeviceMemory in = ramp(256, "in"), out = ramp(32, "out");
  EXPECT_NO_FINDINGS(trace_launch(load_float4_at, {1, 32}, in.as<float>(), out.as<float>(), 4));
  std::string message;
  const Trace trace = trace_of(
      [&] {
        launch(load_float4_at, {1, 32}, {}, in.as<float>(), out.as<float>(), 1);
      },
      &message);
  EXPECT_CONTAINS(message, "misaligned");
  EXPECT_FINDING(trace, "misaligned", {place_of("vector load")});
}

TEST(Addresses, DivergentBarrier) {
  DeviceMemory x = ramp(128, "x");
  std::string message;
  trace_of([&] { launch(divergent_barrier, {1, 128}, {}, x.as<float>()); }, &message);
  EXPECT_NE(message, "");
}

TEST(Tracing, NothingIsRecordedOutside) {
  DeviceMemory in = ramp(256, "in"), out = ramp(256, "out");
  EXPECT_TRUE(simt::tracing_available());
  launch(copy, {1, 256}, {}, in.as<float>(), out.as<float>(), 256);
  EXPECT_TRUE(trace_of([] {}).sites.empty());
}

TEST(Tracer, HiddenGuardVariablesOfSharedArraysAreNotReported) {
  const DeviceMemory in(128, "in"), out(128, "out");
  EXPECT_NO_FINDINGS(trace_launch(reverse_narrow<bf16>, {1, 64}, in.as<bf16>(), out.as<bf16>()));
}

}  // namespace
}  // namespace cookbook
