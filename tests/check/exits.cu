// SPDX-License-Identifier: MIT
// Threads that have exited before a barrier of the others, as GPUs since Volta permit: a note.
// exit: 0
// prints: pass __syncthreads at exits.cu:11, thread (50,0,0) at exits.cu:9: since Volta
__global__ void reverse(int* x, int n) {
  __shared__ int tile[64];
  const int i = threadIdx.x;

  if (i >= n) return;
  tile[i] = x[i];
  __syncthreads();
  x[i] = tile[n - 1 - i];
}

// No thread has exited before.
__global__ void after(int* x) {
  __syncthreads();
  if (threadIdx.x < 32) x[threadIdx.x] += 1;
}

int main() {
  int* x;
  if (cudaMalloc(&x, 256) != cudaSuccess || cudaMemset(x, 0, 256) != cudaSuccess) return 1;
  reverse<<<1, 64>>>(x, 50);
  after<<<1, 64>>>(x);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  return cudaFree(x) != cudaSuccess;
}
