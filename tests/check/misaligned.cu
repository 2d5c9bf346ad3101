// SPDX-License-Identifier: MIT
// Accesses between the multiples of their size, to each kind of memory, and aligned ones.
// exit: 1
__device__ int table[64];
__device__ int single;
__constant__ int factors[64];

__global__ void aligned(float4* x, int* words) {
  __shared__ alignas(16) int tile[128];
  tile[threadIdx.x] = words[threadIdx.x];
  __syncthreads();
  const int4 one = *(int4*)&tile[4 * (threadIdx.x % 8)], two = *(int4*)&table[4];
  const int4 three = *(int4*)&factors[8];
  const int2 four = *(int2*)((char*)table + 8);
  const short five = *(short*)((char*)factors + 2);
  x[threadIdx.x] = make_float4(one.x + two.x, three.y, four.x, five);
}

__global__ void wide_of_device(float4* x) {
  x[threadIdx.x] = *(float4*)&table[threadIdx.x + 1];  // finds: misaligned
}
__global__ void pair_of_device(int2* x) {
  x[threadIdx.x] = *(int2*)((char*)table + 4);  // finds: misaligned
}
// Beyond the end, too: a GPU looks at the address first.
__global__ void store_to_device() {
  *(int*)((char*)&single + 1) = 42;  // finds: misaligned
}
__global__ void update_of_device() {
  atomicAdd((int*)((char*)table + 2), 1);  // finds: misaligned
}
__global__ void wide_of_constant(float4* x) {
  x[threadIdx.x] = *(float4*)&factors[1];  // finds: misaligned
}
__global__ void pair_of_constant(int2* x, int shift) {
  x[threadIdx.x] = *(int2*)((char*)factors + shift);  // finds: misaligned
}
__global__ void of_shared(int2* x) {
  __shared__ alignas(16) int tile[64];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  x[threadIdx.x] = *(int2*)&tile[threadIdx.x + 1];  // finds: misaligned
}
__global__ void of_dynamic(double* x) {
  extern __shared__ int memory[];
  *(volatile double*)&memory[2 * threadIdx.x + 1] = x[threadIdx.x];  // finds: misaligned
}
__global__ void of_allocated(int* x) {
  *(short*)((char*)x + 1) = 1;  // finds: misaligned
}

// Not reached by the traced run, for which the kernel before fails.
__global__ void stray(int* x) { *(int*)((char*)x + (1ll << 40)) = 1; }  // finds: failed kernel

template <class T>
T* zeros() {
  T* x = nullptr;
  if (cudaMalloc(&x, 1024) != cudaSuccess || cudaMemset(x, 0, 1024) != cudaSuccess) return nullptr;
  return x;
}

// After a misaligned address only a reset device goes on.
int failed = 0;
void reset() {
  failed += cudaDeviceSynchronize() != cudaSuccess;
  failed += cudaDeviceReset() != cudaSuccess;
}

int main() {
  aligned<<<1, 32>>>(zeros<float4>(), zeros<int>());
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  wide_of_device<<<1, 32>>>(zeros<float4>());
  reset();
  pair_of_device<<<1, 32>>>(zeros<int2>());
  reset();
  store_to_device<<<1, 1>>>();
  reset();
  update_of_device<<<1, 1>>>();
  reset();
  wide_of_constant<<<1, 32>>>(zeros<float4>());
  reset();
  pair_of_constant<<<1, 32>>>(zeros<int2>(), 4);
  reset();
  of_shared<<<1, 32>>>(zeros<int2>());
  reset();
  of_dynamic<<<1, 32, 1024>>>(zeros<double>());
  reset();
  of_allocated<<<1, 1>>>(zeros<int>());
  stray<<<1, 1>>>(nullptr);
  reset();
  return failed == 0;
}
