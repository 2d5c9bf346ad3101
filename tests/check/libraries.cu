// SPDX-License-Identifier: MIT
// Headers of the toolkit: asynchronous copies, barriers, atomics, clusters, fp8, NVTX; and GLUT,
// whose main loop draws and then presses the escape key.
// options: -O3 -arch sm_90a --std=c++17 -lineinfo -lcuda
// exit: 0
// prints: 0 wrong
#include <GL/glut.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <utility>

namespace cg = cooperative_groups;

__global__ void stages(const int* in, int* out, int count) {
  __shared__ alignas(16) int tile[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const cg::thread_block block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  const auto load = [&](int i) {
    pipeline.producer_acquire();
    cuda::memcpy_async(block, tile[i % 2], in + 128 * i, cuda::aligned_size_t<16>(512), pipeline);
    pipeline.producer_commit();
  };
  load(0);
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    if (i + 1 < count) load(i + 1);
    pipeline.consumer_wait();
    sum += tile[i % 2][127 - threadIdx.x];
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}

__global__ void copies(const int* in, int* out) {
  __shared__ alignas(16) int a[128], b[128];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  const cg::thread_block block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  cg::memcpy_async(block, a, in, 512);
  cg::wait(block);
  __pipeline_memcpy_async(&b[threadIdx.x], &in[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  auto token = bar.arrive();
  bar.wait(std::move(token));
  out[threadIdx.x] += a[127 - threadIdx.x] - b[127 - threadIdx.x];
}

__device__ cuda::atomic<int, cuda::thread_scope_device> ready{0};
__device__ int data, sum;

__global__ void flags(int* count) {
  cuda::atomic_ref<int, cuda::thread_scope_device> all(*count);
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    data = 5;
    ready.store(1, cuda::memory_order_release);
  }
  if (threadIdx.x == 0 && blockIdx.x == 1) {
    while (ready.load(cuda::memory_order_acquire) == 0) __nanosleep(20);
    sum = data;
  }
  all.fetch_add(1, cuda::memory_order_relaxed);
}

__global__ void __cluster_dims__(2, 1, 1) neighbours(int* out) {
  __shared__ int mine;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = 10 + static_cast<int>(cluster.block_rank());
  cluster.sync();
  if (threadIdx.x == 0)
    out[cluster.block_rank()] = *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
  cluster.sync();
}

int *in, *out, *count, wrong, drawn;
void draw() { ++drawn; }
void end(unsigned char key, int, int) {
  wrong += drawn != 1 || key != 27;
  printf("%d wrong\n", wrong);
  exit(cudaFree(in) || cudaFree(out) || cudaFree(count) || wrong);
}

int main() {
  nvtxRangePushA("all");
  int seen = 0;
  if (cudaMallocManaged(&in, 2048) || cudaMallocManaged(&out, 512)) return 1;
  if (cudaMallocManaged(&count, 12)) return 1;
  const cudaMemLocation device{cudaMemLocationTypeDevice, 0};  // as since CUDA 13
  if (cudaMemPrefetchAsync(in, 2048, device, 0)) return 1;
  for (int i = 0; i < 512; ++i) in[i] = i;
  count[0] = 0;
  stages<<<1, 128>>>(in, out, 4);
  copies<<<1, 128>>>(in, out);
  flags<<<2, 64>>>(count);
  neighbours<<<2, 32>>>(count + 1);
  if (cudaMemcpyFromSymbol(&seen, sum, sizeof seen)) return 1;
  wrong = seen != 5 || count[0] != 128 || count[1] != 11 || count[2] != 10;
  for (int i = 0; i < 128; ++i) wrong += out[i] != 4 * (127 - i) + 128 * 6;
  wrong += static_cast<float>(__nv_fp8_e4m3(0.3f)) != 0.3125f;
  nvtxRangePop();
  glutDisplayFunc(draw);
  glutKeyboardFunc(end);
  glutMainLoop();
  return 1;
}
