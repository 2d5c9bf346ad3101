// SPDX-License-Identifier: MIT
// A kernel far beyond the end of its buffer fails, and everything after it, as on a GPU. That the
// memory is not freed then is no mistake of its own.
// exit: 1
__global__ void fill(int* x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = 1;  // finds: out-of-bounds
}

int main() {
  int* x;
  if (cudaMalloc(&x, 256) != cudaSuccess) return 1;
  fill<<<65535, 1024>>>(x);
  const cudaError_t error = cudaDeviceSynchronize();
  return error == cudaErrorIllegalAddress && cudaFree(x) == error ? 0 : 2;
}
