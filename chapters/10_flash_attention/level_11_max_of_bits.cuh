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

/// Whether max_of_bits suffices for all rows of the warp: only a positive score can exceed a row's
/// maximum by more than the slack, and then move it.
template <int kSlack>
__device__ __forceinline__ bool bits_suffice(const RowStates& rows, float scale_log2) {
  return __all_sync(kFullWarp, fminf(rows.max[0], rows.max[1]) * scale_log2 >= -kSlack);
}

struct SoftmaxOfBits : SoftmaxInTwoParts<16> {
  bool enough = false;  // the maximum of bits is right for all rows of the warp

  using SoftmaxInTwoParts<16>::SoftmaxInTwoParts;

  template <class C, int kCount>
  __device__ __forceinline__ bool begin(float (&s)[kCount], RowStates& rows, float (&rescale)[2],
                                        float scale_log2) {
    return begin_with<C>(s, rows, rescale, scale_log2,
                         [enough = enough](const float(&scores)[kCount], int r, float floor) {
                           return enough ? max_of_bits(scores, r, floor)
                                         : max_of_floats(scores, r, floor);
                         });
  }
  template <class C>
  __device__ __forceinline__ void maxima_changed(const RowStates& rows, float scale_log2) {
    enough = bits_suffice<C::kSlack>(rows, scale_log2);
  }
};

/// As start_split_softmax.
template <class C, class Start, class... More>
void start_max_of_bits(C config, const Start& start, const More&... more) {
  if constexpr (C::kBlockN <= 128) {
    start_split_softmax(config, start, more...);
  } else {
    start(cross_tile_kernel<C, SoftmaxOfBits, More...>, more..., kMinusInfinity);
  }
}

struct MaxOfBits : SplitSoftmax {
  static constexpr LevelText text{
      .name = "max_of_bits",
      .changed =
          "the maximum of a row is one of integers: the scores' bits, three at a time; 3/8 of the "
          "exponentials wait for P V, not 1/4",
      .expect =
          "d = 64: 3 to 5 %, because issue slots are scarce; d = 128: 1 %. Measured: 2 to 4 % "
          "at d = 128 without a mask, and a loss at d = 64 and with tiles of 128 keys",
      .cost =
          "a second maximum, of floats, for rows whose maximum is below -8 (log2); and where "
          "it loses, level 10's softmax stays",
  };
  static Claims claims(const Problem& p) {
    Claims claims = SplitSoftmax::claims(p);
    claims.back() = p.shape.causal ? at_least_previous(0.98, "its tiles may have 128 keys only")
                                   : faster_than_previous(1.01);
    return claims;
  }
  template <class = void>  // as in level 8
  static void run(const Plan& plan, Stream stream) {
    with_launch<CrossTileConfig, bf16>(
        plan, stream, kSplitSoftmaxTiles,
        [](auto config, auto start) { start_max_of_bits(config, start); });
  }
};

}  // namespace cookbook::attention
