// SPDX-License-Identifier: MIT
// One small kernel for each kind of mistake, beside a correct one, and what a buffer is called.
// exit: 1
// options: --leaks
// prints: extern __shared__ 'letters' and 'numbers' start at the same address
#include <cuda_bf16.h>
#include <cuda_fp16.h>

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
__global__ void two_names(int* x) {
  extern __shared__ short letters[];
  extern __shared__ int numbers[];
  letters[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = numbers[threadIdx.x / 2];
}

// nvcc refuses it: no kernel can see a variable of the host, but constants.
int host_factor = 3;
const int kHostFactor = 3;
__global__ void read_host_variable(int* x) {
  x[threadIdx.x] = host_factor;  // finds: out-of-bounds  // says: host variable 'host_factor'
}
__global__ void read_host_constant(int* x) { x[threadIdx.x] = *&kHostFactor; }

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

// Infinities of finite numbers; x is 0.
__global__ void reciprocal(float* x) {
  x[threadIdx.x] = 1 / x[threadIdx.x];  // finds: infinity
}
__global__ void power(float* x) {
  x[threadIdx.x] = expf(x[threadIdx.x] + 100);  // finds: infinity
}
__global__ void to_half(__half* x) {
  x[threadIdx.x] = __float2half(__half2float(x[threadIdx.x]) + 65520);  // finds: infinity
}
__global__ void to_bfloat16(__nv_bfloat16* x) {
  x[threadIdx.x] = __float2bfloat16(float(x[threadIdx.x]) + 3.4e38f);  // finds: infinity
}
__global__ void times_two(__half* x) {
  x[threadIdx.x] = __float2half(65519) + x[threadIdx.x];
  x[threadIdx.x] = x[threadIdx.x] * __float2half(2);  // finds: infinity
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

// Filters, borders and normalised coordinates; the texel that nothing has written; a surface that
// one thread writes and another reads.
__global__ void sample(cudaTextureObject_t row, cudaTextureObject_t image, float* out) {
  if (threadIdx.x == 0) {
    out[0] = tex1Dfetch<float>(row, 3) + tex1Dfetch<float>(row, -1) + tex1Dfetch<float>(row, 32);
    out[1] = tex2D<float>(image, 2.0f, 1.5f);            // between two texels of a row
    out[2] = tex2D<float>(image, 1.50146484375f, 0.5f);  // a step of 1/256 is the least
    out[3] = tex2D<float>(image, -5, 0.5f);              // clamped
    out[4] = tex2D<float>(image, 0.5f, 3.25f);           // beyond the border of the rows
  }
}
__global__ void normalised(cudaTextureObject_t bytes, float4* out) {
  *out = tex2D<float4>(bytes, 1.75f, 0.25f);  // wraps to (3, 0) of 4 x 2
}
__global__ void unwritten(cudaTextureObject_t image, float* out, int rows) {
  for (int y = 0; y < rows; ++y) out[y] = tex2D<float>(image, 1, y);  // finds: uninitialised
}
__global__ void exchange(cudaSurfaceObject_t surface, float* out, bool waits) {
  surf2Dwrite(float(threadIdx.x), surface, threadIdx.x * 4, 0);  // finds: race
  if (waits) __syncthreads();
  float other;
  surf2Dread(&other, surface, (threadIdx.x + 32) % 64 * 4, 0);
  out[threadIdx.x] = other + surf2Dread<float>(surface, 0, -1, cudaBoundaryModeZero);
}
int textures(float* row, float* out) {
  float host[64];
  for (int i = 0; i < 64; ++i) host[i] = i;
  cudaArray_t image, bytes, wide;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>(),
                        four = cudaCreateChannelDesc<uchar4>();
  if (cudaMallocArray(&image, &format, 4, 3) || cudaMallocArray(&bytes, &four, 4, 2)) return 1;
  if (cudaMallocArray(&wide, &format, 64, 1, cudaArraySurfaceLoadStore)) return 1;
  if (cudaMemcpy2DToArray(image, 0, 0, host, 16, 16, 3, cudaMemcpyHostToDevice)) return 1;
  unsigned char colours[32];
  for (int i = 0; i < 32; ++i) colours[i] = i * 5;
  if (cudaMemcpyToArray(bytes, 0, 0, colours, 32, cudaMemcpyHostToDevice)) return 1;
  if (cudaMemcpy(row, host, 128, cudaMemcpyHostToDevice)) return 1;

  cudaResourceDesc resource = {};
  cudaTextureDesc how = {};
  cudaTextureObject_t linear, filtered, colour, partly;
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {row, format, 128};
  if (cudaCreateTextureObject(&linear, &resource, &how, nullptr)) return 1;
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = image;
  how.addressMode[1] = cudaAddressModeBorder;
  how.filterMode = cudaFilterModeLinear;
  if (cudaCreateTextureObject(&filtered, &resource, &how, nullptr)) return 1;
  how = {};
  resource.res.array.array = bytes;
  how.normalizedCoords = 1;
  how.readMode = cudaReadModeNormalizedFloat;
  if (cudaCreateTextureObject(&colour, &resource, &how, nullptr)) return 1;
  sample<<<1, 32>>>(linear, filtered, out);
  if (cudaMemcpy(host, out, 20, cudaMemcpyDeviceToHost)) return 1;
  if (host[0] != 3 || host[1] != 5.5f || host[2] != 1 || host[3] != 0 || host[4] != 2) return 1;
  normalised<<<1, 1>>>(colour, (float4*)out);
  if (cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost)) return 1;
  if (host[0] != 60 / 255.f || host[3] != 75 / 255.f) return 1;

  // One row of two is written.
  cudaArray_t rows;
  if (cudaMallocArray(&rows, &format, 4, 2)) return 1;
  if (cudaMemcpy2DToArray(rows, 0, 0, host, 16, 16, 1, cudaMemcpyHostToDevice)) return 1;
  if (cudaMemcpy2DToArray(rows, 0, 0, host, 16, 16, 3, cudaMemcpyHostToDevice) !=
      cudaErrorInvalidValue) {
    return 1;
  }
  if (cudaGetLastError() != cudaErrorInvalidValue) return 1;
  how = {};
  resource.res.array.array = rows;
  if (cudaCreateTextureObject(&partly, &resource, &how, nullptr)) return 1;
  unwritten<<<1, 1>>>(partly, out, 1);
  unwritten<<<1, 1>>>(partly, out, 2);

  cudaSurfaceObject_t surface;
  resource.res.array.array = wide;
  if (cudaCreateSurfaceObject(&surface, &resource)) return 1;
  exchange<<<1, 64>>>(surface, out, true);
  if (cudaMemcpy(host, out, 256, cudaMemcpyDeviceToHost) || host[1] != 33) return 1;
  exchange<<<1, 64>>>(surface, out, false);
  cudaDestroyTextureObject(linear);
  cudaDestroySurfaceObject(surface);
  return cudaFreeArray(image) || cudaFreeArray(bytes) || cudaFreeArray(wide) || cudaFreeArray(rows);
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
  if (textures((float*)big, (float*)big + 128)) return 3;
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
  two_names<<<1, 16, 64>>>(big);
  read_host_variable<<<1, 16>>>(big);
  read_host_constant<<<1, 16>>>(big);
  write_constant<<<1, 1>>>();
  read_constant<<<1, 4>>>(f);
  one_short<<<1, 15>>>(small, 16);
  if (cudaMemcpy(host, small, 60, cudaMemcpyDeviceToHost)) return 1;
  if (cudaMemcpy(host, small, 64, cudaMemcpyDeviceToHost)) return 1;  // finds: uninitialised
  rescale<<<1, 32>>>(f, 0);
  rescale<<<1, 32>>>(f, -INFINITY);
  if (cudaMemcpy(host, f, 128, cudaMemcpyDeviceToHost)) return 1;
  if (cudaMemset(f, 0, 128)) return 1;
  reciprocal<<<1, 32>>>(f);
  if (cudaMemcpy(host, f, 128, cudaMemcpyDeviceToHost) || cudaMemset(f, 0, 128)) return 1;
  power<<<1, 32>>>(f);
  if (cudaMemset(f, 0, 128)) return 1;
  to_half<<<1, 32>>>((__half*)f);
  if (cudaMemset(f, 0, 128)) return 1;
  to_bfloat16<<<1, 32>>>((__nv_bfloat16*)f);
  if (cudaMemset(f, 0, 128)) return 1;
  times_two<<<1, 32>>>((__half*)f);
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
