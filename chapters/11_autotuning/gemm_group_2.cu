// SPDX-License-Identifier: MIT
// Configurations of the GEMM, second group: middle-sized tiles, for fewer waves.
#include "chapters/11_autotuning/gemm.cuh"
#include "chapters/11_autotuning/spaces.hpp"

namespace cookbook::autotuning {

std::vector<tune::Candidate> gemm_group_2() {
  using namespace gemm::tuned;
  constexpr auto kCoop = Schedule::cooperative, kPing = Schedule::ping_pong;
  using tune::candidate;
  //                          M    N    K  stages cluster    group  share
  return {candidate<Config<128, 192, 64, 5, 2, kCoop, 8, false>, Tuned>(),
          candidate<Config<128, 192, 64, 5, 2, kPing, 8, false>, Tuned>(),
          candidate<Config<64, 256, 64, 5, 2, kPing, 16, false>, Tuned>(),
          candidate<Config<64, 256, 64, 5, 1, kPing, 16, false>, Tuned>(),
          candidate<Config<128, 128, 64, 6, 2, kPing, 8, false>, Tuned>(),
          candidate<Config<128, 128, 64, 6, 2, kCoop, 8, false>, Tuned>(),
          candidate<Config<128, 128, 64, 6, 2, kCoop, 8, true>, Tuned>(),
          candidate<Config<128, 128, 128, 3, 2, kCoop, 8, false>, Tuned>(),
          // Unsupported: half of the tile's 64 rows is less than a wgmma.
          candidate<Config<64, 256, 64, 5, 2, kCoop, 16, false>, Tuned>()};
}

}  // namespace cookbook::autotuning
