// SPDX-License-Identifier: MIT
// Recursions: as deep as the stack of a GPU's thread allows, and deeper.
// exit: 1
__device__ float sum(const float* x, int n) {
  if (n == 0) return 0;
  return x[n % 32] + sum(x, n - 1);  // finds: stack-overflow
}
__device__ float product(const float* x, int n);
__device__ float factor(const float* x, int n) {
  if (n == 0) return 1;
  return x[n % 32] * product(x, n - 1);  // finds: stack-overflow
}
__device__ float product(const float* x, int n) {
  if (n == 0) return 1;
  return 2 * factor(x, n - 1);
}
// A compiler makes a loop of it.
__device__ int divisor(int a, int b, int n) { return n == 0 ? a : divisor(b, a + 1, n - 1); }

__global__ void within(float* x, int n) {
  x[32 + threadIdx.x] = sum(x, n) + divisor(x[0], 1, 1000);
}
__global__ void without_end(float* x) { x[32 + threadIdx.x] = factor(x, 1 << 30); }
__global__ void beyond(float* x, int n) { x[32 + threadIdx.x] = sum(x, n); }

int main() {
  float* x;
  if (cudaMalloc(&x, 256) != cudaSuccess || cudaMemset(x, 0, 256) != cudaSuccess) return 2;
  within<<<1, 32>>>(x, 20);
  if (cudaDeviceSetLimit(cudaLimitStackSize, 65536) != cudaSuccess) return 2;
  within<<<1, 32>>>(x, 2000);
  if (cudaDeviceSetLimit(cudaLimitStackSize, 1024) != cudaSuccess) return 2;
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  beyond<<<1, 32>>>(x, 200);
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  without_end<<<1, 32>>>(x);
  if (cudaDeviceSynchronize() == cudaSuccess) return 2;
  return 1;
}
