// SPDX-License-Identifier: MIT
// The heap of kernels has 8 MB, and nobody asks whether malloc() returned null.
// exit: 1
__global__ void work(int* x) {
  int* own = static_cast<int*>(malloc(1 << 20));
  own[0] = threadIdx.x;  // finds: out-of-bounds  // says: malloc() in a kernel returned null
  x[threadIdx.x] = own[0];
  __syncthreads();
  free(own);
}

int main() {
  int* x;
  if (cudaMalloc(&x, 128) != cudaSuccess) return 1;
  work<<<1, 32>>>(x);
  return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
}
