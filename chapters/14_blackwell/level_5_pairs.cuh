// SPDX-License-Identifier: MIT
// Level 5: two blocks multiply a tile of 256 x 256 together. Each loads half of its rows of A, as
// many as alone, and half of its columns of B, half as many as alone.
#pragma once

#include "chapters/14_blackwell/level_4_two_accumulators.cuh"
#include "common/device/cluster.cuh"

namespace cookbook::gemm {

namespace blackwell_pairs {

using blackwell_two_accumulators::init_accumulator_barriers;

/// Tiles assigned round-robin to the pairs. All roles of both blocks go through the same ones.
template <class C>
struct StaticTiles {
  struct Shared {};  // of Smem
  static constexpr int kWarps = 0;
  int t, pairs, tiles;

  __device__ __forceinline__ StaticTiles(Shared&, const Extents& e)
      : t(static_cast<int>(blockIdx.x) / 2),
        pairs(static_cast<int>(gridDim.x) / 2),
        tiles(blackwell::tiles_of<C>(e)) {}
  __device__ __forceinline__ bool has_tile() const { return t < tiles; }
  /// Called by one thread, or by all lanes of a warp.
  template <bool kWholeWarp>
  __device__ __forceinline__ void next() {
    t += pairs;
  }
  static __device__ __forceinline__ void init(Shared&) {}
  static __device__ __forceinline__ void schedule(Shared&) {}
};

struct Config : blackwell_two_accumulators::Config {
  static constexpr int kBlockN = 128;  // of B per block
  static constexpr int kPair = 2, kTileM = 256;
  static constexpr int kStages = 6;   // 32 KB each
  static constexpr int kStorers = 8;  // warps that read an accumulator, of both blocks
  template <class C>
  using Tiles = StaticTiles<C>;

  /// One arrival at the even block's barrier: this warp has read the accumulator.
  static __device__ __forceinline__ void release(uint64_t* stored) {
    mbarrier_arrive_cluster(stored, 0);
  }
};

template <class C>
struct Smem {
  using Config = C;
  Stage<C> stages[C::kStages];
  uint64_t full[C::kStages], empty[C::kStages];
  uint64_t multiplied[C::kAccumulators], stored[C::kAccumulators];
  typename C::template Tiles<C>::Shared tiles;
  uint32_t tmem;
};

/// Loads this block's half of a k-block. The barrier of the even block counts the bytes of both.
template <class C>
__device__ __forceinline__ void load_next(Smem<C>& smem, StageCursor<C::kStages>& write,
                                          const TensorMap* map_a, const TensorMap* map_b,
                                          TileIndex tile, int k_block, int rank) {
  using A = typename Stage<C>::A;
  using B = typename Stage<C>::B;
  Stage<C>& stage = smem.stages[write.stage];
  uint64_t* full = &smem.full[write.stage];
  // [quote pair_load]
  mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);
  if (rank == 0) mbarrier_arrive_expect_tx(full, 2 * sizeof(Stage<C>));
  tma_load_2d_pair(stage.a, map_a, full, k_block * C::kBlockK,
                   tile.m * C::kTileM + rank * C::kBlockM);
#pragma unroll
  for (int i = 0; i < B::kPanels; ++i) {
    tma_load_2d_pair(stage.b + i * B::kPanelBytes, map_b, full,
                     tile.n * C::kTileN + rank * C::kBlockN + i * B::kPanelCols,
                     k_block * C::kBlockK);
  }
  // [end quote]
  static_assert(A::kPanels == 1, "a k-block of A is one box");
  write.advance();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  using Tiles = typename C::template Tiles<C>;
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();
  const int rank = static_cast<int>(cluster_block_rank());

  if (warp == C::kMmaWarp) blackwell::allocate<C>(&smem.tmem);
  if (threadIdx.x == 0) {
    init_accumulator_barriers(smem, C::kStorers);
    Tiles::init(smem.tiles);
    init_barriers(smem, 1);  // a commit arrives once
  }
  cluster_sync();  // the other block arrives on our barriers
  const uint32_t base = smem.tmem;

