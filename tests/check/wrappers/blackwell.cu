// SPDX-License-Identifier: MIT
// The functions of common/device for sm_100a, called as in program.cu. Prints a hash of what each
// kernel wrote.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "wrappers.hpp"

using w::Swizzle;
using Element = w::Tcgen05Element;

struct Shared {
  char a[128 * 128], b[32 * 128];
  char scales[1024];
  uint64_t full, done;
  w::CanceledCluster answer;
  uint32_t address;
};

__device__ void begin(Shared& shared) {
  if (threadIdx.x == 0) {
    w::mbarrier_init(&shared.full, 1);
    w::mbarrier_init(&shared.done, 1);
    w::fence_mbarrier_init();
  }
}

/// Writes this warp's 32 lanes of 32 columns.
__device__ void copy_out(uint32_t d, float* out) {
  w::tcgen05_fence_after_thread_sync();
  float values[32];
  w::tmem_load(values, d + (threadIdx.x / 32 * 32 << 16));
  w::tmem_wait_load(values);
  for (int i = 0; i < 32; ++i) out[threadIdx.x * 32 + i] = values[i];
  w::tcgen05_fence_before_thread_sync();
}

/// An operand of `rows` rows of 32 bytes, without a swizzle.
__device__ uint64_t plain(const char* smem, uint32_t rows) {
  return w::tcgen05_descriptor<Swizzle::none>(smem, rows * 16, 128);
}

template <Element kElement>
__global__ void one_block(const char* in, float* out) {
  Shared& shared = *w::dynamic_shared<Shared>();
  begin(shared);
  if (threadIdx.x / 32 == 1) w::tmem_alloc(&shared.address, 64);
  __syncthreads();
  const uint32_t d = shared.address;
  if (threadIdx.x == 0) {
    w::bulk_load(shared.a, in, 128 * 32, &shared.full);
    w::bulk_load(shared.b, in + 128 * 32, 32 * 32, &shared.full);
    w::bulk_load(shared.scales, in + 160 * 32, 1024, &shared.full);
    w::mbarrier_arrive_expect_tx(&shared.full, 160 * 32 + 1024);
    w::mbarrier_wait(&shared.full, 0);
    const uint64_t a = plain(shared.a, 128), b = plain(shared.b, 32);
    constexpr uint32_t kInstruction = w::tcgen05_instruction<kElement, 128, 32>();
    if constexpr (kElement == Element::bf16) {
      w::tcgen05_mma<kElement>(d, a, b, kInstruction, false);
      w::tcgen05_mma<kElement>(d, a, b, kInstruction, true);
    } else {
      w::tcgen05_copy_scales(d + 32, w::tcgen05_descriptor<Swizzle::none>(shared.scales, 0, 128));
      w::tcgen05_copy_scales(d + 36,
                             w::tcgen05_descriptor<Swizzle::none>(shared.scales + 512, 0, 128));
      w::tcgen05_mma_scaled<kElement>(d, a, b, kInstruction, d + 32, d + 36, false);
    }
    w::tcgen05_commit(&shared.done);
  }
  w::mbarrier_wait(&shared.done, 0);
  copy_out(d, out);
  __syncthreads();
  if (threadIdx.x / 32 == 1) {
    w::tmem_relinquish();
    w::tmem_dealloc(d, 64);
  }
}

__global__ void __cluster_dims__(2, 1, 1)
    pair(const __grid_constant__ CUtensorMap map, float* out) {
  Shared& shared = *w::dynamic_shared<Shared>();
  const uint32_t rank = w::cluster_block_rank();
  begin(shared);
  if (threadIdx.x / 32 == 1) w::tmem_alloc<2>(&shared.address, 32);
  w::cluster_sync();
  const uint32_t d = shared.address;
  if (threadIdx.x == 0) {
    w::tma_load_2d_pair(shared.a, &map, &shared.full, 0, static_cast<int>(rank) * 128);
    if (rank == 0) {
      w::mbarrier_arrive_expect_tx(&shared.full, 2 * 128 * 128);
      w::mbarrier_wait(&shared.full, 0);
      const uint64_t tile = w::tcgen05_descriptor<Swizzle::b128>(shared.a, 0, 1024);
      const uint64_t next = w::tcgen05_descriptor_advance(tile, 32);
      w::tcgen05_mma<Element::bf16, 2>(d, tile, next,
                                       w::tcgen05_instruction<Element::bf16, 256, 32>(), false);
      w::tcgen05_commit_pair(&shared.done);
    }
  }
  w::mbarrier_wait(&shared.done, 0);
  copy_out(d, out + rank * 128 * 32);
  w::cluster_sync();
  if (threadIdx.x / 32 == 1) {
    w::tmem_relinquish<2>();
    w::tmem_dealloc<2>(d, 32);
  }
}

__global__ void steal(float* out) {
  Shared& shared = *w::dynamic_shared<Shared>();
  begin(shared);
  __syncthreads();
  int tile = static_cast<int>(blockIdx.x);
  for (uint32_t phase = 0;; phase ^= 1) {
    if (threadIdx.x == 0) {
      w::fence_proxy_async();
      w::try_cancel_cluster(&shared.answer, &shared.full);
      w::mbarrier_arrive_expect_tx(&shared.full, 16);
    }
    out[tile * 32 + static_cast<int>(threadIdx.x)] = static_cast<float>(tile);
    w::mbarrier_wait(&shared.full, phase);
    const w::CanceledCluster answer = shared.answer;
    if (!w::is_canceled(answer)) break;
    tile = w::first_block_x(answer);
    __syncthreads();
  }
}

void check(int error) {
  if (error != 0) {
    printf("error\n");
    exit(1);
  }
}

int main() {
  constexpr size_t kIn = 256 * 128, kOut = 256 * 32 * 4;
  std::vector<uint16_t> values(kIn / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<uint16_t>(0x3800 + (i * 2654435761u >> 20 & 0x3ff) + (i % 3 << 15));
  }
  char* in;
  float* out;
  check(cudaMalloc(&in, kIn) || cudaMalloc(&out, kOut));
  check(cudaMemcpy(in, values.data(), kIn, cudaMemcpyHostToDevice));
  const auto print = [&](const char* kernel) {
    std::vector<unsigned char> host(kOut);
    check(cudaMemcpy(host.data(), out, kOut, cudaMemcpyDeviceToHost));
    uint64_t hash = 1469598103934665603u;
    for (const unsigned char byte : host) hash = (hash ^ byte) * 1099511628211u;
    printf("%s %016llx\n", kernel, static_cast<unsigned long long>(hash));
    check(cudaMemset(out, 0, kOut));
  };
  check(cudaMemset(out, 0, kOut));
  one_block<Element::bf16><<<1, 128, sizeof(Shared)>>>(in, out), print("bf16");
  one_block<Element::e4m3><<<1, 128, sizeof(Shared)>>>(in, out), print("mxfp8");
  one_block<Element::e2m1><<<1, 128, sizeof(Shared)>>>(in, out), print("nvfp4");
  CUtensorMap map;
  const cuuint64_t extents[] = {64, 256}, strides[] = {128};
  const cuuint32_t box[] = {64, 128}, steps[] = {1, 1};
  check(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, in, extents, strides, box,
                               steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                               CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  pair<<<2, 128, sizeof(Shared)>>>(map, out), print("pair");
  steal<<<5, 32, sizeof(Shared)>>>(out), print("steal");
  check(cudaFree(in) || cudaFree(out));
}
