// SPDX-License-Identifier: MIT
// __CUDA_ARCH__ as nvcc's two passes see it: in device code, around device functions, by macros.
// exit: 0
// A __host__ __device__ function is the host's, and a note says so.
// prints: host 1, device 900 2 3, both 1
#include <cstdio>

#ifdef __CUDA_ARCH__
#define SIDE 2
#else
#define SIDE 1
#endif

#if !defined(__CUDA_ARCH__)
int host_only() { return SIDE; }
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ int newest() { return 3; }
#else
__device__ int newest();
#endif

__host__ __device__ int both() { return SIDE; }

__global__ void kernel(int* out) {
#ifdef __CUDA_ARCH__
  out[0] = __CUDA_ARCH__;
#else
  out[0] = -1;
#endif
  out[1] = SIDE;
  out[2] = newest();
}

int main() {
  int* out;
  if (cudaMallocManaged(&out, 12)) return 1;
  kernel<<<1, 1>>>(out);
  if (cudaDeviceSynchronize()) return 1;
  printf("host %d, device %d %d %d, both %d\n", host_only(), out[0], out[1], out[2], both());
  return cudaFree(out);
}
