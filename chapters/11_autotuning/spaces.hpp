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

// The GEMM's configurations, in a file of their own: they are compiled beside the others.
std::vector<tune::Candidate> gemm_group();
/// See gemm.cuh: declared here so that only that file compiles the GEMM.
double predict_gemm(const tune::Parameters& parameters, const Size& size, const DeviceInfo& device);
// Attention's, and its model (attention.cuh), likewise.
std::vector<tune::Candidate> attention_group();
double predict_attention(const tune::Parameters& parameters, const Size& size,
                         const DeviceInfo& device);

}  // namespace cookbook::autotuning
