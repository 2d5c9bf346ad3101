// SPDX-License-Identifier: MIT
// Thrust: vectors, algorithms, iterators, a kernel between them, a range that is too long. CUB:
// blocks, warps and device-wide calls, a TempStorage that is used again without a barrier, more
// runs than a buffer holds.
// exit: 1
// prints: thrust 0, cub 0
#include <cub/cub.cuh>
#include <thrust/binary_search.h>
#include <thrust/complex.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/replace.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/shuffle.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

#include <cstdio>
#include <iterator>
#include <sstream>

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

// The pairs have 16 bytes.
__global__ void warps(const int* in, double* out) {
  using Pair = cub::KeyValuePair<int, double>;
  using Reduce = cub::BlockReduce<Pair, 64>;
  using Scan = cub::WarpScan<int>;
  __shared__ typename Reduce::TempStorage of_reduce;
  __shared__ typename Scan::TempStorage of_scan[2];
  const int own = static_cast<int>(threadIdx.x);
  const Pair most = Reduce(of_reduce).Reduce(Pair{own, 0.5 + in[own]}, cub::ArgMax());
  int before, all;
  Scan(of_scan[own / 32]).ExclusiveSum(own, before, all);
  if (own == 0) out[0] = most.key, out[1] = most.value;
  if (own == 33) out[2] = before, out[3] = all;
}

/// What came before, which it keeps.
struct Running {
  int sum;
  __device__ int operator()(int all) {
    const int before = sum;
    sum += all;
    return before;
  }
};
struct Line {  // x -> a x + b, one after the other
  int a, b;
};

