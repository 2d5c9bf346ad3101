// SPDX-License-Identifier: MIT
// Exercise 15.1, a planted bug: level 1 with fewer registers for addresses. Its addresses of A are
// right for some K and wrong for others. Which is the smallest K that fails, which lanes read which
// 16 bytes instead of theirs, and why does the same step do no harm to B? Repair it.
#pragma once

#include "chapters/15_tma_with_mma/level_1_tma_tiles.cuh"

namespace cookbook::gemm {

namespace exercise_hoisted {

using warp_tiles::Stage;

struct Config : warp_tiles::Config {};

/// As the fragments of all levels, but for how a lane finds its addresses.
struct Fragments {
  using C = Config;
  uint32_t a[2][C::kMmaM][4], b[2][C::kMmaN][2];
  const bf16* a_row;             // this lane's row of A in stage 0: k step 0, piece 0
  const bf16* b_rows[C::kMmaM];  // of B: k step 0, piece i

  __device__ __forceinline__ Fragments(const Stage<C>& first, int warp) {
    const int lane = lane_idx(), row = warp / C::kWarpsN * C::kWarpM + lane % 16;
    const int byte_a = row * Stage<C>::A::kSpanBytes + lane / 16 * 16;
    a_row = reinterpret_cast<const bf16*>(first.a + swizzle_address<Swizzle::b64>(byte_a));
    const unsigned char* panel = first.b + warp % C::kWarpsN * Stage<C>::B::kPanelBytes;
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
      const int byte = lane % 16 * Stage<C>::B::kSpanBytes + (2 * i + lane / 16) * 16;
      b_rows[i] = reinterpret_cast<const bf16*>(panel + swizzle_address<Swizzle::b128>(byte));
    }
  }
  /// Loads piece `i` of k step `step` of a stage into set `set`. A step of A is 16 columns, 32
  /// bytes along a row; a step of B is 16 rows.
  __device__ __forceinline__ void load_piece(int set, int stage, int step, int i) {
    constexpr int kStage = sizeof(Stage<C>) / sizeof(bf16);
    hoisted_addresses::load_fragments<C>(a[set], b[set],
                                         a_row + stage * kStage + i * 16 * C::kBlockK + step * 16,
                                         b_rows[i] + stage * kStage + step * 16 * 64, i);
  }
  __device__ __forceinline__ void multiply(float (&acc)[C::kMmaM][C::kMmaN][4], int set, bool more,
                                           int stage, int step) {
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
      if (more) load_piece(1 - set, stage, step, i);
#pragma unroll
      for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k16<bf16>(acc[i][j], a[set][i], b[set][j]);
    }
  }
};

}  // namespace exercise_hoisted

template <>
struct warp_tiles::Fragments<exercise_hoisted::Config> : exercise_hoisted::Fragments {
  using exercise_hoisted::Fragments::Fragments;
};

struct ExerciseHoisted : warp_tiles::Level<exercise_hoisted::Config> {
  static constexpr LevelText text{
      .name = "exercise_hoisted",
      .changed = "level 1 with one address of A per lane; has a bug",
      .expect = "as level 1: right for every K, and no bank conflict",
  };

  static Claims claims(const Problem& p) { return loads(p, {}); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(mma_tma_tiles::kernel<Config>, tiles(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
