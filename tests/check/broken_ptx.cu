// SPDX-License-Identifier: MIT
// What inline PTX forgets: a wait, two fences, the right parity.
// exit: 1
#include <cstdint>
#include <cstdio>

__device__ uint32_t at(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__global__ void without_wait(const float* x, float* y) {
  __shared__ float tile[32];
  asm volatile(  // finds: exit
      "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(&tile[threadIdx.x])), "l"(x + threadIdx.x)
      : "memory");
  asm volatile("cp.async.commit_group;");
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];  // finds: race
}

__device__ void load(float* to, const float* from, uint64_t* bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at(bar)));
  asm volatile(  // finds: proxy, exit
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::
          "r"(at(to)),
      "l"(from), "r"(at(bar))
      : "memory");
}

__global__ void without_fences(const float* x, float* y) {
  __shared__ alignas(128) float tile[32];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)));
  __syncthreads();
  if (threadIdx.x == 0) load(tile, x, &bar);
  __syncwarp();
  asm volatile(
      "{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(
          at(&bar))
      : "memory");
  tile[threadIdx.x] += 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(  // finds: proxy
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(y), "r"(at(tile))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}

__global__ void wrong_parity(const float* x, float* y) {
  __shared__ alignas(128) float tile[32];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(
            at(&bar)));
  }
  __syncthreads();
  if (threadIdx.x == 0) load(tile, x, &bar);
  __syncwarp();
  asm volatile(
      "{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 1; @!p bra W; }" ::"r"(
          at(&bar))
      : "memory");
  y[threadIdx.x] = tile[threadIdx.x];  // finds: race
}

int main() {
  float *x, *y;
  if (cudaMalloc(&x, 128) || cudaMalloc(&y, 128) || cudaMemset(x, 0, 128)) return 1;
  without_wait<<<1, 32>>>(x, y);
  without_fences<<<1, 32>>>(x, y);
  wrong_parity<<<1, 32>>>(x, y);
  return cudaDeviceSynchronize() || cudaFree(x) || cudaFree(y);
}
