// SPDX-License-Identifier: MIT
// Threads that spin on what others of their warp, block or grid do, each spelling without
// __nanosleep(): threads of a GPU advance independently, and so all of these end.
// exit: 0
// prints: 0 wrong
#include <cuda/atomic>
#include <cstdio>

// The last thread sets the flag, and all before it wait.
__global__ void by_atomic_add(int* flag, int* data) {
  if (threadIdx.x + 1 == blockDim.x) {
    *data = 7;
    __threadfence();
    atomicExch(flag, 1);
  }
  while (atomicAdd(flag, 0) == 0)
    ;
  __threadfence();
  data[1 + threadIdx.x] = *data;
}

__global__ void by_volatile(int* flag, int* data) {
  if (threadIdx.x + 1 == blockDim.x) {
    *data = 7;
    __threadfence();
    *(volatile int*)flag = 1;
  }
  while (*(volatile int*)flag == 0)
    ;
  __threadfence();
  data[1 + threadIdx.x] = *data;
}

__global__ void by_reference(int* flag, int* data) {
  cuda::atomic_ref<int, cuda::thread_scope_device> set(*flag);
  if (threadIdx.x + 1 == blockDim.x) {
    *data = 7;
    set.store(1, cuda::memory_order_release);
  }
  while (set.load(cuda::memory_order_acquire) == 0) {
  }
  data[1 + threadIdx.x] = *data;
}

__global__ void in_shared(int* data) {
  __shared__ volatile int ready;
  __shared__ int value;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (!ready) {
    }
    __threadfence_block();
    data[1 + threadIdx.x] = value;
  } else if (threadIdx.x + 1 == blockDim.x) {
    value = 7;
    __threadfence_block();
    ready = 1;
  }
}

// Each in turn, the last thread first.
__global__ void in_reverse(int* turn, int* data) {
  while (atomicAdd(turn, 0) != int(blockDim.x - 1 - threadIdx.x)) {
  }
  __threadfence();
  data[0] += 1;
  data[1 + threadIdx.x] = 7;
  __threadfence();
  atomicAdd(turn, 1);
}

// The last thread has the lock and hands it on; 1 is free.
__global__ void by_compare(int* lock, int* data) {
  if (threadIdx.x + 1 < blockDim.x) {
    while (atomicCAS(lock, 1, 0) != 1) {
    }
    __threadfence();
  }
  data[0] += 1;
  data[1 + threadIdx.x] = 7;
  __threadfence();
  atomicExch(lock, 1);
}

// Both blocks are resident.
__global__ void of_another_block(int* flag, int* data) {
  if (blockIdx.x == 1 && threadIdx.x + 1 == blockDim.x) {
    *data = 7;
    __threadfence();
    atomicOr(flag, 1);
  }
  while (atomicMax(flag, 0) == 0)
    ;
  __threadfence();
  if (blockIdx.x == 0) data[1 + threadIdx.x] = *data;
}

int wrong(int* flag, int* data, int threads) {
  int values[65];
  if (cudaMemcpy(values, data, sizeof(values), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  int count = 0;
  for (int i = 0; i < threads; ++i) count += values[1 + i] != 7;
  if (cudaMemset(flag, 0, 4) != cudaSuccess) return 1;
  if (cudaMemset(data, 0, sizeof(values)) != cudaSuccess) return 1;
  return count;
}

int main() {
  int *flag, *data;
  if (cudaMalloc(&flag, 4) != cudaSuccess || cudaMalloc(&data, 65 * 4) != cudaSuccess) return 1;
  if (cudaMemset(flag, 0, 4) != cudaSuccess) return 1;
  if (cudaMemset(data, 0, 65 * 4) != cudaSuccess) return 1;
  int count = 0;
  for (const int threads : {32, 64}) {
    by_volatile<<<1, threads>>>(flag, data);
    count += wrong(flag, data, threads);
  }
  by_atomic_add<<<1, 32>>>(flag, data);
  count += wrong(flag, data, 32);
  by_reference<<<1, 64>>>(flag, data);
  count += wrong(flag, data, 64);
  by_compare<<<1, 32>>>(flag, data);
  count += wrong(flag, data, 32);
  in_reverse<<<1, 32>>>(flag, data);
  count += wrong(flag, data, 32);
  of_another_block<<<2, 32>>>(flag, data);
  count += wrong(flag, data, 32);
  in_shared<<<1, 64>>>(data);
  count += wrong(flag, data, 32);
  printf("%d wrong\n", count);
  return cudaFree(flag) != cudaSuccess || cudaFree(data) != cudaSuccess;
}
