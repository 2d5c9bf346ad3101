// SPDX-License-Identifier: MIT
// Calls the functions of common/device: those of the SIMT backend, or their inline PTX, as
// wrappers.hpp says (wrappers_test.py). Prints a hash of what each kernel wrote.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "wrappers.hpp"

using w::bf16;
using w::half;
using w::Swizzle;

// Output `i` of this thread.
__device__ uint32_t& result(uint32_t* out, int i) {
  return out[(i * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x];
}

__global__ void copies(const char* in, uint32_t* out) {
  char* tile = w::dynamic_shared<char>();
  __shared__ uint64_t bar;
  const unsigned i = threadIdx.x;
  if (i == 0) w::mbarrier_init(&bar, 32);
  __syncthreads();
  w::cp_async<16>(tile + 16 * i, in + 16 * i);
  w::cp_async<8>(tile + 512 + 8 * i, in + 8 * i);
  w::cp_async_commit();
  w::cp_async<4>(tile + 768 + 4 * i, in + 4 * i);
  w::cp_async_zfill<16>(tile + 896 + 16 * i, in + 16 * i, static_cast<int>(i % 17));
  w::cp_async_zfill<8>(tile + 1408 + 8 * i, in + 8 * i, 3);
  w::cp_async_zfill<4>(tile + 1664 + 4 * i, in + 4 * i, 2);
  w::cp_async_mbarrier_arrive_noinc(&bar);
  w::cp_async_commit();
  w::cp_async_wait<1>();
  result(out, 0) = reinterpret_cast<uint32_t*>(tile)[4 * i];
  w::mbarrier_wait(&bar, 0);
  w::cp_async_wait<0>();
  for (unsigned k = 1; k < 14; ++k) {
    result(out, k) = reinterpret_cast<uint32_t*>(tile)[32 * k + (i + 1) % 32];
  }
  result(out, 16) = w::load_vector_streaming<uint32_t>(in + 4 * i);
  result(out, 17) = w::load_vector_streaming<uint2>(in + 8 * i).y;
  result(out, 18) = w::load_vector_streaming<uint4>(in + 16 * i).z;
  result(out, 19) = __float_as_uint(w::ex2_approx_ftz(-4.5f * static_cast<float>(i)));
}

__global__ void matrices(const char* in, uint32_t* out) {
  char* tile = w::dynamic_shared<char>();
  const unsigned lane = threadIdx.x;
  for (unsigned k = 0; k < 4; ++k) w::cp_async<16>(tile + 16 * lane + 512 * k, in + 16 * lane);
  w::cp_async_commit();
  w::cp_async_wait<0>();
  __syncwarp();
  uint32_t a[4], b[2], c[4];
  w::ldmatrix_x4(a, tile + 16 * lane);
  w::ldmatrix_x2(b, tile + 512 + 16 * (lane % 16));
  int at = 0;
  const auto keep = [&](const auto& values) {
    for (const auto value : values) {
      uint32_t bits;
      __builtin_memcpy(&bits, &value, 4);
      result(out, at++) = bits;
    }
  };
  float d[4] = {1, 2, 3, 4};
  w::mma_m16n8k16<bf16>(d, a, b), keep(d);
  w::mma_m16n8k16<half>(d, a, b), keep(d);
  for (uint32_t& value : a) value = w::to_tf32(__uint_as_float(value));
  w::mma_m16n8k8_tf32(d, a, b), keep(d);
  w::ldmatrix_x4_trans(c, tile + 1024 + 16 * lane), keep(c);
  w::ldmatrix_x2_trans(b, tile + 1024 + 16 * (lane % 16)), keep(b);
  w::stmatrix_x4(tile + 16 * lane, a);
  w::stmatrix_x4_trans(tile + 512 + 16 * lane, c);
  __syncwarp();
  for (unsigned k = 0; k < 8; ++k) {
    result(out, at++) = reinterpret_cast<uint32_t*>(tile)[32 * k + lane];
  }
}

__global__ void __launch_bounds__(256, 1) barriers(uint32_t* flag, uint64_t* wide, uint32_t* out) {
  __shared__ uint64_t bar[2];
  __shared__ uint32_t value;
  const unsigned i = threadIdx.x;
  if (i < 128) {
    w::register_dealloc<40>();
  } else {
    w::register_alloc<232>();
  }
  if (i == 0) {
    w::mbarrier_init(&bar[0], 128);
    w::mbarrier_init(&bar[1], 3);
    w::fence_mbarrier_init();
    value = 7;
  }
  __syncthreads();
  uint32_t elected = 0;
  if (i < 128) {
    w::named_barrier_arrive(1, 256);
    elected = w::elect_one();
    w::mbarrier_arrive(&bar[0]);
    if (i == 0) w::mbarrier_arrive(&bar[1], 2);
    if (i == 32) w::mbarrier_arrive(&bar[1]);
    __syncwarp();
  } else {
    w::named_barrier_sync(1, 256);
    w::mbarrier_wait(&bar[0], 0);
    elected = w::mbarrier_try_wait(&bar[0], 0) + 2;
    w::mbarrier_wait_cluster(&bar[1], 0);
  }
  result(out, 0) = value + elected;
  w::wait_for_previous_launch();
  w::allow_next_launch();
  if (i == 0) {
    w::store_release(flag, 3u);
    w::store_release(wide, uint64_t{1} << 40);
  }
  __syncthreads();
  result(out, 1) = w::load_acquire(flag) + static_cast<uint32_t>(w::load_acquire(wide) >> 38);
  if (i == 0) w::mbarrier_invalidate(&bar[0]);
}

struct Exchange {
  uint4 four;
  uint2 two;
  uint32_t one, plain;
  uint64_t arrived, sent;
};

__global__ void __cluster_dims__(2, 1, 1) clusters(uint32_t* out) {
  Exchange& own = *w::dynamic_shared<Exchange>();
  const uint32_t rank = w::cluster_block_rank(), other = w::cluster_size() - 1 - rank;
  if (threadIdx.x == 0) {
    w::mbarrier_init(&own.arrived, 33);
    w::mbarrier_init(&own.sent, 1);
    w::fence_mbarrier_init();
    w::mbarrier_arrive_expect_tx(&own.sent, 4);
  }
  w::cluster_arrive_relaxed();
  w::cluster_wait();
  if (threadIdx.x == 0) {
    w::mbarrier_arrive_cluster_relaxed(&own.arrived, other);
    *w::map_shared(&own.plain, other) = 100 + rank;
    w::store_async_cluster(&own.one, 5u + rank, &own.sent, other);
  }
  if (threadIdx.x == 1) w::mbarrier_expect_tx(&own.sent, 24);
  w::cluster_sync();
  if (threadIdx.x == 0) {
    w::store_async_cluster(&own.two, make_uint2(1, rank), &own.sent, other);
    w::store_async_cluster(&own.four, make_uint4(1, 2, 3, rank), &own.sent, other);
  }
  __syncwarp();
  w::mbarrier_arrive_cluster(&own.arrived, other);
  w::mbarrier_wait_cluster(&own.arrived, 0);
  w::mbarrier_wait_cluster(&own.sent, 0);
  result(out, 0) = own.plain + own.one + own.two.y + own.four.w + own.four.z;
  w::cluster_arrive();
  w::cluster_wait();
}

struct Maps {
  CUtensorMap of[5];  // of 1 to 5 dimensions
};

__global__ void __cluster_dims__(2, 1, 1)
    tensors(const __grid_constant__ Maps maps, const __grid_constant__ CUtensorMap to2,
            const __grid_constant__ CUtensorMap to3, const char* in, char* copied, uint32_t* out) {
  char* tile = w::dynamic_shared<char>();
  __shared__ uint64_t bar;
  const CUtensorMap* of = maps.of;
  const int block = static_cast<int>(blockIdx.x), rows = 8 * block;
  if (threadIdx.x == 0) {
    w::mbarrier_init(&bar, 1);
    w::fence_mbarrier_init();
    w::tma_prefetch_descriptor(&of[0]);
  }
  w::cluster_sync();
  if (threadIdx.x == 0) {
    w::mbarrier_arrive_expect_tx(&bar, 32 + 6 * 256 + 512);
    w::tma_load_1d(tile, &of[0], &bar, rows);
    w::tma_load_2d(tile + 1024, &of[1], &bar, -2 * 4, rows, w::CachePolicy::evict_first);
    w::tma_load_3d(tile + 2048, &of[2], &bar, 0, rows, 0);
    w::tma_load_4d(tile + 3072, &of[3], &bar, 0, rows, 0, 0);
    w::tma_load_5d(tile + 4096, &of[4], &bar, 0, 2 * block, 0, 0, 0);
    w::bulk_load(tile + 7168, in + 16 * rows, 512, &bar);
    if (block == 0) {
      w::tma_load_2d_multicast(tile + 5120, &of[1], &bar, 0, 8, 3);
      w::tma_load_4d_multicast(tile + 6144, &of[3], &bar, 0, 4, 0, 0, 3);
    }
  }
  __syncwarp();
  w::mbarrier_wait(&bar, 0);
  for (unsigned k = 0; k < 8; ++k) {
    result(out, k) = reinterpret_cast<uint32_t*>(tile)[256 * k + threadIdx.x % 8];
  }
  __syncwarp();
  for (unsigned i = threadIdx.x; i < 64; i += 32) {
    reinterpret_cast<float*>(tile)[i] = static_cast<float>(i);
  }
  w::fence_proxy_async();
  w::fence_proxy_async_global();
  __syncwarp();
  if (threadIdx.x == 0) {
    w::tma_store_2d(&to2, tile + 1024, 0, rows);
    w::tma_store_commit();
    w::tma_store_wait<0>();
    w::tma_store_add_2d(&to2, tile, 0, rows);
    w::tma_store_3d(&to3, tile + 2048, 0, rows, 0);
    w::bulk_store(copied + 512 * block, tile + 7168, 512);
    w::bulk_store_add(reinterpret_cast<float*>(copied + 1024), tile, 64);
    w::tma_store_commit();
    w::tma_store_wait_read<0>();
  }
  w::cluster_sync();
}

template <class T, int kN, w::Major kMajor>
__device__ void multiply(uint64_t a, uint64_t b, const uint32_t (&registers)[4], uint32_t* out) {
  float d[kN / 2] = {};
  w::wgmma_fence_operand(d);
  w::wgmma_fence();
  w::wgmma_m64k16<kN, T, kMajor, kMajor>(d, a, b, false);
  w::wgmma_commit();
  w::wgmma_m64k16<kN, T, w::Major::k, kMajor>(d, registers, b, true);
  w::wgmma_commit();
  w::wgmma_wait<1>();
  w::wgmma_wait<0>();
  w::wgmma_fence_operand(d);
  for (int i = 0; i < kN / 2; i += 3) result(out, i) = __float_as_uint(d[i]);
}

__global__ void warpgroups(const char* in, uint32_t* out) {
  char* tile = w::dynamic_shared<char>();
  const unsigned i = threadIdx.x;
  for (unsigned k = 0; k < 4; ++k) {
    w::store_vector(tile + 16 * i + 2048 * k, w::load_vector<uint4>(in + 16 * (i % 32)));
  }
  w::fence_proxy_async();
  __syncthreads();
  const uint64_t rows = w::wgmma_descriptor<Swizzle::b128>(tile, 16, 1024);
  const uint64_t next = w::wgmma_descriptor_advance(rows, 32);
  const uint32_t a[4] = {i, 2 * i, 0, 5 * i};
  multiply<bf16, 64, w::Major::k>(rows, next, a, out);
  multiply<half, 8, w::Major::mn>(rows, rows, a, &result(out, 32));
  float d[32] = {};
  w::wgmma_fence();
  w::wgmma_m64k32_e4m3<64>(d, rows, next, true);
  w::wgmma_commit();
  w::wgmma_wait<0>();
  for (int k = 0; k < 32; ++k) result(out, 40 + k) = __float_as_uint(d[k]);
}

void check(bool failed) {
  if (failed) exit(1);
}

uint64_t hash_of(const void* device, size_t bytes) {
  std::vector<unsigned char> host(bytes);
  check(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
  uint64_t hash = 1469598103934665603u;
  for (const unsigned char byte : host) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

// A map of floats with rows of 4 (the boxes' too, of 8 rows): of extents 4, 16, 2, 2, 2.
CUtensorMap map_of(void* base, unsigned rank) {
  CUtensorMap map;
  const cuuint64_t extents[] = {rank == 1 ? 64u : 8u, 16, 2, 2, 2};
  const cuuint64_t strides[] = {32, 512, 1024, 2048};
  const cuuint32_t box[] = {8,
                            rank == 1 ? 1u
                                      : 8u / (rank > 4   ? 4u
                                              : rank > 3 ? 4u
                                                         : rank - 1),
                            rank > 2 ? 2u : 1u, rank > 3 ? 2u : 1u, 1};
  const cuuint32_t steps[] = {1, 1, 1, 1, 1};
  check(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, base, extents, strides,
                               box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

int main() {
  constexpr size_t kBytes = 8192, kOut = 128 << 10;
  std::vector<uint16_t> values(kBytes / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<uint16_t>(0x3800 + (i * 2654435761u >> 20 & 0x3ff) + (i % 3 << 15));
  }
  char *in, *two, *three, *copied;
  uint32_t *out, *flag;
  uint64_t* wide;
  check(cudaMalloc(&in, kBytes) || cudaMalloc(&out, kOut) || cudaMalloc(&two, kBytes) ||
        cudaMalloc(&three, kBytes) || cudaMalloc(&copied, 1280) || cudaMalloc(&flag, 4) ||
        cudaMalloc(&wide, 8));
  check(cudaMemcpy(in, values.data(), kBytes, cudaMemcpyHostToDevice));
  check(cudaMemset(two, 0, kBytes) || cudaMemset(three, 0, kBytes) || cudaMemset(copied, 0, 1280));
  const auto print = [&](const char* kernel) {
    printf("%s %016llx\n", kernel, static_cast<unsigned long long>(hash_of(out, kOut)));
    check(cudaMemset(out, 0, kOut));
  };
  check(cudaMemset(out, 0, kOut));
  copies<<<1, 32, 2048>>>(in, out), print("copies");
  matrices<<<1, 32, 2048>>>(in, out), print("matrices");
  barriers<<<1, 256>>>(flag, wide, out), print("barriers");
  clusters<<<2, 32, sizeof(Exchange)>>>(out), print("clusters");
  Maps maps;
  for (unsigned i = 0; i < 5; ++i) maps.of[i] = map_of(in, i + 1);
  tensors<<<2, 32, 8192>>>(maps, map_of(two, 2), map_of(three, 3), in, copied, out);
  print("tensors");
  printf("stored %016llx %016llx %016llx\n", static_cast<unsigned long long>(hash_of(two, kBytes)),
         static_cast<unsigned long long>(hash_of(three, kBytes)),
         static_cast<unsigned long long>(hash_of(copied, 1280)));
  warpgroups<<<1, 128, 8192>>>(in, out), print("warpgroups");
  check(cudaFree(in) || cudaFree(out) || cudaFree(two) || cudaFree(three) || cudaFree(copied) ||
        cudaFree(flag) || cudaFree(wide));
}
