// SPDX-License-Identifier: MIT
// Waits for a flag that nobody sets.
// exit: 3
// options: --time-limit 1
__global__ void wait(volatile int* flag) {
  while (*flag == 0) {  // finds: crash
  }
}

int main() {
  int* flag;
  if (cudaMalloc(&flag, sizeof(int)) != cudaSuccess) return 1;
  if (cudaMemset(flag, 0, sizeof(int)) != cudaSuccess) return 1;
  wait<<<1, 1>>>(flag);
  return cudaDeviceSynchronize() != cudaSuccess;
}
