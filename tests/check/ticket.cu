// SPDX-License-Identifier: MIT
// A block waits for the one before it. Which one that is must not depend on blockIdx: more blocks
// than are resident, started in another order, wait without end.
// exit: 1
// options: --time-limit 2
__global__ void chain(int* sums, unsigned* ticket) {
  __shared__ unsigned tile;
  if (threadIdx.x == 0) tile = ticket ? atomicAdd(ticket, 1u) : blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0 && tile > 0) {
    while (atomicAdd(&sums[tile - 1], 0) == 0) {  // finds: hang
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&sums[tile], 1);
}

int main() {
  const int blocks = 24, bytes = blocks * sizeof(int);
  int* sums;
  unsigned* ticket;
  if (cudaMalloc(&sums, bytes) != cudaSuccess || cudaMalloc(&ticket, 4) != cudaSuccess) return 1;
  if (cudaMemset(sums, 0, bytes) != cudaSuccess || cudaMemset(ticket, 0, 4) != cudaSuccess)
    return 1;
  chain<<<blocks, 1024>>>(sums, ticket);
  if (cudaMemset(sums, 0, bytes) != cudaSuccess) return 1;
  chain<<<blocks, 1024>>>(sums, nullptr);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  return cudaFree(sums) != cudaSuccess || cudaFree(ticket) != cudaSuccess;
}
