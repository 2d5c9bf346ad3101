// SPDX-License-Identifier: MIT
// Level 5: C leaves through shared memory, by TMA: a warp packs a box of it while the previous one
// is stored.
#pragma once

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/15_tma_with_mma/level_4_persistent.cuh"

namespace cookbook::gemm {

namespace mma_tma_store {

struct Config : mma_producer::Config {
  static constexpr int kStages = 3;  // 72 KB: the boxes take the place of the fourth
};

template <class C>
struct Smem {
  using Config = C;
  warp_tiles::Stage<C> stages[C::kStages];
  unsigned char boxes[C::kMultiplying][tma_store::kBoxBytes];  // 16 x 64 of C per warp
  uint64_t full[C::kStages], empty[C::kStages];
};

/// Stores a warp's 64 x 64 accumulators at (row, col) of C: four boxes of 16 rows.
template <class C>
__device__ __forceinline__ void store_boxes(const float (&acc)[C::kMmaM][C::kMmaN][4],
                                            const TensorMap* map_c, unsigned char* box, int row,
                                            int col) {
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
    if (lane_idx() == 0) tma_store_wait_read<0>();  // TMA has read what the box held
    __syncwarp();
    // [quote tma_store]
    tma_store::pack_columns(box, *reinterpret_cast<const float(*)[4 * C::kMmaN]>(&acc[i][0][0]), 0);
    fence_proxy_async();  // every lane's writes, before TMA reads them
    __syncwarp();
    if (lane_idx() == 0) {
      tma_store_2d(map_c, box, col, row + 16 * i);
      tma_store_commit();
    }
    // [end quote]
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int tiles = ceil_div(e.m, C::kBlockM) * ceil_div(e.n, C::kBlockN);
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (threadIdx.x == 0) init_barriers(smem, C::kMultiplying);
  __syncthreads();
  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = first; t < tiles; t += blocks) {
        const TileIndex tile = warp_tiles::tile_at<C>(t, e);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          mma_producer::load_next<C>(smem, write, &map_a, &map_b, tile, k_block);
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int own = warp - 4;
    warp_tiles::Fragments<C> fragments(smem.stages[0], own);
    StageCursor<C::kStages> read;
    for (int t = first; t < tiles; t += blocks) {
      float acc[C::kMmaM][C::kMmaN][4] = {};
      mma_producer::multiply_tile<C>(acc, smem, fragments, read, k_blocks);
      const TileIndex tile = warp_tiles::tile_at<C>(t, e);
      store_boxes<C>(acc, &map_c, smem.boxes[own],
                     tile.m * C::kBlockM + own / C::kWarpsN * C::kWarpM,
                     tile.n * C::kBlockN + own % C::kWarpsN * C::kWarpN);
    }
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
}

}  // namespace mma_tma_store

struct MmaTmaStore
    : warp_tiles::Level<mma_tma_store::Config, mma_tma_store::Smem<mma_tma_store::Config>> {
  static constexpr LevelText text{
      .name = "tma_store",
      .changed = "C: stmatrix to shared memory, then TMA stores",
      .expect =
          "1.01x: whole lines of C instead of 16-byte pieces; the loss of a stage takes some of it",
      .cost = "16 KB for the boxes instead of a stage; rows of C in whole units of 16 bytes",
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (auto why = tma_pitch_problem("ldc", p.ldc); !why.empty()) return Support::no(why);
    if (!tma_stores_rows_of(p.n)) {
      return Support::no("TMA stores whole units of 16 bytes: n = " + std::to_string(p.n) +
                         " is no multiple of 8");
    }
    return Level::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan = Level::prepare(p, at);
    plan.fallback = plan.fallback || !is_16_byte_aligned(at.c);
    if (!plan.fallback && !plan.is_empty()) plan.c = tma_store::output_map(p, at.c);
    return plan;
  }
  static Claims claims(const Problem& p) {
    constexpr double kBoxes = Config::kBlockM / 16.0 * (Config::kBlockN / 64.0);
    return loads(p, {tma_stores("c").requests(tiles(p) * kBoxes),
                     shared_stores().on("stage").conflict_free(), faster_than_previous(1.0),
                     fraction_of_roof(0.74)});
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    launch(mma_tma_store::kernel<Config>,
           {dim3(mma_persistent::blocks<MmaTmaStore>(plan.problem)), dim3(Config::kThreads),
            sizeof(mma_tma_store::Smem<Config>)},
           stream, plan.a, plan.b, plan.c, extents_of(plan.problem));
  }
};

}  // namespace cookbook::gemm
