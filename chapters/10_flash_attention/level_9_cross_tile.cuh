// SPDX-License-Identifier: MIT
// Level 9: the pipeline crosses the boundary between two query tiles. The first scores of a block's
// next query tile are computed together with the last P V of the current one. The output is stored
// 16 bytes at a time, and each warpgroup's queries are loaded as soon as it is done with its
// previous ones.
#pragma once

#include "chapters/10_flash_attention/cross_tile.cuh"

namespace cookbook::attention {

/// How a consumer computes the weights of a key tile, and whether it takes turns. Levels 10 and 11
/// have others.
struct WholeSoftmax {
  struct Parameters {};  // of the kernel
  template <int kConsumers>
  using Order = Turns<kConsumers>;

  __device__ __forceinline__ explicit WholeSoftmax(Parameters) {}
  /// Scores to weights, before P V of the previous key tile is complete. Returns whether that
  /// output must be rescaled.
  template <class C, int kCount>
  __device__ __forceinline__ bool begin(float (&s)[kCount], RowStates& rows, float (&rescale)[2],
                                        float scale_log2) {
    return lazy_softmax<C::kSlack>(s, rows, rescale, scale_log2);
  }
  /// What is left for the time after it.
  template <class C, int kCount>
  __device__ __forceinline__ void end(float (&)[kCount], RowStates&, float) {}
  /// The maxima of `rows` have changed.
  template <class C>
  __device__ __forceinline__ void maxima_changed(const RowStates&, float) {}
};

template <class C, class Softmax, class... More>
__global__ void __launch_bounds__(C::kThreads, 1)
    cross_tile_kernel(const __grid_constant__ TensorMap q_map,
                      const __grid_constant__ TensorMap k_map,
                      const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                      Shape shape, Schedule schedule, TileCounters* counters, More... more,
                      typename Softmax::Parameters parameters) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();

  if (threadIdx.x == 0) init_cross_tile<C>(smem);
  __syncthreads();

  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      produce_tiles<C>(smem, &q_map, &k_map, &v_map, shape, schedule, counters, more...);
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    typename C::Consumer consumer(smem, warp);
    const unsigned char* q_tile = smem.q + consumer.index * 64 * 128;  // this warpgroup's rows
    const typename Softmax::template Order<C::kConsumers> turns{consumer.index};
    float acc[kHeadDim / 2] = {};  // (64 queries, d) per warpgroup
    float s[kBlockN / 2];          // (64 queries, keys) per warpgroup
    uint32_t p[kBlockN / 16][4];   // (64 queries, keys) as A operands of 16 keys
    float rescale[2];
    RowStates rows;
    Softmax softmax(parameters);
    // Starts the scores of key tile n, and P V of the key tile before it, in one turn. Returns when
    // the scores are complete.
    const auto start_tile = [&](int n) {
      mbarrier_wait(&smem.k_full[consumer.k_ring.stage], consumer.k_ring.phase);
      turns.begin();
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[consumer.k_ring.stage]);
      mbarrier_wait(&smem.v_full[consumer.v_ring.stage], consumer.v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[consumer.v_ring.stage]);
      turns.end();
      wait_for_batch<1>(s);
      consumer.scores_done(n);
    };

    turns.open();
    for (int tiles = consumer.wait_for_tile(consumer.entry); tiles >= 0;) {
      if (tiles == 0) {  // no key is visible
        rows = RowStates{};
        consumer.store(o, lse, shape, acc, rows, more...);
        tiles = consumer.wait_for_tile(consumer.entry);
        continue;
      }
      // Step 1: the first scores and softmax of a run of tiles, with nothing to overlap.
      consumer.begin_tile(consumer.entry, shape);
      mbarrier_wait(&smem.k_full[consumer.k_ring.stage], consumer.k_ring.phase);
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[consumer.k_ring.stage]);
      wait_for_batch<0>(s);
      consumer.scores_done(tiles - 1);
      consumer.mask(s, shape, consumer.entry, tiles - 1);
      rows = RowStates{};
      lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
      softmax.template maxima_changed<C>(rows, shape.scale_log2);
      pack_weights<T>(p, s);
      for (;;) {
        // Step 2: the other key tiles, as in level 8.
        for (int n = tiles - 2; n >= 0; --n) {
          start_tile(n);
          consumer.mask(s, shape, consumer.entry, n);
          const bool moved = softmax.template begin<C>(s, rows, rescale, shape.scale_log2);
          finish_softmax_before_wait(rows);
          consumer.output_done(acc);
          if (moved) {
            scale_rows(acc, rescale);
            softmax.template maxima_changed<C>(rows, shape.scale_log2);
          }
          softmax.template end<C>(s, rows, shape.scale_log2);
          pack_weights<T>(p, s);
        }
        // Step 3: across the boundary. A turn with the next query tile's first scores and this
        // one's last P V.
        auto next = consumer.entry;
        next.advance();
        tiles = consumer.wait_for_tile(next);
        if (tiles <= 0) break;
        consumer.begin_tile(next, shape);
        start_tile(tiles - 1);
        consumer.mask(s, shape, next, tiles - 1);
        RowStates fresh;
        lazy_softmax<C::kSlack>(s, fresh, rescale, shape.scale_log2);
        finish_softmax_before_wait(fresh);
        consumer.output_done(acc);
        consumer.store(o, lse, shape, acc, rows, more...);
        rows = fresh;
        softmax.template maxima_changed<C>(rows, shape.scale_log2);
        pack_weights<T>(p, s);
      }
      // Step 4: the last P V of a run, with nothing to overlap.
      mbarrier_wait(&smem.v_full[consumer.v_ring.stage], consumer.v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[consumer.v_ring.stage]);
      consumer.output_done(acc);
      consumer.store(o, lse, shape, acc, rows, more...);
    }
    turns.close();
  }
}

struct CrossTile : PersistentLevel {
  static constexpr LevelText text{
      .name = "cross_tile",
      .changed = "a query tile's last P V runs with the next one's first scores; 16-byte stores",
      .expect = "tensor cores no longer idle between query tiles: most with short sequences",
      .cost = "more state between producer and consumers; exchanges between lanes before stores",
  };

  static Plan prepare(const Problem& p, const Buffers& at) {
    return prepare_tiles(p, at, tile_of(p, kPersistentTiles),
                         64);  // a warpgroup's queries per copy
  }
  static Claims claims(const Problem& p) {
    return cross_tile_claims(p, tile_of(p, kPersistentTiles));
  }
  static Claims cross_tile_claims(const Problem& p, std::pair<int, int> tile) {
    Claims claims = key_claims(p, tile);
    claims.push_back(global_stores("o").on("store").coalesced());
    claims.push_back(at_least_previous(0.98, "it pays with short sequences: prefill_short"));
    return claims;
  }
  template <class = void>  // as in level 8
  static void run(const Plan& plan, Stream stream) {
    with_launch<CrossTileConfig, bf16>(plan, stream, kPersistentTiles, [](auto config, auto start) {
      start(cross_tile_kernel<decltype(config), WholeSoftmax>, WholeSoftmax::Parameters{});
    });
  }
};

}  // namespace cookbook::attention
