// SPDX-License-Identifier: MIT
// Level 10: at head dimension 128 the warpgroups no longer take turns, and the softmax is split. A
// quarter of the exponentials, and the conversion of the weights, wait until P V is complete, so
// the first three quarters use fewer registers. Without a named barrier the two warpgroups settle
// apart by themselves.
#pragma once

#include "chapters/10_flash_attention/level_9_cross_tile.cuh"

namespace cookbook::attention {

/// What begin_softmax leaves for end_softmax.
struct SoftmaxState {
  float offset;  // of the thread's second row
  bool moved;    // as lazy_softmax returns it
};

/// Accumulator k of row r (0: g, 1: g + 8) of a thread; see softmax.cuh.
__device__ constexpr int element_of(int r, int k) { return 4 * (k / 2) + 2 * r + k % 2; }

/// lazy_softmax up to the exponential kHead of the second row. `minus_infinity` is a kernel
/// parameter, because ptxas must not know it: it makes the second row's maximum depend on the
/// first's, so that it is computed during the first row's exponentials.
template <int kSlack, int kHead, int kCount>
__device__ __forceinline__ SoftmaxState begin_softmax(float (&s)[kCount], RowStates& rows,
                                                      float (&rescale)[2], float scale_log2,
                                                      float minus_infinity) {
  timeline::begin(timeline::Kind::softmax);
  SoftmaxState state{};
  bool any_moved = false;
  float after = minus_infinity;  // of the previous row
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float part[2] = {fmaxf(s[element_of(r, 0)], after), fmaxf(s[element_of(r, 1)], after)};
#pragma unroll
    for (int k = 2; k < kCount / 2; ++k) part[k % 2] = fmaxf(part[k % 2], s[element_of(r, k)]);
    float max = warp_max<4>(fmaxf(part[0], part[1]));
    after = fminf(max, minus_infinity);
    const bool moved = (max - rows.max[r]) * scale_log2 > kSlack;  // false for -inf - -inf
    max = moved ? max : rows.max[r];
    const float offset = max == kMinusInfinity ? 0.0f : max * scale_log2;
    rescale[r] = moved ? ex2_approx_ftz(rows.max[r] * scale_log2 - offset) : 1.0f;
    rows.max[r] = max;
    any_moved |= moved;
    float sum = rows.sum[r] * rescale[r];
#pragma unroll
    for (int k = 0; k < (r == 0 ? kCount / 2 : kHead); ++k) {
      float& x = s[element_of(r, k)];
      x = ex2_approx_ftz(x * scale_log2 - offset);
      sum += x;
    }
    rows.sum[r] = sum;
    state.offset = offset;
  }
  state.moved = __any_sync(kFullWarp, any_moved);
  timeline::end(timeline::Kind::softmax);
  return state;
}
/// The other exponentials of the second row.
template <int kHead, int kCount>
__device__ __forceinline__ void end_softmax(float (&s)[kCount], RowStates& rows,
                                            const SoftmaxState& state, float scale_log2) {
  timeline::begin(timeline::Kind::softmax);
  float sum = rows.sum[1];
#pragma unroll
  for (int k = kHead; k < kCount / 2; ++k) {
    float& x = s[element_of(1, k)];
    x = ex2_approx_ftz(x * scale_log2 - state.offset);
    sum += x;
  }
  rows.sum[1] = sum;
  timeline::end(timeline::Kind::softmax);
}

template <class C, class... More>
__global__ void __launch_bounds__(C::kThreads, 1)
    split_softmax_kernel(const __grid_constant__ TensorMap q_map,
                         const __grid_constant__ TensorMap k_map,
                         const __grid_constant__ TensorMap v_map, typename C::Element* o,
                         float* lse, Shape shape, Schedule schedule, TileCounters* counters,
                         More... more, float minus_infinity) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  constexpr int kHead = kBlockN / 8;  // half of the second row
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
    float acc[kHeadDim / 2] = {};  // (64 queries, d) per warpgroup
    float s[kBlockN / 2];          // (64 queries, keys) per warpgroup
    uint32_t p[kBlockN / 16][4];   // (64 queries, keys) as A operands of 16 keys
    float rescale[2];
    RowStates rows;
    // Starts the scores of key tile n, and P V of the key tile before it. Returns when the scores
    // are complete.
    const auto start_tile = [&](int n) {
      mbarrier_wait(&smem.k_full[consumer.k_ring.stage], consumer.k_ring.phase);
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[consumer.k_ring.stage]);
      mbarrier_wait(&smem.v_full[consumer.v_ring.stage], consumer.v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[consumer.v_ring.stage]);
      wait_for_batch<1>(s);
      consumer.scores_done(n);
    };

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
      pack_weights<T>(p, s);
      for (;;) {
        // Step 2: the other key tiles, with a split softmax.
        for (int n = tiles - 2; n >= 0; --n) {
          start_tile(n);
          consumer.mask(s, shape, consumer.entry, n);
          const SoftmaxState state =
              begin_softmax<C::kSlack, kHead>(s, rows, rescale, shape.scale_log2, minus_infinity);
          finish_softmax_before_wait(rows);
          consumer.output_done(acc);
          if (state.moved) scale_rows(acc, rescale);
          end_softmax<kHead>(s, rows, state, shape.scale_log2);
          pack_weights<T>(p, s);
        }
        // Step 3: across the boundary: the next query tile's first scores and this one's last P V.
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
        pack_weights<T>(p, s);
      }
      // Step 4: the last P V of a run, with nothing to overlap.
      mbarrier_wait(&smem.v_full[consumer.v_ring.stage], consumer.v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[consumer.v_ring.stage]);
      consumer.output_done(acc);
      consumer.store(o, lse, shape, acc, rows, more...);
    }
  }
}

struct SplitSoftmax : CrossTile {
  static constexpr LevelText text{
      .name = "split_softmax",
      .changed =
          "d 128: no turns, a split softmax, and tiles of 176 keys for long causal sequences",
      .expect = "no warpgroup waits for the other's turn, and more of the softmax overlaps",
      .cost = "the overlap of the two warpgroups is no longer enforced; level 9's kernel at d 64",
  };

  static Plan prepare(const Problem& p, const Buffers& at) {
    return prepare_tiles(p, at, split_softmax_tile(p), 64);
  }
  static Claims claims(const Problem& p) {
    Claims claims = cross_tile_claims(p, split_softmax_tile(p));
    claims.back() = faster_than_previous(1.01);
    return claims;
  }
  static void run(const Plan& plan, Stream stream) {
    with_launch<CrossTileConfig>(
        plan, stream, [](auto c, const Shape& s, auto f) { with_split_softmax_config(c, s, f); },
        [](auto config, auto start) {
          using C = decltype(config);
          if constexpr (C::kHeadDim == 64) {
            start(cross_tile_kernel<C>);
          } else {
            start(split_softmax_kernel<C>, kMinusInfinity);
          }
        });
  }
};

}  // namespace cookbook::attention
