// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar of chapter 4: the last level's kernel with other tiles, depths and numbers of stages. It
// shows how the configuration in level_5_wide_tile.cuh was chosen, and what to try on another GPU.
#include "chapters/02_tiling/sweep.hpp"
#include "chapters/04_double_buffering/level_8_any_register.cuh"
#include "common/harness/run/arguments.hpp"

namespace cookbook::sgemm {

template <int kTileM, int kTileN, int kTileK, int kWarpTileM, int kWarpTileN, int kRows, int kCols,
          int kDepth, int kResident, int kGroupRows = 16>
struct AnyConfig : AnyRegisterConfig {
  static constexpr int kM = kTileM, kN = kTileN, kK = kTileK;
  static constexpr int kWarpM = kWarpTileM, kWarpN = kWarpTileN;
  static constexpr int kThreadM = kRows, kThreadN = kCols;
  static constexpr int kThreads = kM * kN / (kThreadM * kThreadN);
  static constexpr int kBlocks = kResident;
  static constexpr int kStages = kDepth;
  static constexpr int kPitchA = kM + 4;
  static constexpr int kGroup = kGroupRows;
};

template <class C>
Candidate row(const char* name) {
  return candidate<C>(name, fragment_prefetch_kernel<C, true, float>, stages_bytes<C>(), 1.0f);
}

}  // namespace cookbook::sgemm

int main(int argc, char** argv) {
  using namespace cookbook::sgemm;
  for (const cookbook::Size& size : cookbook::joined_sizes(
           argc, argv, {{2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}})) {
    //                 tile (M, N, K)  warp    thread stages, blocks per SM
    sweep(
        size,
        {
            row<AnyConfig<128, 256, 16, 64, 64, 16, 8, 3, 1>>("128x256x16, 16x8, 3 stages"),
            row<AnyConfig<128, 256, 16, 64, 64, 16, 8, 4, 1>>("128x256x16, 16x8, 4 stages"),
            row<AnyConfig<128, 256, 8, 64, 64, 16, 8, 4, 1>>("128x256x8, 16x8, 4 stages"),
            row<AnyConfig<256, 128, 16, 64, 64, 16, 8, 3, 1>>("256x128x16, 16x8, 3 stages"),
            row<AnyConfig<128, 128, 16, 64, 64, 16, 8, 3, 2>>(
                "128x128x16, 16x8, 3 stages, 2 blocks"),
            row<AnyConfig<128, 128, 16, 64, 64, 16, 8, 4, 2>>(
                "128x128x16, 16x8, 4 stages, 2 blocks"),
            row<AnyConfig<128, 128, 8, 64, 64, 16, 8, 4, 2>>("128x128x8, 16x8, 4 stages, 2 blocks"),
            row<AnyConfig<128, 128, 16, 32, 64, 8, 8, 3, 2>>("128x128x16, 8x8, 3 stages, 2 blocks"),
            row<AnyConfig<128, 256, 16, 64, 64, 16, 8, 4, 1, 1>>(
                "128x256x16, 4 stages, row by row"),
            row<AnyConfig<128, 256, 16, 64, 64, 16, 8, 4, 1, 8>>(
                "128x256x16, 4 stages, groups of 8"),
        });
  }
}
