// SPDX-License-Identifier: MIT
// A right program: templates, macros around launches, dynamic shared memory, constants, events.
// exit: 0
// prints: sum 499500, reversed 999, scaled 6, hits 4
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "cuda/own.cuh"

#define CHECK(call)                                                          \
  do {                                                                       \
    const cudaError_t error_ = (call);                                       \
    if (error_ != cudaSuccess) {                                             \
      printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
      exit(EXIT_FAILURE);                                                    \
    }                                                                        \
  } while (0)
#define LAUNCH(kernel, grid, block, ...) \
  kernel<<<grid, block>>>(__VA_ARGS__);  \
  CHECK(cudaGetLastError())

__constant__ int factors[2];
__device__ int hits;
__managed__ int managed_value = 1;

namespace kernels {

template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads) sum(const T* __restrict__ x, T* result, int n) {
  __shared__ T partial[kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  partial[threadIdx.x] = i < n ? x[i] : T(0);
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, partial[0]);
}

template <class T>
__global__ void scale(T* x, T value) {
  x[threadIdx.x] = value * factors[1];
}

}  // namespace kernels

extern __shared__ int tile[];

// Not a launch: "a<<<b>>>(c)", and neither is this: kernel<<<1, 2>>>(3).
static const char* const kText = R"(kernel<<<1, 1>>>();)";

__global__ void reverse(int* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = tile[n - 1 - i];
}

__global__ void count() {
  atomicAdd(&hits, managed_value);
  if (kText == nullptr) __trap();
}

__device__ unsigned arrived = 0, generation = 0;

// A barrier of all blocks, which the device holds at once.
__device__ void grid_barrier() {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned now = atomicAdd(&generation, 0);
    __threadfence();
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
      atomicExch(&arrived, 0);
      __threadfence();
      atomicAdd(&generation, 1);
    }
    while (atomicAdd(&generation, 0) == now) {
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void neighbours(int* x, int* y) {
  const int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = i;
  grid_barrier();
  y[i] = x[(i + 1) % n] + x[(i + n - 1) % n];
  grid_barrier();
  x[i] = y[(i + 1) % n];
}

// All lanes load before one of them adds.
__global__ void builtins(int* x) {
  const int old = __nv_atomic_load_n(x, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_fetch_add(x, old + 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_BLOCK);
  __nv_atomic_exchange_n(x, 4, __NV_ATOMIC_RELAXED);
}

template <class To, class From>
struct Cast {
  template <int kCount>
  static __device__ To sum(const From* x) {
    To all = 0;
    for (int i = 0; i < kCount; ++i) all += static_cast<To>(x[i]);
    return all;
  }
};
// As nvcc takes it: without the word template in front of a member of a dependent type.
template <class To, class Volume>
__global__ void sum_of(Volume volume, To* sum) {
  *sum = Cast<To, float>::sum<2>(static_cast<const float*>(volume.ptr));
}

__global__ void between(cudaPitchedPtr volume, float* value) {
  const float* slice = (const float*)((char*)volume.ptr + volume.pitch * volume.ysize);
  *value = lerp(tex2D(slice, 0, 0, 0), tex2D(slice, (int)(volume.pitch / 4), 2, 1), 0.25f);
}

// A volume of 3 x 2 x 2 in rows with a pitch: its second slice is copied from the host.
int volumes() {
  const cudaExtent extent = make_cudaExtent(12, 2, 2);
  cudaPitchedPtr volume;
  CHECK(cudaMalloc3D(&volume, extent));
  CHECK(cudaMemset3D(volume, 0, extent));
  float host[12] = {0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6}, *value;
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(host, 12, 3, 2);
  copy.srcPos = copy.dstPos = make_cudaPos(0, 0, 1);
  copy.dstPtr = volume;
  copy.extent = make_cudaExtent(12, 2, 1);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  CHECK(cudaMalloc(&value, 4));
  sum_of<<<1, 1>>>(volume, value);
  between<<<1, 1>>>(volume, value);
  float result;
  CHECK(cudaMemcpy(&result, value, 4, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(value));
  CHECK(cudaFree(volume.ptr));
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  if (cudaDeviceEnablePeerAccess(1, 0) != cudaErrorInvalidDevice) return 1;
  return cudaGetLastError() != cudaErrorInvalidDevice || result != 2.25f;  // 1 and 6
}

// The host gives an infinity, so others may be meant, too: 1 / (1 + exp(100)) is right.
__global__ void sigmoid(float* x) { x[threadIdx.x] = 1 / (1 + expf(-x[threadIdx.x])); }
int infinities() {
  float host[32] = {INFINITY, -100, -INFINITY}, *x = nullptr;
  CHECK(cudaMalloc(&x, sizeof(host)));
  CHECK(cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost));
  sigmoid<<<1, 32>>>(x);
  CHECK(cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(x));
  return host[0] != 1 || host[1] != 0 || host[2] != 0;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 1000;
  int *host = nullptr, *device = nullptr, *result = nullptr;
  CHECK(cudaMallocHost(&host, n * sizeof(int)));
  CHECK(cudaMalloc(&device, n * sizeof(int)));
  CHECK(cudaMalloc((void**)&result, sizeof(int)));
  for (int i = 0; i < n; ++i) host[i] = i;
  CHECK(cudaMemcpy(device, host, n * sizeof(int), cudaMemcpyHostToDevice));
  int* copy = nullptr;
  CHECK(cudaMalloc(&copy, n * sizeof(int)));
  CHECK(cudaMemcpy(copy, device, n * sizeof(int), cudaMemcpyDeviceToDevice));
  CHECK(cudaMemcpy(device, copy, n * sizeof(int), cudaMemcpyDefault));
  CHECK(cudaFree(copy));
  CHECK(cudaMemset(result, 0, sizeof(int)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(start, stream));
  const int blocks = (n + 255) / 256;
  kernels::sum<int, 256><<<blocks, 256, 0, stream>>>(device, result, n);
  CHECK(cudaGetLastError());
  reverse<<<dim3(1), dim3(128), n * sizeof(int)>>>(device, n);
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  int sum = 0;
  CHECK(cudaMemcpy(&sum, result, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));

  const int values[2] = {1, 2};
  CHECK(cudaMemcpyToSymbol(factors, values, sizeof(values)));
  LAUNCH(kernels::scale, 1, 1, result, 3);  // T is deduced
  int scaled = 0, counted = 0;
  CHECK(cudaMemcpy(&scaled, result, sizeof(int), cudaMemcpyDeviceToHost));
  LAUNCH(count, 2, 2);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpyFromSymbol(&counted, hits, sizeof(int)));
  printf("sum %d, reversed %d, scaled %d, hits %d\n", sum, host[0], scaled, counted);
  int *x = nullptr, *y = nullptr;
  CHECK(cudaMalloc(&x, 128 * sizeof(int)));
  CHECK(cudaMalloc(&y, 128 * sizeof(int)));
  neighbours<<<4, 32>>>(x, y);
  CHECK(cudaMemset(x, 0, sizeof(int)));
  builtins<<<1, 32>>>(x);
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(device));
  CHECK(cudaFree(result));
  CHECK(cudaFreeHost(host));
  return milliseconds < 0 || volumes() || infinities();
}
