// SPDX-License-Identifier: MIT
// Level 11: the maximum of a row is taken of the scores' bits, as integers. Hopper has a maximum of
// three integers, and none of three floats, so this takes half as many instructions. Where tiles
// have more than 128 keys, at head dimension 128; elsewhere it is level 10.
#pragma once

#include "chapters/10_flash_attention/level_10_split_softmax.cuh"

namespace cookbook::attention {

/// The maximum of `floor` and of the scores of row r (0: g, 1: g + 8), compared as integers. Right
/// if it is positive, because positive floats are ordered as their bits are. Else some number that
/// is not positive.
template <int kCount>
__device__ __forceinline__ float max_of_bits(const float (&s)[kCount], int r, float floor) {
  int part[2] = {__float_as_int(floor), __float_as_int(floor)};
#pragma unroll
  // [quote max_of_bits]
  for (int k = 0; k < kCount / 2; k += 2) {
    int& most = part[k / 2 % 2];
    most = max3(most, __float_as_int(s[element_of(r, k)]), __float_as_int(s[element_of(r, k + 1)]));
  }
  // [end quote]
  return __int_as_float(max(part[0], part[1]));
}

/// As above, for any scores.
template <int kCount>
__device__ __forceinline__ float max_of_floats(const float (&s)[kCount], int r, float floor) {
  float part[2] = {floor, floor};
#pragma unroll
  for (int k = 0; k < kCount / 2; ++k) part[k % 2] = fmaxf(part[k % 2], s[element_of(r, k)]);
  return fmaxf(part[0], part[1]);
}

/// Whether max_of_bits suffices for all rows of the warp: only a positive score can exceed a row's
/// maximum by more than the slack, and then move it.
template <int kSlack>
__device__ __forceinline__ bool bits_suffice(const RowStates& rows, float scale_log2) {
  return __all_sync(kFullWarp, fminf(rows.max[0], rows.max[1]) * scale_log2 >= -kSlack);
}

/// begin_softmax, with max_of_bits if `positive`.
template <int kSlack, int kHead, int kCount>
__device__ __forceinline__ SoftmaxState begin_softmax_of_bits(float (&s)[kCount], RowStates& rows,
                                                              float (&rescale)[2], float scale_log2,
                                                              float minus_infinity, bool positive) {
  timeline::begin(timeline::Kind::softmax);
  SoftmaxState state{};
  bool any_moved = false;
  float after = minus_infinity;  // of the previous row
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float max = warp_max<4>(positive ? max_of_bits(s, r, after) : max_of_floats(s, r, after));
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

template <class C, class... More>
__global__ void __launch_bounds__(C::kThreads, 1)
    max_of_bits_kernel(const __grid_constant__ TensorMap q_map,
                       const __grid_constant__ TensorMap k_map,
                       const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                       Shape shape, Schedule schedule, TileCounters* counters, More... more,
                       float minus_infinity) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  constexpr int kHead = kBlockN / 16;  // a quarter of the second row
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
    bool positive = false;  // the maximum of bits is right for all rows of the warp
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
      positive = bits_suffice<C::kSlack>(rows, shape.scale_log2);
      pack_weights<T>(p, s);
      for (;;) {
        // Step 2: the other key tiles, with the maximum of bits.
        for (int n = tiles - 2; n >= 0; --n) {
          start_tile(n);
          consumer.mask(s, shape, consumer.entry, n);
          const SoftmaxState state = begin_softmax_of_bits<C::kSlack, kHead>(
              s, rows, rescale, shape.scale_log2, minus_infinity, positive);
          finish_softmax_before_wait(rows);
          consumer.output_done(acc);
          if (state.moved) {
            scale_rows(acc, rescale);
            positive = bits_suffice<C::kSlack>(rows, shape.scale_log2);
          }
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
        positive = bits_suffice<C::kSlack>(rows, shape.scale_log2);
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

/// Launches the kernel that is fastest with the tiles of configuration C: start(kernel, ...). more:
/// what follows the counters in its parameters.
template <class C, class Start, class... More>
void start_fastest(C, const Start& start, const More&... more) {
  if constexpr (C::kHeadDim == 64) {
    start(cross_tile_kernel<C, More...>, more...);
  } else if constexpr (C::kBlockN <= 128) {
    start(split_softmax_kernel<C, More...>, more..., kMinusInfinity);
  } else {
    start(max_of_bits_kernel<C, More...>, more..., kMinusInfinity);
  }
}

struct MaxOfBits : SplitSoftmax {
  static constexpr LevelText text{
      .name = "max_of_bits",
      .changed = "the maximum of a row is one of integers: the scores' bits, three at a time",
      .expect =
          "d = 64: 3 to 5 %, because issue slots are scarce; d = 128: 1 %. Measured: 2 to 4 % "
          "at d = 128 without a mask, and a loss at d = 64 and with tiles of 128 keys",
      .cost =
          "a second maximum, of floats, for rows whose maximum is negative; and where it loses, "
          "level 10's kernel stays",
  };
  static Claims claims(const Problem& p) {
    Claims claims = SplitSoftmax::claims(p);
    claims.back() = p.shape.causal ? at_least_previous(0.98, "its tiles may have 128 keys only")
                                   : faster_than_previous(1.01);
    return claims;
  }
  static void run(const Plan& plan, Stream stream) {
    with_launch<CrossTileConfig>(
        plan, stream, [](auto c, const Shape& s, auto f) { with_split_softmax_config(c, s, f); },
        [](auto config, auto start) { start_fastest(config, start); });
  }
};

}  // namespace cookbook::attention
