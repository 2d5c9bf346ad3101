// SPDX-License-Identifier: MIT
// Kernels launch kernels, which come when the kernel before them has ended.
// exit: 1
#include <cstdio>
__global__ void child(int* x, int n) {
  x[threadIdx.x] += n;  // finds: out-of-bounds
}
__global__ void parent(int* x, int threads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) child<<<1, threads>>>(x + blockIdx.x * blockDim.x, 100);
}
template <class T>
__global__ void halves(T* sum, int threads) {
  if (threadIdx.x != 0) return;
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  *sum += threads;
  if (threads > 1) halves<T><<<1, threads / 2, 0, stream>>>(sum, threads / 2);
  if (cudaGetLastError() != cudaSuccess) *sum = 0;
  cudaStreamDestroy(stream);
}

int main() {
  int host[128], *x;
  if (cudaMalloc(&x, sizeof(host))) return 1;
  parent<<<2, 64>>>(x, 64);
  if (cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost)) return 1;
  for (int i = 0; i < 128; ++i) {
    if (host[i] != i + 100) return 1;
  }
  if (cudaMemset(x, 0, 4)) return 1;
  halves<<<1, 32>>>(x, 32);
  if (cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost) || host[0] != 63) return 1;
  parent<<<2, 64>>>(x, 65);
  return cudaDeviceSynchronize() || cudaFree(x);
}
