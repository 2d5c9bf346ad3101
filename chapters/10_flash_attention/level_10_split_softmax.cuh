// SPDX-License-Identifier: MIT
// Level 10: at head dimension 128 the warpgroups no longer take turns, and the softmax is split. A
// quarter of the exponentials, and the conversion of the weights, wait until P V is complete, so
// the first three quarters use fewer registers. Without a named barrier the two warpgroups settle
// apart by themselves. At head dimension 64 the turns and the softmax of level 9 stay. Long causal
// sequences have tiles of 176 keys (kSplitSoftmaxTiles in schedule.cuh).
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

/// The maximum of `floor` and of the scores of row r.
template <int kCount>
__device__ __forceinline__ float max_of_floats(const float (&s)[kCount], int r, float floor) {
  float part[2] = {floor, floor};
#pragma unroll
  for (int k = 0; k < kCount / 2; ++k) part[k % 2] = fmaxf(part[k % 2], s[element_of(r, k)]);
  return fmaxf(part[0], part[1]);
}

/// lazy_softmax up to the exponential kHead of the second row. `minus_infinity` is a kernel
/// parameter, because ptxas must not know it: it makes the second row's maximum depend on the
/// first's, so that it is computed during the first row's exponentials.
template <int kSlack, int kHead, int kCount, class MaxOf>
__device__ __forceinline__ SoftmaxState begin_softmax(float (&s)[kCount], RowStates& rows,
                                                      float (&rescale)[2], float scale_log2,
                                                      float minus_infinity, const MaxOf& max_of) {
  timeline::begin(timeline::Kind::softmax);
  SoftmaxState state{};
  bool any_moved = false;
  float after = minus_infinity;  // of the previous row
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float max = warp_max<4>(max_of(s, r, after));
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

/// The warpgroups' order is left to chance.
template <int kConsumers>
struct NoTurns {
  int consumer;
  __device__ __forceinline__ void begin() const {}
  __device__ __forceinline__ void end() const {}
  __device__ __forceinline__ void open() const {}
  __device__ __forceinline__ void close() const {}
};

/// The exponentials of the first row, and kBlockN / kShare of the second one's kBlockN / 4, come
/// before P V is complete, the others after it.
template <int kShare = 8>
struct SoftmaxInTwoParts {
  using Parameters = float;  // minus infinity
  template <int kConsumers>
  using Order = NoTurns<kConsumers>;

  float minus_infinity;
  SoftmaxState state{};

  __device__ __forceinline__ explicit SoftmaxInTwoParts(float minus_infinity)
      : minus_infinity(minus_infinity) {}

  template <class C, int kCount>
  __device__ __forceinline__ bool begin(float (&s)[kCount], RowStates& rows, float (&rescale)[2],
                                        float scale_log2) {
    return begin_with<C>(s, rows, rescale, scale_log2, max_of_floats<kCount>);
  }
  template <class C, int kCount, class MaxOf>
  __device__ __forceinline__ bool begin_with(float (&s)[kCount], RowStates& rows,
                                             float (&rescale)[2], float scale_log2,
                                             const MaxOf& max_of) {
    state = begin_softmax<C::kSlack, C::kBlockN / kShare>(s, rows, rescale, scale_log2,
                                                          minus_infinity, max_of);
    return state.moved;
  }
  template <class C, int kCount>
  __device__ __forceinline__ void end(float (&s)[kCount], RowStates& rows, float scale_log2) {
    end_softmax<C::kBlockN / kShare>(s, rows, state, scale_log2);
  }
  template <class C>
  __device__ __forceinline__ void maxima_changed(const RowStates&, float) {}
};

/// start(kernel, more...): the kernel for configuration C. more: its parameters after the counters.
template <class C, class Start, class... More>
void start_split_softmax(C, const Start& start, const More&... more) {
  if constexpr (C::kHeadDim == 64) {
    start(cross_tile_kernel<C, WholeSoftmax, More...>, more..., WholeSoftmax::Parameters{});
  } else {
    start(cross_tile_kernel<C, SoftmaxInTwoParts<>, More...>, more..., kMinusInfinity);
  }
}

struct SplitSoftmax : CrossTile {
  static constexpr LevelText text{
      .name = "split_softmax",
      .changed =
          "d 128: no turns, a split softmax, and tiles of 176 keys for long causal sequences",
      .expect = "no warpgroup waits for the other's turn, and more of the softmax overlaps",
      .cost = "the overlap of the two warpgroups is no longer enforced; level 9's turns at d 64",
  };

  static Plan prepare(const Problem& p, const Buffers& at) {
    return prepare_tiles(p, at, tile_of(p, kSplitSoftmaxTiles), 64);
  }
  static Claims claims(const Problem& p) {
    Claims claims = cross_tile_claims(p, tile_of(p, kSplitSoftmaxTiles));
    claims.back() = faster_than_previous(1.01);
    return claims;
  }
  template <class = void>  // as in level 8
  static void run(const Plan& plan, Stream stream) {
    with_launch<CrossTileConfig, bf16>(
        plan, stream, kSplitSoftmaxTiles,
        [](auto config, auto start) { start_split_softmax(config, start); });
  }
};

}  // namespace cookbook::attention
