// SPDX-License-Identifier: MIT
// Level 5: two blocks side by side need the same rows of A. Each loads half of them for both.
#pragma once

#include "chapters/12_fp8/level_4_shared_accumulators.cuh"
#include "common/device/cluster.cuh"

namespace cookbook::fp8 {

/// Which operand the blocks of a cluster share. Side by side they need the same rows of A: each
/// loads its tile of B, and a slice of A and of A's scales for all of them.
struct SideBySide {
  /// Tiles of the cluster in m and n, and the tile of its block `rank`.
  template <class C>
  static constexpr int kTilesM = 1;
  template <class C>
  static constexpr int kTilesN = C::kCluster;
  template <class C>
  static __device__ __forceinline__ TileIndex tile(TileIndex cluster, int rank) {
    return {cluster.m, cluster.n * C::kCluster + rank};
  }
  template <class C>
  static constexpr int kBoxRowsA = C::kBlockM / C::kCluster;
  template <class C>
  static constexpr int kBoxRowsB = C::kBlockN;

  template <class C>
  static __device__ __forceinline__ void load(Stage<C>& stage, float* scale_a,
                                              const TensorMap* map_a, const TensorMap* map_b,
                                              const TensorMap* map_scale_a, uint64_t* full,
                                              TileIndex tile, int k_block, int rank) {
    constexpr int kSlice = kBoxRowsA<C>;  // rows
    constexpr uint16_t kAll = (1 << C::kCluster) - 1;
    const int row = tile.m * C::kBlockM + rank * kSlice, k = k_block * kRowBytes;
    // [quote multicast]
    mbarrier_arrive_expect_tx(full, sizeof(Stage<C>) + C::kBlockM * sizeof(float));
    tma_load_2d_multicast(stage.a + rank * kSlice * kRowBytes, map_a, full, k, row, kAll);
    tma_load_2d_multicast(scale_a + rank * kSlice, map_scale_a, full, row, k_block, kAll);
    tma_load_2d(stage.b, map_b, full, k, tile.n * C::kBlockN);
    // [end quote]
  }
};

/// The producer's step in a cluster: waits until all readers of all blocks have read the stage,
/// then loads this block's part of it.
template <class C, class Smem>
__device__ __forceinline__ void load_next(Smem& smem, StageCursor<C::kStages>& write,
                                          const TensorMap* map_a, const TensorMap* map_b,
                                          const TensorMap* map_scale_a, TileIndex tile, int k_block,
                                          int rank) {
  mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);
  C::Shared::template load<C>(smem.stages[write.stage], smem.scale_a[write.stage], map_a, map_b,
                              map_scale_a, &smem.full[write.stage], tile, k_block, rank);
  write.advance();
}

/// A consumer warpgroup's part of a tile: `k_blocks` blocks of k, starting with the stage at
/// `read`. row: of the warpgroup in the tile.
template <class C, class Smem, int kMmaM, int kCount>
__device__ __forceinline__ void multiply_tile(float (&sum)[kMmaM][kCount], Smem& smem,
                                              StageCursor<C::kStages>& read, const Scales& scales,
                                              const Extents& e, TileIndex tile, int k_blocks,
                                              int row) {
  const uint64_t a = descriptor_of(smem.stages[0].a + row * kRowBytes);
  const uint64_t b = descriptor_of(smem.stages[0].b);
  const int thread_row = row + warp_idx_uniform() % 4 * 16 + lane_idx() / 4;
#pragma unroll
  for (int i = 0; i < kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) sum[i][j] = 0;
  }
  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    typename C::Scales::template Factors<kMmaM> factors;
    factors.fetch(scales, e, k_block, 0, tile.n * C::kBlockN);
    mbarrier_wait(&smem.full[read.stage], read.phase);
    const int bytes = read.stage * static_cast<int>(sizeof(Stage<C>));
    multiply_and_promote<C>(
        sum, wgmma_descriptor_advance(a, bytes), wgmma_descriptor_advance(b, bytes), factors,
        smem.scale_a[read.stage], thread_row, [&] {
          // Each block sends a slice to the other, which must have read the stage as well.
          if (lane_idx() < C::kCluster) {
            mbarrier_arrive_cluster_relaxed(&smem.empty[read.stage], lane_idx());
          }
        });
    read.advance();
  }
}

