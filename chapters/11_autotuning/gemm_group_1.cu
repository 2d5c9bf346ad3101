// SPDX-License-Identifier: MIT
// Configurations of the GEMM, first group: tiles for many waves. The groups are compiled in
// parallel.
#include "chapters/11_autotuning/gemm.cuh"
#include "chapters/11_autotuning/spaces.hpp"

namespace cookbook::autotuning {

std::vector<tune::Candidate> gemm_group_1() {
  using namespace gemm::tuned;
  constexpr auto kCoop = Schedule::cooperative;
  using tune::candidate;
  //                          M    N    K  stages cluster    group  share
  return {candidate<Config<128, 256, 64, 4, 2, kCoop, 8, false>, Tuned>(),  // the default
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
          candidate<Config<256, 128, 64, 4, 2, kCoop, 8, true>, Tuned>()};
}

double predict_gemm(const tune::Parameters& parameters, const Size& size,
                    const DeviceInfo& device) {
  return gemm::tuned::predict(parameters, size, device);
}

}  // namespace cookbook::autotuning
