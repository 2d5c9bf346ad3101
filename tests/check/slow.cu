// SPDX-License-Identifier: MIT
// Right, and too slow for the traced run: a note and no mistake.
// exit: 0
// options: --time-limit 1
// prints: 0 of 1 launches had ended
__global__ void sum(int* x, int rounds) {
  int s = 0;
  for (int r = 0; r < rounds; ++r) s += x[r % 32] & 1;
  x[threadIdx.x + 32] = s;
}

int main() {
  int* x;
  if (cudaMalloc(&x, 256) != cudaSuccess || cudaMemset(x, 0, 256) != cudaSuccess) return 1;
  sum<<<1, 32>>>(x, 3000000);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  return cudaFree(x) != cudaSuccess;
}
