// SPDX-License-Identifier: MIT
// Level 5: stream-K. Where tiles do not fill the last wave, k-blocks are assigned instead of tiles.
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"
#include "chapters/08_persistent/partial_sums.cuh"

namespace cookbook::gemm {

namespace stream_k {

using persistent_static::Config;
using tma_store::Smem;
using tma_store::store_tile;

/// As ClusterTiles, where the tiles are those of `work`.
template <class C>
struct ClusterWork {
  const Work& work;
  int rank, cluster, clusters;  // rank in the cluster, index of the cluster, number of clusters

  __device__ __forceinline__ explicit ClusterWork(const Work& all)
      : work(all),
        rank(static_cast<int>(cluster_block_rank())),
        cluster(static_cast<int>(blockIdx.x) / C::kCluster),
        clusters(static_cast<int>(gridDim.x) / C::kCluster) {}

  /// This block's tile in cluster tile t.
  __device__ __forceinline__ TileIndex at(int t) const {
    const TileIndex tile = work.at(t);
    return {tile.m * C::kCluster + rank, tile.n};
  }
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, const __grid_constant__ Work work,
           PartialSums partial) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const ClusterWork<C> grid(work);
  Segments segments(work, grid.cluster, grid.clusters);
  Segment s;
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kTileConsumers * C::kCluster);  // of every block
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      while (segments.next(s)) {
        const TileIndex tile = grid.at(s.tile);
        for (int k_block = s.k_begin; k_block < s.k_end; ++k_block) {
          load_next(smem, write, &map_a, &map_b, tile, k_block, grid.rank);
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kTileConsumers / 64;
    const int row = first_row<C>(warpgroup);
    const Descriptors<C> tiles(smem.stages[0], row);
    const auto release = [&](int stage) { release_in_cluster<C::kCluster>(&smem.empty[stage]); };
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    while (segments.next(s)) {
      // [quote stream_k]
      const int last = mma_tile(acc, smem, tiles, read, s.k_end - s.k_begin, release);
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      release(last);             // the next tile's loads wait for it

      if (!complete_tile<4 * C::kTileConsumers>(
              acc, partial, work, s, grid.cluster, warp - 4,
              [&](int c) { return c * C::kCluster + grid.rank; })) {
        continue;  // another cluster stores this tile
      }
      // [end quote]
      const TileIndex tile = grid.at(s.tile);
      store_tile<C::kStoreBuffers>(acc, &map_c, smem.boxes[warp - 4],
                                   tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
    }  // no barrier: TMA stores the packed boxes while the warp computes the next tile
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
  cluster_sync();  // no block exits while the other still sends to it
}

}  // namespace stream_k

struct StreamK : tma_store::LayoutLevel<stream_k::Config> {
  struct Plan {
    TmaPlan tma;
    Work work{};
    int clusters = 0;
    DeviceMemory sums{}, flags{};
  };
  static constexpr LevelText text{
      .name = "stream_k",
      .changed = "the last wave's tiles are cut into k-blocks, and each cluster gets equally many",
      .expect = "the idle SMs of one wave are put to work; the same where waves are full",
      .cost = "partial sums go through L2: 128 KB per block, written and read",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),  // no k-block is loaded twice
            at_least_previous(0.9, "it pays where the last wave is far from full")};
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{LayoutLevel::prepare(p, at)};
    if (plan.tma.is_empty() || plan.tma.fallback) return plan;
    constexpr int kClusterM = Config::kBlockM * Config::kCluster;
    plan.work = work_of(p, kClusterM, Config::kBlockN, Config::kBlockK, 8);
    plan.clusters = std::max(1, device_info().sm_count / Config::kCluster);
    share_tiles(plan.work, plan.work.tiles() % plan.clusters, plan.clusters);
    const size_t blocks = size_t(plan.clusters) * Config::kCluster;
    plan.sums =
        DeviceMemory(blocks * Config::kBlockM * Config::kBlockN * sizeof(float), "partial sums");
    plan.flags = DeviceMemory(blocks * 8 * sizeof(int), "partial flags");
    plan.flags.fill(0);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    in_layout(plan.tma, stream, [&](auto config) {
      using C = decltype(config);
      launch(stream_k::kernel<C>,
             {dim3(static_cast<unsigned>(plan.clusters * C::kCluster)), dim3(C::kThreads),
              sizeof(stream_k::Smem<C>), C::kCluster},
             stream, plan.tma.a, plan.tma.b, plan.tma.c, plan.work,
             PartialSums{plan.sums.as<float>(), plan.flags.as<int>()});
    });
  }
};

}  // namespace cookbook::gemm
