// SPDX-License-Identifier: MIT
// Prefill on Hopper: chapter 10's last level, with the tiles that suit the shape.
#pragma once

#include "chapters/10_flash_attention/level_12_last_wave.cuh"

namespace cookbook::attention {

/// As kSplitSoftmaxTiles, and tiles of 160 keys where these need at least a twentieth fewer keys,
/// padding included, because every key tile costs more than its keys. Without a mask and at head
/// dimension 128 only.
inline constexpr auto kPrefillTiles = [](auto c, const Shape& shape, auto&& f) {
  using CaseT = decltype(c);
  if constexpr (CaseT::kHeadDim == 128) {
    const int few = 160 * ceil_div(shape.seq_k, 160), many = 176 * ceil_div(shape.seq_k, 176);
    if (!shape.causal && many - few > many / 20) return f(PersistentConfig<CaseT, 2, 160>{});
  }
  kSplitSoftmaxTiles(c, shape, f);
};

struct Prefill : LastWave {
  static constexpr LevelText text{
      .name = "prefill",
      .changed = "tiles by shape",
      .expect = "5 % or more where tiles of 160 keys leave less padding; else the same",
      .cost = "one more tile size to compile",
  };

  static Plan prepare(const Problem& p, const Buffers& at) {
    return prepare_chunks(p, at, tile_of(p, kPrefillTiles));
  }
  static Claims claims(const Problem& p) {
    Claims claims = cross_tile_claims(p, tile_of(p, kPrefillTiles));
    claims.pop_back();
    return claims;
  }
  static void run(const Plan& plan, Stream stream) { run_chunks(plan, stream, kPrefillTiles); }
};

}  // namespace cookbook::attention