/// Two tiles of 192 numbers.
__global__ void tiles(const int* in, int* out) {
  using Scan = cub::BlockScan<int, 96, cub::BLOCK_SCAN_WARP_SCANS>;
  using Lines = cub::BlockScan<Line, 96, cub::BLOCK_SCAN_RAKING_MEMOIZE>;
  __shared__ typename Scan::TempStorage storage;
  __shared__ typename Lines::TempStorage of_lines;
  Running running{1000};
  for (int tile = 0; tile < 2; ++tile) {
    int items[2] = {in[threadIdx.x], in[threadIdx.x]};
    Scan(storage).ExclusiveSum(items, items, running);
    __syncthreads();
    for (int i = 0; i < 2; ++i) out[192 * tile + 96 * i + threadIdx.x] = items[i];
  }
  Line line{1, static_cast<int>(threadIdx.x)}, sum;
  const auto then = [](Line f, Line g) { return Line{g.a * f.a, g.a * f.b + g.b}; };
  Lines(of_lines).ExclusiveScan(line, line, Line{1, 7}, then, sum);
  out[threadIdx.x + 384] = line.b;
  if (threadIdx.x == 0) out[480] = sum.b;
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
  negate<<<1, 128>>>(thrust::raw_pointer_cast(&d[0]), 100);
  thrust::sort(d.begin(), d.end());
  int wrong = d[0] != -99.0f || d[99] != 0.0f;
  wrong += thrust::reduce(d.begin(), d.end(), 0.0f, thrust::plus<float>()) != -4950.0f;
  wrong += thrust::transform_reduce(thrust::device, d.begin(), d.end(), Square(), 0.0f,
                                    thrust::plus<float>()) != 328350.0f;
  wrong += thrust::distance(d.begin(), thrust::max_element(d.begin(), d.end())) != 99;
  wrong += THRUST_VERSION / 100000 != 2;
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
  thrust::device_vector<float> found(3), wanted(3), sorted = d;
  wanted[0] = -98.5f, wanted[1] = 0.0f, wanted[2] = -99.0f;
  thrust::sort(sorted.begin(), sorted.end());
  thrust::lower_bound(sorted.begin(), sorted.end(), wanted.begin(), wanted.end(), found.begin());
  wrong += found[0] != 1 || found[1] != 99 || found[2] != 0;
  wrong += !thrust::binary_search(sorted.begin(), sorted.end(), -7.0f) ||
           thrust::upper_bound(sorted.begin(), sorted.end(), -7.0f) - sorted.begin() != 93;
  thrust::replace_if(
      found.begin(), found.end(), [](float x) { return x > 50; }, 5.0f);
  wrong += thrust::reduce(found.begin(), found.end()) != 6;
  std::ostringstream text;
  thrust::copy(found.begin(), found.end(), std::ostream_iterator<float>(text, " "));
  wrong += text.str() != "1 5 0 ";
  const float flags[] = {0, 1, 1};
  wanted.resize(thrust::copy_if(found.begin(), found.end(), flags, wanted.begin(),
                                [](float x) { return x == 1; }) -
                wanted.begin());
  wrong += wanted.size() != 2 || wanted[0] != 5 || wanted[1] != 0;
  thrust::default_random_engine engine(7);
  thrust::uniform_real_distribution<float> uniform(2, 3);
  const float drawn = uniform(engine);
  thrust::host_vector<int> cards(50);
  thrust::sequence(cards.begin(), cards.end());
  thrust::shuffle(cards.begin(), cards.end(), engine);
  wrong += thrust::is_sorted(cards.begin(), cards.end());
  thrust::sort(cards.begin(), cards.end());
  wrong += cards[0] != 0 || cards[49] != 49;
  wrong += drawn < 2 || drawn >= 3 || thrust::norm(thrust::complex<float>(3, 4)) != 25;
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
  double* of_warps;
  if (cudaMallocManaged(&of_warps, 32)) return 2;
  warps<<<1, 64>>>(in, of_warps);
  if (cudaDeviceSynchronize()) return 2;
  int best = 0;
  for (int i = 0; i < 64; ++i) best = in[i] > in[best] ? i : best;
  wrong += of_warps[0] != best || of_warps[1] != in[best] + 0.5;
  wrong += of_warps[2] != 32 || of_warps[3] != 1520 || cudaFree(of_warps);
  void* storage = nullptr;
  size_t bytes = 0;
  cub::DeviceRadixSort::SortKeys(storage, bytes, in, sorted, 96);
  if (cudaMalloc(&storage, bytes)) return 2;
  cub::DeviceRadixSort::SortKeys(storage, bytes, in, sorted, 96);
  cub::DeviceReduce::Sum(storage, bytes, in, out, 96);
  if (cudaDeviceSynchronize()) return 2;
  for (int i = 0; i < 96; ++i) wrong += sorted[i] != i;
  wrong += out[0] != 4560;
  int* of_tiles;
  if (cudaMallocManaged(&of_tiles, 481 * 4)) return 2;
  tiles<<<1, 96>>>(in, of_tiles);
  if (cudaDeviceSynchronize()) return 2;
  for (int i = 0, before = 1000; i < 384; before += in[i++ / 2 % 96]) {
    wrong += of_tiles[i / 192 * 192 + i % 2 * 96 + i / 2 % 96] != before;
  }
  // The sum of all has no initial value in it.
  wrong += of_tiles[479] != 7 + 94 * 95 / 2 || of_tiles[480] != 95 * 96 / 2 || cudaFree(of_tiles);
  cub::CachingDeviceAllocator allocator;
  int *runs, *lengths, *count, host[3];
  allocator.DeviceAllocate((void**)&runs, 96 * 4);
  allocator.DeviceAllocate((void**)&lengths, 3 * 4);
  allocator.DeviceAllocate((void**)&count, 4);
  for (int i = 0; i < 96; ++i) sorted[i] = (i > 9) + (i > 59);
  const auto encode = [&](int n) {
    return cub::DeviceRunLengthEncode::Encode(  // finds: out-of-bounds
        storage, bytes, sorted, runs, lengths, count, n);
  };
  encode(96);
  if (cudaMemcpy(host, lengths, 12, cudaMemcpyDeviceToHost)) return 2;
  wrong += host[0] != 10 || host[1] != 50 || host[2] != 36;
  sorted[5] = 7;
  encode(96);  // five runs, where there is room for three
  allocator.DeviceFree(runs);
  allocator.DeviceFree(lengths);
  allocator.DeviceFree(count);
  twice<<<1, 96>>>(in, out);
  if (cudaDeviceSynchronize()) return 2;
  return wrong || cudaFree(in) || cudaFree(out) || cudaFree(sorted) || cudaFree(storage);
}

int main() { printf("thrust %d, cub %d\n", of_thrust(), of_cub()); }