namespace multicast {

struct Config : shared_accumulators::Config {
  static constexpr int kCluster = 2;  // blocks
  using Shared = SideBySide;
};

using promoted::Smem;

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_scale_a, Scales scales, Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int rank = static_cast<int>(cluster_block_rank());
  const int across = ceil_div(e.n, C::kBlockN * C::Shared::template kTilesN<C>);  // clusters
  const int cluster = static_cast<int>(blockIdx.x) / C::kCluster;
  const TileIndex tile = C::Shared::template tile<C>({cluster / across, cluster % across}, rank);
  const int k_blocks = ceil_div(e.k, kScaleBlock);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers<C::kStages>(smem, 4 * C::kConsumers * C::kCluster);
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        load_next<C>(smem, write, &map_a, &map_b, &map_scale_a, tile, k_block, rank);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    float sum[kMmaM][C::kBlockN / 2];
    StageCursor<C::kStages> read;
    multiply_tile<C>(sum, smem, read, scales, e, tile, k_blocks, row);
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
      store_sums(sum[i], out, e, tile.m * C::kBlockM + row + 64 * i, tile.n * C::kBlockN);
    }
  }
  cluster_sync();  // no block exits while the other still sends to it
}

/// As scales_by_tma::LevelOn, with boxes for a slice of A each.
template <class C>
struct Prepared : scales_by_tma::LevelOn<C> {
  static TmaPlan prepare(const Problem& p, const Buffers& at) {
    TmaPlan plan = scales_by_tma::LevelOn<C>::prepare(p, at);
    if (plan.fallback || p.m == 0 || p.n == 0) return plan;
    plan.a = operand_map(at.a, p.m, p.k, p.lda, C::Shared::template kBoxRowsA<C>);
    plan.b = operand_map(at.b, p.n, p.k, p.ldb, C::Shared::template kBoxRowsB<C>);
    plan.scale_a = scale_map(p, at.scale_a, C::Shared::template kBoxRowsA<C>);
    return plan;
  }
  static std::int64_t clusters_of(const Problem& p) {
    return tiles_of(p, C::kBlockM * C::Shared::template kTilesM<C>,
                    C::kBlockN * C::Shared::template kTilesN<C>);
  }
  /// Boxes of A: one per block of the grid and block of k.
  static double boxes_of_a(const Problem& p) {
    return static_cast<double>(clusters_of(p) * C::kCluster * p.k_blocks());
  }
};

}  // namespace multicast

struct Multicast : multicast::Prepared<multicast::Config> {
  static constexpr LevelText text{
      .name = "multicast",
      .changed = "clusters of two blocks: each loads half of A's tile and of its scales for both",
      .expect = "1.1x: 32 KB per stage come from L2 instead of 48",
      .cost = "two blocks run in step; where the number of tiles across is odd, one block has none",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            tma_loads("a").bytes(boxes_of_a(p) * Config::kBlockM / 2 * kRowBytes),
            at_least_previous(0.97, "a block still starts and ends alone; level 6 shows the gain")};
  }
  static void run(const TmaPlan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    using C = Config;
    launch(multicast::kernel<C>,
           {dim3(static_cast<unsigned>(clusters_of(plan.problem)) * C::kCluster), dim3(C::kThreads),
            sizeof(multicast::Smem<C>), C::kCluster},
           stream, plan.a, plan.b, plan.scale_a, plan.scales(), plan.output(),
           extents_of(plan.problem));
  }
};

}  // namespace cookbook::fp8
