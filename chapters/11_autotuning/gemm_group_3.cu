// SPDX-License-Identifier: MIT
// Configurations of the GEMM, third group: small tiles and single blocks, for less than a wave.
#include "chapters/11_autotuning/gemm.cuh"
#include "chapters/11_autotuning/spaces.hpp"

namespace cookbook::autotuning {

std::vector<tune::Candidate> gemm_group_3() {
  using namespace gemm::tuned;
  constexpr auto kCoop = Schedule::cooperative, kPing = Schedule::ping_pong;
  using tune::candidate;
  //                          M    N    K  stages cluster    group  share
  return {candidate<Config<128, 128, 64, 6, 1, kCoop, 8, false>, Tuned>(),
          candidate<Config<128, 128, 64, 6, 1, kCoop, 8, true>, Tuned>(),
          candidate<Config<128, 64, 64, 8, 1, kCoop, 8, false>, Tuned>(),
          candidate<Config<128, 64, 64, 8, 1, kCoop, 8, true>, Tuned>(),
          candidate<Config<128, 64, 64, 8, 2, kCoop, 8, false>, Tuned>(),
          candidate<Config<64, 128, 64, 8, 1, kPing, 8, false>, Tuned>(),
          candidate<Config<64, 64, 64, 8, 1, kPing, 8, false>, Tuned>()};
}

}  // namespace cookbook::autotuning
