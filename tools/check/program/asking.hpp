// SPDX-License-Identifier: MIT
#pragma once

#include "common/backend/simt/language/kernel_call.hpp"
#include "common/device/cuda.cuh"

namespace cookbook::simt::program {

struct Answer {
  void* kernel = nullptr;     ///< An address in its code; null: what was called is no kernel.
  unsigned most_threads = 0;  ///< Of its __launch_bounds__; 0: it has none.
  uint3 cluster{};            ///< Of its __cluster_dims__; 0: it has none.
};

/// What the kernel that `call` calls says of itself. One caller at a time.
Answer ask(const KernelCall& call);

}  // namespace cookbook::simt::program
