// SPDX-License-Identifier: MIT
// Shared by levels 3 to 12: the barriers of the stages, the producer's step, the turns of the
// consumers, and the host side. The README explains each at the first level that needs it.
#pragma once

#include "common/device/stage_cursor.cuh"
#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/softmax.cuh"
#include "chapters/10_flash_attention/wgmma_tile.cuh"

namespace cookbook::attention {

/// Initialises the barriers of the stages of K and V (from level 4 on). One thread calls; a barrier
/// of the block must follow. A stage is empty when `readers` warps have read it.
template <int kStages, class Smem>
__device__ __forceinline__ void init_stage_barriers(Smem& smem, int readers) {
  for (int stage = 0; stage < kStages; ++stage) {
    mbarrier_init(&smem.k_full[stage], 1);
    mbarrier_init(&smem.v_full[stage], 1);
    mbarrier_init(&smem.k_empty[stage], readers);
    mbarrier_init(&smem.v_empty[stage], readers);
  }
  timeline::name_ring(smem.k_full, smem.k_empty, 'K');
  timeline::name_ring(smem.v_full, smem.v_empty, 'V');
  fence_mbarrier_init();
}

/// As above, and the barrier of Q.
template <int kStages, class Smem>
__device__ __forceinline__ void init_barriers(Smem& smem, int readers) {
  mbarrier_init(&smem.q_full, 1);
  init_stage_barriers<kStages>(smem, readers);
}

/// The producer's step (from level 4 on): waits until the ring's stage is empty, then starts the
/// copy of tile n of one head's keys or values into it. Called by one thread.
template <class C>
__device__ __forceinline__ void load_next(unsigned char (&stages)[C::kStages][C::kTileBytes],
                                          uint64_t* full, uint64_t* empty,
                                          StageCursor<C::kStages>& ring, const TensorMap* map,
                                          int kv_head, int n, int batch) {
  mbarrier_wait(&empty[ring.stage], ring.phase ^ 1);  // returns at once if the stage was never used
  mbarrier_arrive_expect_tx(&full[ring.stage], C::kTileBytes);
  load_tile<C::kHeadDim, C::kBlockN>(stages[ring.stage], map, &full[ring.stage], kv_head,
                                     n * C::kBlockN, batch);
  ring.advance();
}

/// Starts the copy of a block's queries. Called by one thread.
template <class C, class Smem>
__device__ __forceinline__ void load_queries(Smem& smem, const TensorMap* map, int head,
                                             int first_query, int batch) {
  mbarrier_arrive_expect_tx(&smem.q_full, sizeof smem.q);
  load_tile<C::kHeadDim, C::kBlockM>(smem.q, map, &smem.q_full, head, first_query, batch);
}

/// After the last tile: normalises a warp's 16 rows of the output and stores them with their
/// log-sum-exp.
template <class T, int kCount>
__device__ __forceinline__ void finish_and_store(T* o, float* lse, const Shape& shape, int batch,
                                                 int head, int warp_query,
                                                 const float (&acc)[kCount],
                                                 const RowStates& rows) {
  timeline::begin(timeline::Kind::store);
  float inverse[2], row_lse[2];
  finish_rows(rows, shape.scale_log2, inverse, row_lse);
  store_rows(o, lse, shape, batch, head, warp_query, acc, inverse, row_lse);
  timeline::end(timeline::Kind::store);
}

/// As above, 16 bytes at a time (from level 9 on).
template <class T, int kCount>
__device__ __forceinline__ void finish_and_store_wide(T* o, float* lse, const Shape& shape,
                                                      int batch, int head, int warp_query,
                                                      const float (&acc)[kCount],
                                                      const RowStates& rows) {
  timeline::begin(timeline::Kind::store);
  float inverse[2], row_lse[2];
  finish_rows(rows, shape.scale_log2, inverse, row_lse);
  store_rows_wide(o, lse, shape, batch, head, warp_query, acc, inverse, row_lse);
  timeline::end(timeline::Kind::store);
}

/// The order in which consumers use the tensor cores. Barrier 1 + c starts consumer c's turn: its
/// own 128 threads wait for it, and the 128 threads of the previous consumer arrive when their turn
/// ends.
template <int kConsumers>
struct Turns {
  int consumer;
  __device__ __forceinline__ void begin() const {
    named_barrier_sync(1 + consumer, 2 * kWarpgroup);
  }
  __device__ __forceinline__ void end() const {
    named_barrier_arrive(1 + (consumer + 1) % kConsumers, 2 * kWarpgroup);
  }
  // Every arrival needs a wait. Before the first turn the last consumer arrives once, so that
  // consumer 0 may begin. After the last turn consumer 0 waits once more, for the arrival at the
  // end of the last consumer's last turn.
  __device__ __forceinline__ void open() const {
    if (consumer == kConsumers - 1) end();
  }
  __device__ __forceinline__ void close() const {
    if (consumer == 0) begin();
  }
};

/// Host side of levels 3 to 7: one block per query tile. ConfigOf: the level's configuration by
/// element type and head dimension; all of them have the same tiles.
template <template <class> class ConfigOf>
struct HopperLevel : Level {
  using Config = ConfigOf<Case<bf16, 128>>;
  struct Plan {
    Problem problem;
    Buffers buffers;
    TensorMap q_map, k_map, v_map;
  };
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_hopper(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    const Shape& s = p.shape;
    return {p, at, sequence_map(p, at.q, s.heads_q, s.seq_q, Config::kBlockM),
            sequence_map(p, at.k, s.heads_kv, s.seq_k, Config::kBlockN),
            sequence_map(p, at.v, s.heads_kv, s.seq_k, Config::kBlockN)};
  }
  /// TMA reads the keys, and the values, once per query tile. And the claims `more`.
  static Claims key_claims(const Problem& p, const auto&... more) {
    const double bytes = p.key_tile_bytes(Config::kBlockM, Config::kBlockN);
    return {tma_loads("k").bytes(bytes), tma_loads("v").bytes(bytes), more...};
  }
  /// kernel_of(ConfigOf<...>{}): the kernel for the problem's types.
  template <class F>
  static void launch_tiles(const Plan& plan, Stream stream, F kernel_of) {
    const Shape& s = plan.problem.shape;
    dispatch<bf16>(plan.problem, plan.buffers, [&](auto c, auto*, auto*, auto*, auto* o) {
      using C = ConfigOf<decltype(c)>;
      const int query_tiles = ceil_div(s.seq_q, C::kBlockM);
      const dim3 grid(static_cast<unsigned>(int64_t{query_tiles} * s.heads_q * s.batch));
      launch(kernel_of(C{}), {grid, C::kThreads, sizeof(typename C::Smem)}, stream, plan.q_map,
             plan.k_map, plan.v_map, o, plan.buffers.lse, s, query_tiles);
    });
  }
};

}  // namespace cookbook::attention
