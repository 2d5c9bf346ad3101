// SPDX-License-Identifier: MIT
// Configurations and model of attention.
#include "chapters/11_autotuning/attention.cuh"
#include "chapters/11_autotuning/spaces.hpp"

namespace cookbook::autotuning {

void add_attention(tune::Space& space) {
  using namespace attention::tuned;
  space.model = predict;
  // queries, keys, stages, cluster, group
  tune::add_candidates<Tuned>(
      space,
      tune::Configs<Config<128, kByMask, 2, 1, 0>,  // the default: chapter 10's rule
                    Config<128, 176, 2, 1, 0>, Config<128, 176, 2, 1, 8>, Config<128, 160, 2, 1, 0>,
                    Config<128, 128, 2, 1, 0>, Config<128, 128, 2, 1, 4>,
                    Config<128, 128, 2, 1, 16>, Config<128, 128, 3, 1, 0>, Config<128, 96, 3, 1, 0>,
                    Config<192, 64, 2, 1, 0>, Config<192, 64, 4, 1, 0>, Config<128, 176, 2, 2, 0>,
                    Config<128, 128, 2, 2, 0>, Config<128, 128, 3, 2, 0>,
                    // Unsupported configurations, with their reasons; no kernel is compiled for
                    // them.
                    Config<128, 176, 3, 1, 0>, Config<128, 192, 2, 1, 0>, Config<192, 96, 2, 1, 0>,
                    Config<192, 64, 2, 2, 0>>{});
}

}  // namespace cookbook::autotuning
