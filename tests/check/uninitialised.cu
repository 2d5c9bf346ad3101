// SPDX-License-Identifier: MIT
// The kernel adds to memory that nobody set.
// exit: 1
__global__ void add(const float* x, float* sum) {
  sum[threadIdx.x] += x[threadIdx.x];  // finds: uninitialised
}

int main() {
  float *x, *sum;
  if (cudaMalloc(&x, 128) || cudaMalloc(&sum, 128) || cudaMemset(x, 0, 128)) return 1;
  add<<<1, 32>>>(x, sum);
  if (cudaDeviceSynchronize()) return 1;
  return cudaFree(x) || cudaFree(sum);
}
