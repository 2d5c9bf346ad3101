// SPDX-License-Identifier: MIT
// Inline PTX of Hopper in clusters of two blocks: tensor maps by the driver API, TMA with a
// multicast of B, mbarriers, wgmma, stmatrix, a TMA store. A tile of C = a tile of A * B^T.
// exit: 0
// prints: 0 wrong
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>

#include <cstdint>
#include <cstdio>

constexpr int kSize = 64, kTileBytes = kSize * kSize * 2;

__device__ uint32_t at(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ void load(const void* to, const CUtensorMap* map, const uint64_t* bar, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4}], [%2];" ::"r"(at(to)),
      "l"(map), "r"(at(bar)), "n"(0), "r"(row)
      : "memory");
}
__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
      "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
      "%27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(1));
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const __grid_constant__ CUtensorMap map_c) {
  __shared__ alignas(1024) __nv_bfloat16 a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];
  __shared__ uint64_t full;
  const unsigned thread = threadIdx.x;
  uint32_t rank, is_leader = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;");
  if (thread < 32) {
    asm volatile("{ .reg .pred p; elect.sync _|p, -1; @p mov.u32 %0, 1; }" : "+r"(is_leader));
  }
  if (is_leader != 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&full)),
                 "n"(2 * kTileBytes)
                 : "memory");
    load(a, &map_a, &full, static_cast<int>(blockIdx.x) * kSize);
    if (rank == 0) {
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
          "cluster [%0], [%1, {0, 0}], [%2], %3;" ::"r"(at(b)),
          "l"(&map_b), "r"(at(&full)), "h"(static_cast<uint16_t>(3))
          : "memory");
    }
  }
  __syncwarp();
  asm volatile(
      "{\n.reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
      "@done bra END;\nbra WAIT;\nEND:\n}" ::"r"(at(&full))
      : "memory");
  float sums[32] = {};
  const auto described = [](const void* tile) {
    return uint64_t{(at(tile) & 0x3ffff) >> 4} | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
  };
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (uint64_t k = 0; k < 4; ++k) multiply(sums, described(a) + 2 * k, described(b) + 2 * k);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  const unsigned lane = thread % 32, row = thread / 32 * 16 + lane % 16;
  for (int n = 0; n < 4; ++n) {
    uint32_t packed[4];
    for (int i = 0; i < 4; ++i) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
          : "=r"(packed[i])
          : "f"(sums[8 * n + 2 * i + 1]), "f"(sums[8 * n + 2 * i]));
    }
    const unsigned chunk = (2 * static_cast<unsigned>(n) + lane / 16) ^ row % 8;  // as the map of C
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     at(c + row * kSize + 8 * chunk)),
                 "r"(packed[0]), "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync 1, 128;" ::: "memory");
  if (thread == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {0, %2}], [%1];\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::"l"(&map_c),
        "r"(at(c)), "r"(blockIdx.x * kSize)
        : "memory");
  }
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

CUtensorMap map_of(__nv_bfloat16* matrix, int rows) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &found))
    exit(1);
  CUtensorMap map;
  const cuuint64_t extents[] = {kSize, static_cast<cuuint64_t>(rows)}, strides[] = {kSize * 2};
  const cuuint32_t box[] = {kSize, kSize}, steps[] = {1, 1};
  if (reinterpret_cast<PFN_cuTensorMapEncodeTiled>(encode)(
          &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, extents, strides, box, steps,
          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
          CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
    exit(1);
  }
  return map;
}

int main() {
  static __nv_bfloat16 a[2 * kSize * kSize], b[kSize * kSize], c[2 * kSize * kSize];
  for (int i = 0; i < 2 * kSize * kSize; ++i) a[i] = static_cast<float>(i % 13 - 6);
  for (int i = 0; i < kSize * kSize; ++i) b[i] = static_cast<float>(i % 7 - 3);
  __nv_bfloat16 *d_a, *d_b, *d_c;
  if (cudaMalloc(&d_a, sizeof a) || cudaMalloc(&d_b, sizeof b) || cudaMalloc(&d_c, sizeof c))
    return 1;
  if (cudaMemcpy(d_a, a, sizeof a, cudaMemcpyHostToDevice)) return 1;
  if (cudaMemcpy(d_b, b, sizeof b, cudaMemcpyHostToDevice)) return 1;
  gemm<<<2, 128>>>(map_of(d_a, 2 * kSize), map_of(d_b, kSize), map_of(d_c, 2 * kSize));
  if (cudaMemcpy(c, d_c, sizeof c, cudaMemcpyDeviceToHost)) return 1;
  int wrong = 0;
  for (int m = 0; m < 2 * kSize; ++m) {
    for (int n = 0; n < kSize; ++n) {
      float sum = 0;
      for (int k = 0; k < kSize; ++k) {
        sum += static_cast<float>(a[m * kSize + k]) * static_cast<float>(b[n * kSize + k]);
      }
      wrong += static_cast<float>(c[m * kSize + n]) != static_cast<float>(__nv_bfloat16(sum));
    }
  }
  printf("%d wrong\n", wrong);
  return cudaFree(d_a) || cudaFree(d_b) || cudaFree(d_c) || wrong;
}
