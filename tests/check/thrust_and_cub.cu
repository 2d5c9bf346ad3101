// SPDX-License-Identifier: MIT
// Thrust: vectors, algorithms, iterators, a kernel between them, a range that is too long. CUB:
// blocks, warps and device-wide calls, a TempStorage that is used again without a barrier.
// exit: 1
// prints: thrust 0, cub 0
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

#include <cstdio>

struct Square {
  __host__ __device__ float operator()(float x) const { return x * x; }
};

__global__ void negate(float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = -x[i];
}

__global__ void blocks(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, 96>;
  using Scan = cub::BlockScan<int, 96>;
  __shared__ typename Reduce::TempStorage of_reduce;
  __shared__ typename Scan::TempStorage of_scan;
  const int sum = Reduce(of_reduce).Sum(in[threadIdx.x]);
  int before, all, up_to;
  Scan(of_scan).ExclusiveSum(in[threadIdx.x], before, all);
  __syncthreads();
  Scan(of_scan).InclusiveScan(in[threadIdx.x], up_to, cub::Max());
  out[threadIdx.x] = before + up_to;
  if (threadIdx.x == 0) out[96] = sum, out[97] = all;
}

__global__ void twice(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, 96>;
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(in[threadIdx.x]);
  const int most = Reduce(storage).Reduce(in[threadIdx.x], cub::Max());  // finds: race
  if (threadIdx.x == 0) out[0] = sum + most;
}

int of_thrust() {
  thrust::host_vector<float> h(100);
  for (int i = 0; i < 100; ++i) h[i] = static_cast<float>(i * 37 % 100);
  thrust::device_vector<float> d = h;
  negate<<<1, 128>>>(thrust::raw_pointer_cast(d.data()), 100);
  thrust::sort(d.begin(), d.end());
  int wrong = d[0] != -99.0f || d[99] != 0.0f;
  wrong += thrust::reduce(d.begin(), d.end(), 0.0f, thrust::plus<float>()) != -4950.0f;
  wrong += thrust::transform_reduce(thrust::device, d.begin(), d.end(), Square(), 0.0f,
                                    thrust::plus<float>()) != 328350.0f;
  wrong += thrust::max_element(d.begin(), d.end()) - d.begin() != 99;
  thrust::device_vector<int> index(100);
  thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(100),
                    index.begin(), [] __device__(int i) { return i % 3; });
  thrust::sort_by_key(index.begin(), index.end(), d.begin());
  wrong += d[1] != -96.0f || index[34] != 1;
  thrust::exclusive_scan(index.begin(), index.end(), index.begin());
  wrong += index[99] != 97;
  const auto both = thrust::make_zip_iterator(thrust::make_tuple(index.begin(), d.begin()));
  wrong += thrust::transform_reduce(
               both, both + 100,
               [] __device__(const thrust::tuple<int, float>& at) {
                 return thrust::get<0>(at) + thrust::get<1>(at);
               },
               0.0f, thrust::plus<float>()) != -2277.0f;
  h = d;
  wrong += h[1] != -96.0f;
  float* raw;
  if (cudaMalloc(&raw, 40)) return 2;
  thrust::fill(thrust::device, raw, raw + 10, 1.0f);
  wrong +=
      thrust::reduce(thrust::device_pointer_cast(raw), thrust::device_pointer_cast(raw) + 10) != 10;
  thrust::fill(thrust::device, raw, raw + 11, 1.0f);  // finds: out-of-bounds
  return cudaFree(raw) || wrong;
}

int of_cub() {
  int *in, *out, *sorted;
  if (cudaMallocManaged(&in, 96 * 4) || cudaMallocManaged(&out, 98 * 4)) return 2;
  if (cudaMallocManaged(&sorted, 96 * 4)) return 2;
  for (int i = 0; i < 96; ++i) in[i] = i * 29 % 96;
  blocks<<<1, 96>>>(in, out);
  if (cudaDeviceSynchronize()) return 2;
  int wrong = out[96] != 4560 || out[97] != 4560, sum = 0, most = 0;
  for (int i = 0; i < 96; ++i) {
    most = in[i] > most ? in[i] : most;
    wrong += out[i] != sum + most;
    sum += in[i];
  }
  void* storage = nullptr;
  size_t bytes = 0;
  cub::DeviceRadixSort::SortKeys(storage, bytes, in, sorted, 96);
  if (cudaMalloc(&storage, bytes)) return 2;
  cub::DeviceRadixSort::SortKeys(storage, bytes, in, sorted, 96);
  cub::DeviceReduce::Sum(storage, bytes, in, out, 96);
  if (cudaDeviceSynchronize()) return 2;
  for (int i = 0; i < 96; ++i) wrong += sorted[i] != i;
  wrong += out[0] != 4560;
  twice<<<1, 96>>>(in, out);
  if (cudaDeviceSynchronize()) return 2;
  return wrong || cudaFree(in) || cudaFree(out) || cudaFree(sorted) || cudaFree(storage);
}

int main() { printf("thrust %d, cub %d\n", of_thrust(), of_cub()); }
