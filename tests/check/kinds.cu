// SPDX-License-Identifier: MIT
// One small kernel for each kind of mistake, beside a correct one, and what a buffer is called.
// exit: 1
// options: --leaks
#include <cmath>
#include <cstdio>

__device__ int table[64];
__device__ int after_table;
__constant__ float factors[4];

// Lanes beyond the block: harmless where nobody uses what they return.
__global__ void sum_of_20(const int* x, int* sum) {
  int s = x[threadIdx.x];
  for (int o = 16; o > 0; o >>= 1) s += __shfl_down_sync(~0u, s, o);  // finds: absent-lane
  if (threadIdx.x == 0) *sum = s;
}
__global__ void largest_of_20(const int* x, int* largest) {
  int m = x[threadIdx.x] + 1;
  for (int o = 16; o > 0; o >>= 1) m = max(m, __shfl_down_sync(~0u, m, o));  // finds: absent-lane
  if (threadIdx.x == 0) *largest = m;
}
__global__ void guarded_sum_of_20(const int* x, int* sum) {
  int s = x[threadIdx.x];
  for (int o = 16; o > 0; o >>= 1) {
    const int other = __shfl_down_sync(~0u, s, o);
    if (threadIdx.x + o < 20) s += other;
  }
  if (threadIdx.x == 0) *sum = s;
}

__global__ void beyond_table(int shift) {
  table[threadIdx.x + shift] = 1;  // finds: out-of-bounds
}
__global__ void write_constant() {
  factors[1] = 2;  // finds: out-of-bounds
}
__global__ void read_constant(float* x) { x[threadIdx.x] = factors[threadIdx.x] + after_table; }

__global__ void one_short(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}

// Infinity - infinity; a NaN that comes in is nobody's fault here.
__global__ void rescale(float* x, float largest) {
  x[threadIdx.x] *= expf(x[threadIdx.x] - largest);  // finds: nan
}

template <class T>
__global__ void reverse(T* x) {
  extern __shared__ T tile[];  // finds: nvcc error
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[31 - threadIdx.x];
}

__global__ void __launch_bounds__(64) few(int* x) { x[threadIdx.x] = 0; }

__global__ void dead_store(int* x) {
  __shared__ int winner;
  winner = threadIdx.x;  // finds: race
  x[threadIdx.x] = 0;
}

// The heap of kernels: the last thread writes beyond what it got.
__global__ void heap(int* x, int more) {
  int* own = (int*)malloc(8 * sizeof(int));
  int* made = new int[2];
  if (own == nullptr) return;
  for (int i = 0; i < 8; ++i) own[i] = i;
  made[0] = own[7];
  if (threadIdx.x == 31) own[7 + more] = 1;  // finds: out-of-bounds
  x[threadIdx.x] = made[0];
  delete[] made;
  free(own);
}

int main() {
  float *f = nullptr, *more[2] = {};
  int *big = nullptr, *small = nullptr;
  double* d = nullptr;
  if (cudaMalloc((void**)&big, 4096) || cudaMalloc(&small, 64)) return 1;  // finds: leak
  if (cudaMalloc((void**)&more[0 + 1], 128)) return 1;          // says: more[0+1]  // finds: leak
  if (cudaMalloc(reinterpret_cast<void**>(&d), 256)) return 1;  // says: 'd'  // finds: leak
  if (cudaMalloc(&f, 128)) return 1;                            // finds: leak
  if (cudaMemset(f, 0, 128) || cudaMemset(d, 0, 256)) return 1;
  if (cudaMemset(big, 0, 4096)) return 1;
  int host[32];
  sum_of_20<<<1, 20>>>(big, small);
  if (cudaMemcpy(host, small, 4, cudaMemcpyDeviceToHost)) return 1;
  largest_of_20<<<1, 20>>>(big, small);
  if (cudaMemcpy(host, small, 4, cudaMemcpyDeviceToHost)) return 1;
  guarded_sum_of_20<<<1, 20>>>(big, small);
  if (cudaMemcpy(host, small, 4, cudaMemcpyDeviceToHost)) return 1;
  beyond_table<<<1, 64>>>(0);
  beyond_table<<<1, 64>>>(1);
  write_constant<<<1, 1>>>();
  read_constant<<<1, 4>>>(f);
  one_short<<<1, 15>>>(small, 16);
  if (cudaMemcpy(host, small, 60, cudaMemcpyDeviceToHost)) return 1;
  if (cudaMemcpy(host, small, 64, cudaMemcpyDeviceToHost)) return 1;  // finds: uninitialised
  rescale<<<1, 32>>>(f, 0);
  rescale<<<1, 32>>>(f, -INFINITY);
  if (cudaMemcpy(host, f, 128, cudaMemcpyDeviceToHost)) return 1;
  if (cudaMemset(f, 0xff, 128)) return 1;
  rescale<<<1, 32>>>(f, 1);
  reverse<float><<<1, 32, 128>>>(f);
  reverse<double><<<1, 32, 256>>>(d);
  few<<<1, 64>>>(big);
  few<<<1, 65>>>(big);  // finds: unchecked error
  dead_store<<<1, 64>>>(big);
  heap<<<1, 32>>>(big, 0);
  heap<<<1, 32>>>(big, 1);
  if (cudaDeviceSynchronize()) return 1;
  return 0;
}
