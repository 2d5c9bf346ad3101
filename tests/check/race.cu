// SPDX-License-Identifier: MIT
// A barrier is missing between writing and reading shared memory. That some read what nothing has
// written yet follows from it.
// exit: 1
#include <cstdio>

__global__ void reverse(float* x) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[255 - threadIdx.x];  // finds: race
}

int main() {
  float* x;
  if (cudaMalloc(&x, 256 * sizeof(float)) != cudaSuccess) return 1;
  if (cudaMemset(x, 0, 256 * sizeof(float)) != cudaSuccess) return 1;
  reverse<<<1, 256>>>(x);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  return cudaFree(x) != cudaSuccess;
}
