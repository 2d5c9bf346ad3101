// SPDX-License-Identifier: MIT
// Level 4: a ring of stages. `full` says a stage has landed, `empty` that everybody has left it.
#pragma once

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::gemm {

namespace pipeline {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr int kStages = 3;  // 96 KB: two blocks a multiprocessor
};

template <class C>
struct Traits {
  using A = OperandTile<Major::k, Swizzle::b128, C::kBlockM, C::kBlockK>;
  using B = OperandTile<Major::mn, Swizzle::b128, C::kBlockN, C::kBlockK>;
  static constexpr int kStageBytes = A::kBytes + B::kBytes;
  static constexpr int kThreads = 128;
  static constexpr int kMmaM = C::kBlockM / 64;
  static constexpr int kSmemBytes = C::kStages * (kStageBytes + 16);  // two barriers a stage
};

template <class C>
__global__ void __launch_bounds__(Traits<C>::kThreads)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, then the barriers
  uint64_t* full = reinterpret_cast<uint64_t*>(smem + C::kStages * T::kStageBytes);
  uint64_t* empty = full + C::kStages;

  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);

  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      mbarrier_init(&full[s], 1);   // the thread that starts the loads
      mbarrier_init(&empty[s], 4);  // the four warps that read
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  StageCursor<C::kStages> write;  // where thread 0 loads next
  const auto load = [&](int k_block) {
    mbarrier_wait(&empty[write.stage], write.phase ^ 1);  // at once on a stage never used
    unsigned char* a = smem + write.stage * T::kStageBytes;
    mbarrier_arrive_expect_tx(&full[write.stage], T::kStageBytes);
    T::A::load(a, &map_a, &full[write.stage], tile.m * C::kBlockM, k_block * C::kBlockK);
    T::B::load(a + T::A::kBytes, &map_b, &full[write.stage], tile.n * C::kBlockN,
               k_block * C::kBlockK);
    write.advance();
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages && i < k_blocks; ++i) load(i);
  }

  const uint64_t desc_a = T::A::descriptor(smem);
  const uint64_t desc_b = T::B::descriptor(smem + T::A::kBytes);
  float acc[T::kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

  StageCursor<C::kStages> read;
  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    mbarrier_wait(&full[read.stage], read.phase);
    const uint64_t a = wgmma_descriptor_advance(desc_a, read.stage * T::kStageBytes);
    const uint64_t b = wgmma_descriptor_advance(desc_b, read.stage * T::kStageBytes);

    wgmma_fence();
#pragma unroll
    for (int k = 0; k < C::kBlockK; k += 16) {
#pragma unroll
      for (int i = 0; i < T::kMmaM; ++i) {
        wgmma_m64k16<C::kBlockN, bf16, Major::k, Major::mn>(
            acc[i], wgmma_descriptor_advance(a, T::A::offset_bytes(64 * i, k)),
            wgmma_descriptor_advance(b, T::B::offset_bytes(0, k)), k_block > 0 || k > 0);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
    if (lane_idx() == 0) mbarrier_arrive(&empty[read.stage]);  // this warp has left the stage
    read.advance();
    if (threadIdx.x == 0 && k_block + C::kStages < k_blocks) load(k_block + C::kStages);
    __syncwarp();  // wgmma wants its warps whole again
  }

#pragma unroll
  for (int i = 0; i < T::kMmaM; ++i) {
    wgmma_fence_operand(acc[i]);  // sums are read only from here
    store_accumulators(acc[i], out, e, tile.m * C::kBlockM + 64 * i, tile.n * C::kBlockN);
  }
}

}  // namespace pipeline

struct WgmmaPipeline : LevelT<bf16> {
  using Config = pipeline::Config;
  using Plan = TmaPlan;
  static constexpr const char* name = "pipeline";
  static constexpr const char* changed =
      "three stages between loads and products: full and empty barriers";
  static constexpr const char* expect =
      "1.2x: a load has two rounds of products to arrive in, where other blocks hid part of it";
  static constexpr const char* cost = "96 KB of shared memory a block";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem& p) {
    const double tiles = blocks_for(p.m, p.n, Config::kBlockM, Config::kBlockN);
    const double k_blocks = ceil_div(static_cast<int>(p.k), Config::kBlockK);
    return {tma_loads("a").requests(tiles * k_blocks), faster_than_previous(1.0)};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_wgmma(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    return plan_operands<pipeline::Traits<Config>::A, pipeline::Traits<Config>::B>(p, at);
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan, stream)) return;
    const Problem& p = plan.problem;
    launch(pipeline::kernel<Config>,
           {dim3(blocks_for(p.m, p.n, Config::kBlockM, Config::kBlockN)),
            dim3(pipeline::Traits<Config>::kThreads), pipeline::Traits<Config>::kSmemBytes},
           stream, plan.a, plan.b, Output{plan.buffers.c, p.ldc}, extents_of(p));
  }
};

}  // namespace cookbook::gemm
