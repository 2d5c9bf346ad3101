// SPDX-License-Identifier: MIT
// Level 6: one block per SM computes tile after tile; TMA stores a tile while the next is computed.
#pragma once

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/12_fp8/level_5_multicast.cuh"

namespace cookbook::fp8 {

namespace persistent {

struct Config : multicast::Config {
  static constexpr int kGroup = 8;         // rows of tiles that are traversed column by column
  static constexpr int kStoreBuffers = 1;  // boxes of C per warp
};

template <class C>
struct Smem : promoted::Smem<C> {
  alignas(
      1024) unsigned char boxes[4 * C::kConsumers][C::kStoreBuffers * gemm::tma_store::kBoxBytes];
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_scale_a, const __grid_constant__ TensorMap map_c,
           Scales scales, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int rank = static_cast<int>(cluster_block_rank());
  using Shared = typename C::Shared;
  const int tiles_m = ceil_div(e.m, C::kBlockM * Shared::template kTilesM<C>);
  const int tiles_n = ceil_div(e.n, C::kBlockN * Shared::template kTilesN<C>);
  const int first = static_cast<int>(blockIdx.x) / C::kCluster;
  const int clusters = static_cast<int>(gridDim.x) / C::kCluster;
  const int k_blocks = ceil_div(e.k, kScaleBlock);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;
  const auto tile_at = [&](int t) {
    return Shared::template tile<C>(grouped_tile(t, tiles_m, tiles_n, C::kGroup), rank);
  };

  if (threadIdx.x == 0) init_barriers<C::kStages>(smem, 4 * C::kConsumers * C::kCluster);
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = first; t < tiles_m * tiles_n; t += clusters) {
        const TileIndex tile = tile_at(t);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          load_next<C>(smem, write, &map_a, &map_b, &map_scale_a, tile, k_block, rank);
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    float sum[kMmaM][C::kBlockN / 2];
    StageCursor<C::kStages> read;
    // [quote persistent]
    for (int t = first; t < tiles_m * tiles_n; t += clusters) {
      const TileIndex tile = tile_at(t);
      multiply_tile<C>(sum, smem, read, scales, e, tile, k_blocks, row);
      gemm::tma_store::store_tile<C::kStoreBuffers>(sum, &map_c, smem.boxes[warp - 4],
                                                    tile.m * C::kBlockM + row + warp % 4 * 16,
                                                    tile.n * C::kBlockN);
    }
    // [end quote]
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
  cluster_sync();  // no block exits while the other still sends to it
}

/// Everything but the level's name.
template <class C>
struct LevelOn : multicast::Prepared<C> {
  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (Support s = scales_by_tma::LevelOn<C>::supports(p, device); !s) return s;
    if (Support s = tma_support("ldc", p.ldc, 8); !s) return s;
    return tma_support("n", p.n, 8);  // TMA stores whole units of 16 bytes
  }
  static TmaPlan prepare(const Problem& p, const Buffers& at) {
    TmaPlan plan = multicast::Prepared<C>::prepare(p, at);
    plan.fallback = plan.fallback || !is_16_byte_aligned(at.c);
    if (!plan.fallback && p.m > 0 && p.n > 0) {
      plan.c = gemm::matrix_map(at.c, p.m, p.n, p.ldc, gemm::tma_store::kBoxRows,
                                gemm::tma_store::kBoxCols, Swizzle::b128);
    }
    return plan;
  }
  static void run(const TmaPlan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    const Problem& p = plan.problem;
    const std::int64_t tiles = multicast::Prepared<C>::clusters_of(p);
    const std::int64_t resident = std::max(1, device_info().sm_count / C::kCluster);
    launch(kernel<C>,
           {dim3(static_cast<unsigned>(std::min(tiles, resident)) * C::kCluster), dim3(C::kThreads),
            sizeof(Smem<C>), C::kCluster},
           stream, plan.a, plan.b, plan.scale_a, plan.c, plan.scales(), extents_of(p));
  }
};

}  // namespace persistent

struct Persistent : persistent::LevelOn<persistent::Config> {
  static constexpr LevelText text{
      .name = "persistent",
      .changed = "one block per SM, groups of 8 rows of tiles, C stored by TMA",
      .expect = "1.05x: the next tile's loads and wgmma start while this one is stored",
      .cost = "16 KB for the boxes of C; rows of C are a multiple of 16 bytes",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), global_stores("c").requests(0),
            faster_than_previous(1.05)};
  }
};

}  // namespace cookbook::fp8
