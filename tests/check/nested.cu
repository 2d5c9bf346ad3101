// SPDX-License-Identifier: MIT
// A kernel launches a kernel.
// exit: 2
__global__ void child() {}
__global__ void parent() {
  child<<<1, 1>>>();  // unsupported: dynamic parallelism
}

int main() {
  parent<<<1, 1>>>();
  return cudaDeviceSynchronize() != cudaSuccess;
}
