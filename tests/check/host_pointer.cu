// SPDX-License-Identifier: MIT
// A kernel is given host memory.
// exit: 1
#include <cstdlib>

__global__ void set(int* x) { x[threadIdx.x] = 1; }

int main() {
  int* x = (int*)malloc(32 * sizeof(int));
  set<<<1, 32>>>(x);  // finds: failed kernel
  const cudaError_t error = cudaDeviceSynchronize();
  free(x);
  return error == cudaErrorIllegalAddress ? 0 : 1;
}
