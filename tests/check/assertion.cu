// SPDX-License-Identifier: MIT
// An assertion in a kernel fails; the program sees it as an error.
// exit: 1
// prints: device-side assert triggered
#include <cassert>
#include <cstdio>

__global__ void check(int n) {
  assert(threadIdx.x < n);  // finds: failed kernel
}

int main() {
  check<<<1, 8>>>(4);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
