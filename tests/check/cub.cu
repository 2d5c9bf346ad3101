// SPDX-License-Identifier: MIT
// CUB: blocks, warps and device-wide calls; a TempStorage that is used again without a barrier.
// exit: 1
// prints: 0 wrong
#include <cub/cub.cuh>

#include <cstdio>

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

int main() {
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
  printf("%d wrong\n", wrong);
  return cudaFree(in) || cudaFree(out) || cudaFree(sorted) || cudaFree(storage);
}
