// SPDX-License-Identifier: MIT
// Half of the block waits at a barrier that the other half never reaches.
// exit: 1
__global__ void halves(int* x) {
  if (threadIdx.x < 32) {
    x[threadIdx.x] = 1;
    __syncthreads();  // finds: divergence
  } else {
    x[threadIdx.x] = 2;
    __syncthreads();
  }
}

int main() {
  int* x;
  if (cudaMalloc(&x, 64 * sizeof(int)) != cudaSuccess) return 1;
  halves<<<1, 64>>>(x);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  return cudaFree(x) != cudaSuccess;
}
