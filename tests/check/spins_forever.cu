// SPDX-License-Identifier: MIT
// One warp waits for a flag that nobody sets, the other one for the first at a barrier.
// exit: 3
// options: --time-limit 1
__global__ void wait(int* flag) {
  if (threadIdx.x < 32) {
    while (atomicCAS(flag, 1, 0) != 1) {  // finds: crash  // says: threads 0..31, read by volatile
    }
  }
  __syncthreads();  // says: threads 32..63 wait in __syncthreads
}

int main() {
  int* flag;
  if (cudaMalloc(&flag, sizeof(int)) != cudaSuccess) return 1;
  if (cudaMemset(flag, 0, sizeof(int)) != cudaSuccess) return 1;
  wait<<<1, 64>>>(flag);
  return cudaDeviceSynchronize() != cudaSuccess;
}
