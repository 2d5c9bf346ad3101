// SPDX-License-Identifier: MIT
// The host reads device memory.
// exit: 3
#include <cstdio>

int main() {
  int* x;
  if (cudaMalloc(&x, 4 * sizeof(int)) != cudaSuccess) return 1;
  printf("%d\n", x[0]);  // finds: crash
  return 0;
}
