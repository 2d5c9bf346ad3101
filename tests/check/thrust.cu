// SPDX-License-Identifier: MIT
// Thrust: vectors, algorithms, iterators, and a kernel between them.
// exit: 1
// prints: 0 wrong
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

int main() {
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
  printf("%d wrong\n", wrong);
  return cudaFree(raw);
}
