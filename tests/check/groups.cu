// SPDX-License-Identifier: MIT
// Cooperative groups: tiles, coalesced threads, reductions, and a grid that synchronises.
// exit: 0
// prints: sum 523776, tiles 31, evens 16, blocks 3 3 3
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

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
  printf("sum %d, tiles %d, evens %d, blocks %d %d %d\n", sums[0], sums[1], sums[2], blocks[0],
         blocks[1], blocks[2]);
  return cudaFree(x) || cudaFree(result) || cudaFree(in) || cudaFree(out);
}
