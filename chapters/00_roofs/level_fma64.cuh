// SPDX-License-Identifier: MIT
// fp64 fused multiply-adds on registers: level_fma.cuh's kernel, with half as many chains of twice
// the width.
#pragma once

#include "chapters/00_roofs/level_fma.cuh"

namespace cookbook::roofs {

struct Fma64 : FmaLevel<Fma64Problem> {
  static constexpr LevelText text{
      .name = "fma64",
      .changed = "8 independent fp64 FMA chains per thread, no memory",
      .expect = "half of fp32 on A100, H100 and H200; 1/32 or 1/64 on most other GPUs",
      .cost = "25 registers",
  };
};

}  // namespace cookbook::roofs
