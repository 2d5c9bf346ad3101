// SPDX-License-Identifier: MIT
// Configurations and model of the GEMM.
#include "chapters/11_autotuning/gemm.cuh"
#include "chapters/11_autotuning/spaces.hpp"

namespace cookbook::autotuning {

void add_gemm(tune::Space& space) {
  using namespace gemm::tuned;
  space.model = predict;
  constexpr auto kCoop = Schedule::cooperative, kPing = Schedule::ping_pong;
  using tune::candidate;
  //                      M    N    K  stages cluster    group  share
  // Tiles for many waves first.
  const std::vector<tune::Candidate> all = {
      candidate<Config<128, 256, 64, 4, 2, kCoop, 8, false>, Tuned>(),  // the default
      candidate<Config<128, 256, 64, 4, 2, kCoop, 4, false>, Tuned>(),
      candidate<Config<128, 256, 64, 4, 2, kCoop, 16, false>, Tuned>(),
      candidate<Config<128, 256, 64, 4, 2, kCoop, 8, true>, Tuned>(),
      candidate<Config<128, 256, 64, 4, 1, kCoop, 8, false>, Tuned>(),
      candidate<Config<128, 256, 64, 4, 1, kCoop, 8, true>, Tuned>(),
      candidate<Config<128, 256, 128, 2, 2, kCoop, 8, false>, Tuned>(),
      candidate<Config<256, 128, 64, 4, 2, kCoop, 8, false>, Tuned>(),
      candidate<Config<256, 128, 64, 4, 1, kCoop, 8, false>, Tuned>(),
      candidate<Config<256, 192, 64, 3, 2, kCoop, 4, false>, Tuned>(),
      // Unsupported configurations, with their reasons; no kernel is compiled for them.
      candidate<Config<128, 256, 64, 5, 2, kCoop, 8, false>, Tuned>(),
      candidate<Config<256, 256, 64, 3, 2, kCoop, 8, false>, Tuned>(),
      candidate<Config<256, 128, 64, 4, 2, kCoop, 8, true>, Tuned>(),
      // Middle-sized tiles, for fewer waves.
      candidate<Config<128, 192, 64, 5, 2, kCoop, 8, false>, Tuned>(),
      candidate<Config<128, 192, 64, 5, 2, kPing, 8, false>, Tuned>(),
      candidate<Config<64, 256, 64, 5, 2, kPing, 16, false>, Tuned>(),
      candidate<Config<64, 256, 64, 5, 1, kPing, 16, false>, Tuned>(),
      candidate<Config<128, 128, 64, 6, 2, kPing, 8, false>, Tuned>(),
      candidate<Config<128, 128, 64, 6, 2, kCoop, 8, false>, Tuned>(),
      candidate<Config<128, 128, 64, 6, 2, kCoop, 8, true>, Tuned>(),
      candidate<Config<128, 128, 128, 3, 2, kCoop, 8, false>, Tuned>(),
      // Unsupported: half of the tile's 64 rows is less than a wgmma.
      candidate<Config<64, 256, 64, 5, 2, kCoop, 16, false>, Tuned>(),
      // Small tiles and single blocks, for less than a wave.
      candidate<Config<128, 128, 64, 6, 1, kCoop, 8, false>, Tuned>(),
      candidate<Config<128, 128, 64, 6, 1, kCoop, 8, true>, Tuned>(),
      candidate<Config<128, 64, 64, 8, 1, kCoop, 8, false>, Tuned>(),
      candidate<Config<128, 64, 64, 8, 1, kCoop, 8, true>, Tuned>(),
      candidate<Config<128, 64, 64, 8, 2, kCoop, 8, false>, Tuned>(),
      candidate<Config<64, 128, 64, 8, 1, kPing, 8, false>, Tuned>(),
      candidate<Config<64, 64, 64, 8, 1, kPing, 8, false>, Tuned>()};
  for (const tune::Candidate& each : all) space.add(each);
}

}  // namespace cookbook::autotuning
