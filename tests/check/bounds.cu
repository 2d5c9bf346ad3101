// SPDX-License-Identifier: MIT
// The last block has threads beyond the end, and nobody asks.
// exit: 1
__global__ void fill(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = n;  // finds: out-of-bounds
}

__global__ void shared(int* x) {
  __shared__ int tile[32];
  tile[threadIdx.x + 1] = threadIdx.x;  // finds: out-of-bounds
  __syncthreads();
  x[threadIdx.x] = tile[32 - threadIdx.x];  // finds: out-of-bounds
}

int main() {
  int* x;
  if (cudaMalloc(&x, 100 * sizeof(int)) != cudaSuccess) return 1;
  fill<<<4, 32>>>(x, 100);
  shared<<<1, 32>>>(x);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  return cudaFree(x) != cudaSuccess;
}
