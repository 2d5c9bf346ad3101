// SPDX-License-Identifier: MIT
// Cooperative groups: tiles of less and more than a warp, coalesced threads, reductions, and a grid
// that synchronises.
// exit: 1
// prints: sum 523776, tiles 31, evens 16, blocks 3 3 3, wide 2016 64 130 3
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>

namespace cg = cooperative_groups;

__global__ void sum(const int* x, int* result, int n) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  __shared__ int partial[8];
  int mine = 0;
  for (int i = block.thread_rank(); i < n; i += block.size()) mine += x[i];
  mine = cg::reduce(warp, mine, cg::plus<int>());
  if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = mine;
  cg::sync(block);
  if (block.thread_rank() == 0) {
    for (int i = 1; i < 8; ++i) mine += partial[i];
    result[0] = mine;
  }
  cg::thread_group quad = cg::tiled_partition(block, 4);
  auto half = cg::tiled_partition<16>(warp);
  const int last = half.shfl(static_cast<int>(threadIdx.x), 15);
  const uint4 wide = half.shfl(make_uint4(threadIdx.x, 1, 2, 3), 4);  // 16 bytes
  if (threadIdx.x == 20) result[1] = last + (quad.size() != 4) + (wide.x != 20 || wide.w != 3);
  if (threadIdx.x < 32 && threadIdx.x % 2 == 0) {
    // The lanes that are here together are any of those 16.
    cg::coalesced_group here = cg::coalesced_threads();
    if (here.thread_rank() == 0) atomicAdd(&result[2], static_cast<int>(here.size()));
  }
}

__global__ void neighbours(int* in, int* out) {
  cg::grid_group grid = cg::this_grid();
  __shared__ int mine;
  if (threadIdx.x == 0) {
    mine = blockIdx.x + 1;
    in[blockIdx.x] = mine;
  }
  grid.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = in[(blockIdx.x + 1) % gridDim.x] == mine % 3 + 1 ? 3 : 0;
}

// Two tiles of 64. The threads of one exchange values through shared memory, too.
__global__ void wide(int* result, int* other) {
  __shared__ cg::block_tile_memory<128> room;
  __shared__ int x[128];
  const cg::thread_block block = cg::this_thread_block(room);
  const auto tile = cg::tiled_partition<64>(block);
  const cg::thread_block_tile<64> same = tile;
  const auto warp = cg::tiled_partition<32>(tile);
  const int rank = tile.thread_rank(), next = tile.meta_group_rank() * 64 + (rank + 1) % 64;
  x[threadIdx.x] = rank;
  tile.sync();
  const int sum = cg::reduce(tile, x[next], cg::plus<int>());
  const int ones = cg::inclusive_scan(tile, 1);
  const int before = cg::exclusive_scan(same, 1) - rank;
  const int from = tile.shfl(static_cast<int>(threadIdx.x), 2);
  const int last = cg::invoke_one_broadcast(tile, [&] { return rank + 66; });
  const bool odd = !tile.any(rank == 63) || tile.all(rank != 0) || before != 0;
  if (threadIdx.x == 127) {
    result[0] = sum;
    result[1] = ones + odd;
    result[2] = from + last - 2;
    result[3] = warp.meta_group_rank() + warp.meta_group_size();
  }
  x[threadIdx.x] = rank;  // finds: race
  warp.sync();
  other[threadIdx.x] = x[next];
}

int main() {
  const int n = 1024;
  int host[n], *x, *result, *in, *out;
  for (int i = 0; i < n; ++i) host[i] = i;
  if (cudaMalloc(&x, sizeof(host)) || cudaMalloc(&result, 12) || cudaMalloc(&in, 12)) return 1;
  if (cudaMalloc(&out, 12) || cudaMemset(result, 0, 12)) return 1;
  if (cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice)) return 1;
  sum<<<1, 256>>>(x, result, n);
  void* arguments[] = {&in, &out};
  if (cudaLaunchCooperativeKernel((void*)neighbours, 3, 32, arguments)) return 1;
  int sums[3], blocks[3];
  if (cudaMemcpy(sums, result, 12, cudaMemcpyDeviceToHost)) return 1;
  if (cudaMemcpy(blocks, out, 12, cudaMemcpyDeviceToHost)) return 1;
  int tiles[4];
  wide<<<1, 128>>>(x, x + 4);
  if (cudaMemcpy(tiles, x, sizeof(tiles), cudaMemcpyDeviceToHost)) return 1;
  printf("sum %d, tiles %d, evens %d, blocks %d %d %d, wide %d %d %d %d\n", sums[0], sums[1],
         sums[2], blocks[0], blocks[1], blocks[2], tiles[0], tiles[1], tiles[2], tiles[3]);
  return cudaFree(x) || cudaFree(result) || cudaFree(in) || cudaFree(out);
}
