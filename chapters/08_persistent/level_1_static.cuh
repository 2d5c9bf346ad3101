// SPDX-License-Identifier: MIT
// Level 1: as many blocks as SMs; each computes one tile after the other.
#pragma once

#include <algorithm>

#include "chapters/07_swizzle/level_7_multicast.cuh"
#include "common/device/sync.cuh"

namespace cookbook::gemm {

/// Number of blocks of a persistent grid: as many as there are SMs, in whole clusters, and no more
/// than there are tiles.
template <class C>
unsigned persistent_blocks(const Problem& p) {
  const unsigned tiles = blocks_for(p.m, p.n, C::kBlockM * C::kCluster, C::kBlockN);
  const int clusters = std::max(1, device_info().sm_count / C::kCluster);
  return std::min(tiles, static_cast<unsigned>(clusters)) * C::kCluster;
}

/// The first row of a tile that consumer warpgroup `warpgroup` (1, 2 ...) computes.
template <class C>
__device__ __forceinline__ int first_row(int warpgroup) {
  return C::kTileConsumers == 1 ? 0 : (warpgroup - 1) * (C::kBlockM / C::kTileConsumers);
}

/// The tiles of C as the blocks of a persistent grid see them: a cluster computes one cluster tile
/// at a time. Its blocks compute the tiles of it, one above the other.
template <class C>
struct ClusterTiles {
  int rank, cluster, clusters;  // rank in the cluster, index of the cluster, number of clusters
  int tiles_m, tiles_n;         // cluster tiles

  __device__ __forceinline__ explicit ClusterTiles(const Extents& e)
      : rank(static_cast<int>(cluster_block_rank())),
        cluster(static_cast<int>(blockIdx.x) / C::kCluster),
        clusters(static_cast<int>(gridDim.x) / C::kCluster),
        tiles_m(ceil_div(e.m, C::kBlockM * C::kCluster)),
        tiles_n(ceil_div(e.n, C::kBlockN)) {}

  __device__ __forceinline__ int count() const { return tiles_m * tiles_n; }
  /// This block's tile in cluster tile t.
  __device__ __forceinline__ TileIndex at(int t) const {
    TileIndex tile;
    C::Order::tile(t, tiles_m, tiles_n, tile);
    return {tile.m * C::kCluster + rank, tile.n};
  }
};

namespace persistent_static {

/// Both consumer warpgroups compute every tile of the block; level 4 lets them take turns.
struct Together {
  static __device__ __forceinline__ bool is_mine(int /*turn*/, int /*group*/) { return true; }
  static __device__ __forceinline__ void wait(int /*turn*/, int /*group*/) {}
  static __device__ __forceinline__ void pass(bool /*more*/, int /*group*/) {}
};

/// Stores a warp's rows of a tile and waits until the whole tile of C is written.
struct Epilogue {
  template <class C, int kMmaM, int kAccumulators>
  static __device__ __forceinline__ void store(const float (&acc)[kMmaM][kAccumulators],
                                               const TensorMap* map_c, unsigned char* boxes,
                                               int row, int col) {
    tma_store::store_tile<C::kStoreBuffers>(acc, map_c, boxes, row, col);
    // [quote static]
    if (lane_idx() == 0) tma_store_wait<0>();
    named_barrier_sync(1, 256);  // the whole tile of C is written
    // [end quote]
  }
  static __device__ __forceinline__ void end() {}
};

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : multicast::Config<kA, kB> {
  static constexpr int kTileConsumers = 2;  // that compute a tile together: half of its rows each
  using Turns = Together;
  using Epilogue = persistent_static::Epilogue;
};

using tma_store::Smem;

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const ClusterTiles<C> grid(e);
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kTileConsumers * C::kCluster);  // of every block
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      // [quote persistent]
      for (int t = grid.cluster; t < grid.count(); t += grid.clusters) {
        const TileIndex tile = grid.at(t);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          load_next(smem, write, &map_a, &map_b, tile, k_block, grid.rank);
        }
      }
      // [end quote]
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kTileConsumers / 64;
    const int row = first_row<C>(warpgroup), group = warpgroup - 1;
    const Descriptors<C> tiles(smem.stages[0], row);
    const auto release = [&](int stage) { release_in_cluster<C::kCluster>(&smem.empty[stage]); };
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    for (int t = grid.cluster, turn = 0; t < grid.count(); t += grid.clusters, ++turn) {
      if (!C::Turns::is_mine(turn, group)) {
        read.advance(k_blocks);  // the other warpgroup's tile: skip its stages
        continue;
      }
      C::Turns::wait(turn, group);
      const int last = mma_tile(acc, smem, tiles, read, k_blocks, release);
      C::Turns::pass(t + grid.clusters < grid.count(), group);
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      release(last);             // the next tile's loads wait for it

      const TileIndex tile = grid.at(t);
      C::Epilogue::template store<C>(acc, &map_c, smem.boxes[warp - 4],
                                     tile.m * C::kBlockM + row + warp % 4 * 16,
                                     tile.n * C::kBlockN);
    }
    C::Epilogue::end();
  }
  cluster_sync();  // no block exits while the other still sends to it
}

/// Everything but the level's name: levels 3 and 4 run this kernel with another Config.
template <template <Major, Major> class ConfigOf>
struct LevelOn : tma_store::LayoutLevel<ConfigOf> {
  static void run(const TmaPlan& plan, Stream stream) {
    tma_store::LayoutLevel<ConfigOf>::in_layout(plan, stream, [&](auto config) {
      using C = decltype(config);
      launch(kernel<C>,
             {dim3(persistent_blocks<C>(plan.problem)), dim3(C::kThreads), sizeof(Smem<C>),
              C::kCluster},
             stream, plan.a, plan.b, plan.c, extents_of(plan.problem));
    });
  }
};

}  // namespace persistent_static

struct PersistentStatic : persistent_static::LevelOn<persistent_static::Config> {
  static constexpr LevelText text{
      .name = "static",
      .changed = "one block per SM, tiles assigned round-robin",
      .expect =
          "1.03x: no launch between tiles, and the next tile's first stages load while this one is "
          "stored",
      .cost = "a loop around everything; no other kernel gets an SM in between",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.0)};
  }
};

}  // namespace cookbook::gemm
