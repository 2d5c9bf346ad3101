// SPDX-License-Identifier: MIT
// Level 6: the grid has a pair of blocks for every tile. A pair that is done cancels another pair
// that has not started, and computes its tile.
#pragma once

#include "chapters/14_blackwell/level_5_pairs.cuh"
#include "common/device/cluster_launch_control.cuh"

namespace cookbook::gemm {

namespace blackwell_launch_control {

/// Tiles by cluster launch control: the pair's own, then one per answer.
template <class C>
struct CanceledTiles {
  static constexpr int kQueue = 2;  // answers that may be unread
  static constexpr int kWarps = 1;  // the scheduler
  struct Shared {
    CanceledCluster answers[kQueue];
    // read: of rank 0, counts the readers of both blocks
    uint64_t answered[kQueue], read[kQueue];
  };
  Shared& shared;
  int t;
  StageCursor<kQueue> at{};

  __device__ __forceinline__ CanceledTiles(Shared& in, const Extents&)
      : shared(in), t(static_cast<int>(blockIdx.x) / 2) {}
  __device__ __forceinline__ bool has_tile() const { return t >= 0; }

  template <bool kWholeWarp>
  __device__ __forceinline__ void next() {
    // [quote answer]
    mbarrier_wait(&shared.answered[at.stage], at.phase);
    const CanceledCluster answer = shared.answers[at.stage];
    t = is_canceled(answer) ? first_block_x(answer) / 2 : -1;
    fence_proxy_async();  // our read, before the next answer is written there
    // [end quote]
    if constexpr (kWholeWarp) __syncwarp();
    if (!kWholeWarp || lane_idx() == 0) mbarrier_arrive_cluster(&shared.read[at.stage], 0);
    at.advance();
  }

  static __device__ __forceinline__ void init(Shared& shared) {
    // Readers of both blocks: loading, storing, scheduling; and one that multiplies.
    for (int i = 0; i < kQueue; ++i) {
      mbarrier_init(&shared.answered[i], 1);
      mbarrier_init(&shared.read[i], 2 * (1 + 4 + 1) + 1);
    }
  }
  /// The scheduler: one thread per block, of which that of rank 0 asks. The other one need not wait
  /// for `read`: it has read the latest answer in this place, so its barrier is in the next phase.
  static __device__ __forceinline__ void schedule(Shared& shared) {
    CanceledTiles tiles(shared, {});
    const bool asks = cluster_block_rank() == 0;
    while (tiles.has_tile()) {
      // [quote launch_control]
      const int slot = tiles.at.stage;
      if (asks) mbarrier_wait_cluster(&shared.read[slot], tiles.at.phase ^ 1);
      mbarrier_arrive_expect_tx(&shared.answered[slot], sizeof(CanceledCluster));
      if (asks) try_cancel_cluster(&shared.answers[slot], &shared.answered[slot]);
      tiles.template next<false>();
      // [end quote]
    }
  }
};

struct Config : blackwell_pairs::Config {
  static constexpr int kThreads = 224;
  template <class C>
  using Tiles = CanceledTiles<C>;
};

}  // namespace blackwell_launch_control

struct BlackwellLaunchControl : blackwell_pairs::LevelOn<blackwell_launch_control::Config> {
  static constexpr LevelText text{
      .name = "launch_control",
      .changed = "the hardware assigns the tiles, while their blocks are still in the queue",
      .expect =
          "nothing where tiles are equal and the GPU is otherwise idle; it balances as chapter 8's "
          "counter does, without its atomics",
      .cost = "a warp that schedules; a queue of answers in shared memory",
  };

  /// How many of the blocks start is not known: the others are canceled.
  static Claims claims(const Problem& p) {
    return counted(p, 2 * tiles(p), 512, Relation::at_most);
  }
  static void run(const Plan& plan, Stream stream) {
    launch_pairs(tiles(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
