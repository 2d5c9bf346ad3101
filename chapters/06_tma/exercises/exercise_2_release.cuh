// SPDX-License-Identifier: MIT
// Exercise 6.2, a seeded bug: level 5 with one line moved. On a GPU it is right almost always. Run
// it under COOKBOOK_SIMT_ASYNC=early and =late: under which is it wrong, and who reads what too
// late? Find and repair the line.
#pragma once

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/sync.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::gemm {

namespace exercise_release {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr int kStages = 3;
  static constexpr int kBlocksPerSm = 2;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 216;  // together 2 x 128
};

template <class C>
struct Traits {
  using A = OperandTile<Major::k, Swizzle::b128, C::kBlockM, C::kBlockK>;
  using B = OperandTile<Major::mn, Swizzle::b128, C::kBlockN, C::kBlockK>;
  static constexpr int kStageBytes = A::kBytes + B::kBytes;
  static constexpr int kConsumers = 1;                     // warpgroups
  static constexpr int kThreads = 128 * (1 + kConsumers);  // and the producer's
  static constexpr int kMmaM = C::kBlockM / kConsumers / 64;
  static constexpr int kSmemBytes = C::kStages * (kStageBytes + 16);
};

template <class C>
__global__ void __launch_bounds__(Traits<C>::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, then the barriers
  uint64_t* full = reinterpret_cast<uint64_t*>(smem + C::kStages * T::kStageBytes);
  uint64_t* empty = full + C::kStages;

  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      mbarrier_init(&full[s], 1);                   // the producer
      mbarrier_init(&empty[s], 4 * T::kConsumers);  // the warps that read
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        unsigned char* a = smem + write.stage * T::kStageBytes;
        uint64_t* bar = &full[write.stage];
        mbarrier_wait(&empty[write.stage], write.phase ^ 1);  // at once on a stage never used
        mbarrier_arrive_expect_tx(bar, T::kStageBytes);
        T::A::load(a, &map_a, bar, tile.m * C::kBlockM, k_block * C::kBlockK);
        T::B::load(a + T::A::kBytes, &map_b, bar, tile.n * C::kBlockN, k_block * C::kBlockK);
        write.advance();
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int row = (warpgroup - 1) * T::kMmaM * 64;  // this warpgroup's first, in the tile
    const uint64_t desc_a =
        wgmma_descriptor_advance(T::A::descriptor(smem), T::A::offset_bytes(row, 0));
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
      if (lane_idx() == 0) mbarrier_arrive(&empty[read.stage]);
      __syncwarp();
      wgmma_wait<0>();
      read.advance();
    }

#pragma unroll
    for (int i = 0; i < T::kMmaM; ++i) {
      wgmma_fence_operand(acc[i]);  // sums are read only from here
      store_accumulators(acc[i], out, e, tile.m * C::kBlockM + row + 64 * i, tile.n * C::kBlockN);
    }
  }
}

}  // namespace exercise_release

struct ExerciseRelease : LevelT<bf16> {
  using Config = exercise_release::Config;
  using Plan = TmaPlan;
  static constexpr const char* name = "exercise_release";
  static constexpr const char* changed = "level 5 with one line moved";
  static constexpr const char* expect = "as level 5, whenever loads happen to be late";
  static constexpr const char* cost = "";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem& p) {
    const double tiles = blocks_for(p.m, p.n, Config::kBlockM, Config::kBlockN);
    const double k_blocks = ceil_div(static_cast<int>(p.k), Config::kBlockK);
    return {tma_loads("a").requests(tiles * k_blocks)};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_wgmma(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    using T = exercise_release::Traits<Config>;
    return plan_operands<T::A, T::B>(p, at);
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan, stream)) return;
    using T = exercise_release::Traits<Config>;
    const Problem& p = plan.problem;
    launch(exercise_release::kernel<Config>,
           {dim3(blocks_for(p.m, p.n, Config::kBlockM, Config::kBlockN)), dim3(T::kThreads),
            T::kSmemBytes},
           stream, plan.a, plan.b, Output{plan.buffers.c, p.ldc}, extents_of(p));
  }
};

}  // namespace cookbook::gemm
