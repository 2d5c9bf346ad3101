// SPDX-License-Identifier: MIT
// A barrier for 64 threads that half of them never reach: each thread's place is named.
// exit: 1
__global__ void wait(int* x) {
  if (threadIdx.x >= 32 && threadIdx.x < 64) return;  // says: threads 32..63 exited
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;");  // finds: failed kernel  // says: threads 0..31 wait
  } else {
    __syncthreads();  // says: threads 64..95 wait in __syncthreads
  }
  x[threadIdx.x] = 1;
}

int main() {
  int* x;
  if (cudaMalloc(&x, 384) != cudaSuccess) return 1;
  wait<<<1, 96>>>(x);
  return cudaDeviceSynchronize() != cudaSuccess;
}
