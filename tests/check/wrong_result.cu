// SPDX-License-Identifier: MIT
// The program finds out that its result is wrong; the race that made it so is still named.
// exit: 3
#include <cassert>

__global__ void shift(int* x) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[(threadIdx.x + 1) % 64];  // finds: race
}

int main() {
  int host[64], *x;
  for (int i = 0; i < 64; ++i) host[i] = i;
  if (cudaMalloc(&x, sizeof(host))) return 1;
  if (cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice)) return 1;
  shift<<<1, 64>>>(x);
  if (cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost)) return 1;
  for (int i = 0; i < 64; ++i) {
    assert(host[i] == (i + 1) % 64);  // finds: crash
  }
  return cudaFree(x);
}