  Tiles tiles(smem.tiles, e);
  StageCursor<C::kAccumulators> half;
  if (warp == C::kLoadWarp) {
    if (elect_one()) {
      StageCursor<C::kStages> write;
      for (; tiles.has_tile(); tiles.template next<false>()) {
        const TileIndex tile = blackwell::tile_at<C>(tiles.t, e);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          load_next(smem, write, &map_a, &map_b, tile, k_block, rank);
        }
      }
      // [quote tail]
      for (int i = 0; i < C::kStages; ++i, write.advance()) {
        mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);
      }
      // [end quote]
    }
  } else if (warp == C::kMmaWarp) {
    if (rank == 0 && elect_one()) {
      StageCursor<C::kStages> read;
      for (; tiles.has_tile(); tiles.template next<false>(), half.advance()) {
        mbarrier_wait_cluster(&smem.stored[half.stage], half.phase ^ 1);
        tcgen05_fence_after_thread_sync();
        const uint32_t d = base + static_cast<uint32_t>(half.stage * C::kTileN);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          mbarrier_wait(&smem.full[read.stage], read.phase);
          blackwell::mma_k_block(d, smem.stages[read.stage], k_block > 0);
          // [quote pairs]
          tcgen05_commit_pair(&smem.empty[read.stage]);
          read.advance();
        }
        tcgen05_commit_pair(&smem.multiplied[half.stage]);
        // [end quote]
      }
    }
  } else if (warp < 4) {
    for (; tiles.has_tile(); tiles.template next<true>(), half.advance()) {
      const TileIndex tile = blackwell::tile_at<C>(tiles.t, e);
      const uint32_t d = base + static_cast<uint32_t>(half.stage * C::kTileN);
      mbarrier_wait(&smem.multiplied[half.stage], half.phase);
      tcgen05_fence_after_thread_sync();
      const auto release = [&] {
        tcgen05_fence_before_thread_sync();
        __syncwarp();
        if (lane_idx() == 0) C::release(&smem.stored[half.stage]);
      };
      blackwell::store_accumulator<C::kTileN>(d, out, e, tile.m * C::kTileM + rank * C::kBlockM,
                                              tile.n * C::kTileN, release);
    }
  } else if (elect_one()) {
    Tiles::schedule(smem.tiles);
  }
  __syncwarp();
  cluster_sync();  // both blocks have read their lanes, and neither sends to the other any more
  if (warp == C::kMmaWarp) tmem_dealloc<2>(base, blackwell::kTmemColumns<C>);
}

/// Everything but the level's name: level 6 runs this kernel with another schedule.
template <class C>
struct LevelOn : blackwell::Level<C> {
  using Base = blackwell::Level<C>;
  static unsigned pairs(const Problem& p) {
    return std::min(Base::tiles(p), static_cast<unsigned>(std::max(1, device_info().sm_count / 2)));
  }
  static void launch_pairs(unsigned pairs, const TmaPlan& plan, Stream stream) {
    Base::launch_blocks(kernel<C>, 2 * pairs, sizeof(Smem<C>), plan, stream);
  }
};

}  // namespace blackwell_pairs

struct BlackwellPairs : blackwell_pairs::LevelOn<blackwell_pairs::Config> {
  static constexpr LevelText text{
      .name = "pairs",
      .changed = "two blocks per tile of 256 x 256: the tensor cores of both read both halves of B",
      .expect =
          "half as many bytes of B per multiplication, from L2 and out of shared memory; others "
          "measured 1,170 TFLOP/s after 1,054 (learn-cuda)",
      .cost = "clusters of two; whole pairs of SMs",
  };

  static Claims claims(const Problem& p) {
    return counted(p, 2 * tiles(p), 512, Relation::at_most);
  }
  static void run(const Plan& plan, Stream stream) {
    launch_pairs(pairs(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
