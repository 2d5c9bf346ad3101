// SPDX-License-Identifier: MIT
// Configurations of attention.
#include "chapters/11_autotuning/attention.cuh"
#include "chapters/11_autotuning/spaces.hpp"

namespace cookbook::autotuning {

std::vector<tune::Candidate> attention_group() {
  using namespace attention::tuned;
  using tune::candidate;
  //               queries keys stages cluster group
  return {
      candidate<Config<128, kByMask, 2, 1, 0>, Tuned>(),  // the default: chapter 10's rule
      candidate<Config<128, 176, 2, 1, 0>, Tuned>(), candidate<Config<128, 176, 2, 1, 8>, Tuned>(),
      candidate<Config<128, 160, 2, 1, 0>, Tuned>(), candidate<Config<128, 128, 2, 1, 0>, Tuned>(),
      candidate<Config<128, 128, 2, 1, 4>, Tuned>(), candidate<Config<128, 128, 2, 1, 16>, Tuned>(),
      candidate<Config<128, 128, 3, 1, 0>, Tuned>(), candidate<Config<128, 96, 3, 1, 0>, Tuned>(),
      candidate<Config<192, 64, 2, 1, 0>, Tuned>(), candidate<Config<192, 64, 4, 1, 0>, Tuned>(),
      candidate<Config<128, 176, 2, 2, 0>, Tuned>(), candidate<Config<128, 128, 2, 2, 0>, Tuned>(),
      candidate<Config<128, 128, 3, 2, 0>, Tuned>(),
      // Unsupported configurations, with their reasons; no kernel is compiled for them.
      candidate<Config<128, 176, 3, 1, 0>, Tuned>(), candidate<Config<128, 192, 2, 1, 0>, Tuned>(),
      candidate<Config<192, 96, 2, 1, 0>, Tuned>(), candidate<Config<192, 64, 2, 2, 0>, Tuned>()};
}

double predict_attention(const tune::Parameters& parameters, const Size& size,
                         const DeviceInfo& device) {
  return attention::tuned::predict(parameters, size, device);
}

}  // namespace cookbook::autotuning
