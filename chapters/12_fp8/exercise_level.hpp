// SPDX-License-Identifier: MIT
// What the exercises share: level 3 with another Config, right at every size.
#pragma once

#include "chapters/12_fp8/level_3_scales_by_tma.cuh"

namespace cookbook::fp8 {

/// Level 0's kernel computes what TMA cannot load.
template <class C>
struct ExerciseLevel : scales_by_tma::LevelOn<C> {
  using Base = scales_by_tma::LevelOn<C>;

  static Claims claims(const Problem& p) {
    return {tma_loads("scale_a").requests(Base::boxes_of_a(p)),
            global_loads("scale_a").requests(0)};
  }
  static Support supports(const Problem&, const DeviceInfo& device) {
    return device.cc() == 90 ? Support::yes() : Support::no("needs sm_90a (wgmma)");
  }
  static TmaPlan prepare(const Problem& p, const Buffers& at) {
    if (Base::supports(p, device_info())) return Base::prepare(p, at);
    TmaPlan plan{p, at};
    plan.fallback = true;
    return plan;
  }
};

}  // namespace cookbook::fp8
