// SPDX-License-Identifier: MIT
// Level 3: TMA loads the tiles, into two stages of K and V: the next key tile arrives while this
// one is multiplied. Copies by threads cost level 2 a tenth of its time. One thread that starts
// four loads per key tile costs little, because a warp has 256 mma.sync per key tile; a warp of its
// own would leave too few registers for two blocks per SM.
#pragma once

#include "chapters/10_flash_attention/hopper_level.cuh"
#include "chapters/15_tma_with_mma/attention_level_2_vote.cuh"

namespace cookbook::attention {

template <class CaseT>
struct TmaTwoStagesConfig : VoteConfig<CaseT> {
  static constexpr int kStages = 2;
  static constexpr int kTileBytes = TmaTwoStagesConfig::kBlockN * CaseT::kHeadDim * 2;
  struct Smem {
    alignas(1024) unsigned char q[TmaTwoStagesConfig::kBlockM * CaseT::kHeadDim * 2];
    alignas(1024) unsigned char k[kStages][kTileBytes];
    alignas(1024) unsigned char v[kStages][kTileBytes];
    uint64_t q_full, k_full[kStages], v_full[kStages];
  };
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    tma_two_stages_kernel(const __grid_constant__ TensorMap q_map,
                          const __grid_constant__ TensorMap k_map,
                          const __grid_constant__ TensorMap v_map, typename C::Element* o,
                          float* lse, Shape shape, int query_tiles) {
  using T = typename C::Element;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();
  const auto [first_query, head, batch] =
      tile_index(blockIdx.x, query_tiles, C::kBlockM, shape.heads_q);
  const int warp_query = first_query + warp * 16 * C::kMTiles;
  const int kv_head = shape.kv_head(head);
  const warp_tiles::LaneRows<C> lane_rows(smem.q, warp);
  const int tiles = key_tiles<C::kBlockM, C::kBlockN>(shape, first_query);
  const int clear = max(0, shape.visible_keys(warp_query)) / C::kBlockN;  // tiles without a mask

  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_full, 1);
    for (int stage = 0; stage < C::kStages; ++stage) {
      mbarrier_init(&smem.k_full[stage], 1);
      mbarrier_init(&smem.v_full[stage], 1);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  const auto load = [&](int n, int stage) {
    mbarrier_arrive_expect_tx(&smem.k_full[stage], C::kTileBytes);
    load_tile<C::kHeadDim, C::kBlockN>(smem.k[stage], &k_map, &smem.k_full[stage], kv_head,
                                       n * C::kBlockN, batch);
    mbarrier_arrive_expect_tx(&smem.v_full[stage], C::kTileBytes);
    load_tile<C::kHeadDim, C::kBlockN>(smem.v[stage], &v_map, &smem.v_full[stage], kv_head,
                                       n * C::kBlockN, batch);
  };
  StageCursor<C::kStages> ring;
  if (threadIdx.x == 0 && tiles > 0) {
    load_queries<C>(smem, &q_map, head, first_query, batch);
    load(tiles - 1, ring.stage);
  }
  __syncwarp();

  float acc[C::kMTiles][C::kHeadDim / 2] = {};  // (16 queries, d) per warp and tile
  RowStates rows[C::kMTiles];
  if (tiles > 0) mbarrier_wait(&smem.q_full, 0);
  for (int n = tiles - 1; n >= 0; --n) {
    // Step 1: start the loads of the next key tile, then scores.
    const int stage = ring.stage;
    const uint32_t phase = ring.phase;
    ring.advance();
    // [quote tma_two_stages]
    __syncthreads();  // every warp has multiplied with the last key tile
    if (n > 0 && threadIdx.x == 0) load(n - 1, ring.stage);
    __syncwarp();
    mbarrier_wait(&smem.k_full[stage], phase);
    __syncwarp();  // ldmatrix and mma.sync need all lanes together
    // [end quote]
    float s[C::kMTiles][C::kBlockN / 2] = {};  // (16 queries, keys) per warp and tile
    lane_rows.scores(s, smem.k[stage]);

    // Step 2: online softmax in registers.
    if (n >= clear) {
#pragma unroll
      for (int m = 0; m < C::kMTiles; ++m) {
        mask_tile<C::kBlockN>(s[m], shape, warp_query + 16 * m, n * C::kBlockN);
      }
    }
    C::softmax(s, rows, acc, shape.scale_log2);
    uint32_t p[C::kMTiles][C::kBlockN / 16][4];
#pragma unroll
    for (int m = 0; m < C::kMTiles; ++m) pack_weights<T>(p[m], s[m]);

    // Step 3: add P V to the output.
    mbarrier_wait(&smem.v_full[stage], phase);
    __syncwarp();
    lane_rows.output(acc, p, smem.v[stage]);
  }
  warp_tiles::finish<C>(o, lse, shape, batch, head, warp_query, acc, rows);
}

struct TmaTwoStages : HopperLevel<TmaTwoStagesConfig> {
  static constexpr LevelText text{
      .name = "tma_two_stages",
      .changed = "TMA loads two stages of K and V",
      .expect =
          "1.07x: without its copies level 2 took 10 % less time, and one barrier per key tile "
          "instead of two stops all warps",
      .cost = "96 KB of shared memory instead of 64; compute capability 9.0",
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    static_assert(sizeof(Config::Smem) <= 99 * 1024, "fits an RTX 50");
    if (device.cc() < 90) return Support::no("needs TMA: compute capability 9.0");
    return supports_aligned_rows(p);
  }
  static Claims claims(const Problem& p) {
    return key_claims(p, shared_loads().on("fragments").conflict_free(),
                      faster_than_previous(1.02));
  }
  static void run(const Plan& plan, Stream stream) {
    launch_tiles(plan, stream, [](auto config) { return tma_two_stages_kernel<decltype(config)>; });
  }
};

}  // namespace cookbook::attention
