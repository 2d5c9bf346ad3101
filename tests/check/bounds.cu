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

// Copies of the C library are accesses, too: of a size that g++ copies by itself, and of another
// one.
struct Row {
  int columns[12];
};
__global__ void copied(Row* rows, int bytes) {
  Row row;
  memcpy(&row, &rows[threadIdx.x], sizeof row);       // finds: out-of-bounds, uncoalesced
  memset(&rows[threadIdx.x], row.columns[1], bytes);  // finds: out-of-bounds, uncoalesced
}

// What the last threads take as bounds does not keep the race from being found.
__global__ void rows(const int* first, const int* values, int* last) {
  for (int i = first[threadIdx.x]; i < first[threadIdx.x + 1]; ++i) {  // finds: out-of-bounds
    *last = values[i];                                                 // finds: race
  }
}

int main() {
  int* x;
  if (cudaMalloc(&x, 100 * sizeof(int)) != cudaSuccess) return 1;
  fill<<<4, 32>>>(x, 100);
  shared<<<1, 32>>>(x);
  copied<<<1, 9>>>(reinterpret_cast<Row*>(x), 48);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  const int host[] = {0, 3, 6, 9};
  int* first;
  if (cudaMalloc(&first, sizeof host) != cudaSuccess) return 1;
  if (cudaMemcpy(first, host, sizeof host, cudaMemcpyHostToDevice) != cudaSuccess) return 1;
  rows<<<1, 32>>>(first, x + 32, x);
  if (cudaDeviceSynchronize() != cudaSuccess) return 0;  // an index beyond memory, in the plain run
  return cudaFree(first) != cudaSuccess || cudaFree(x) != cudaSuccess;
}
