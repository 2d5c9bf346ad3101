// SPDX-License-Identifier: MIT
// Memory that is never freed or twice, errors that nobody sees, a copy the wrong way round.
// exit: 1
#include <memory>  // which has __noinline__ as the name of an attribute

__global__ void set(int* x) { x[threadIdx.x] = 1; }

int main() {
  int *x, *y, host[32];
  cudaMalloc(&x, 32 * sizeof(int));
  cudaMalloc(&y, 32 * sizeof(int));  // finds: leak
  set<<<1, 2048>>>(x);               // finds: unchecked error
  set<<<1, 32>>>(y);
  cudaMemcpy(host, x, sizeof(host), cudaMemcpyHostToDevice);  // finds: unchecked error
  cudaFree(x);
  cudaFree(x);              // finds: unchecked error
  cudaMemset(y, 1000, 32);  // finds: overflow
  cudaMemset(y, -1, 16);
  cudaMemset(y, 0xff, 16);
  return 0;
}
