// SPDX-License-Identifier: MIT
// The four spaces of this chapter.
#pragma once

#include <vector>

#include "chapters/11_autotuning/tuner/space.hpp"

namespace cookbook::autotuning {

const tune::Space& rmsnorm_space();
const tune::Space& rope_space();
const tune::Space& gemm_space();
const tune::Space& attention_space();
inline std::vector<const tune::Space*> all_spaces() {
  return {&rmsnorm_space(), &rope_space(), &gemm_space(), &attention_space()};
}

// Configurations and models of the two large kernels, each in a file of its own: they are compiled
// beside the others, and only there.
void add_gemm(tune::Space& space);
void add_attention(tune::Space& space);

}  // namespace cookbook::autotuning
