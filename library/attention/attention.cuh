// SPDX-License-Identifier: MIT
// Attention: for any lengths, mask and rows the kernel that choose.hpp ranks first among those that
// support them.
#pragma once

#include "chapters/10_flash_attention/level_1_tiled.cuh"
#include "chapters/10_flash_attention/level_2_tensor_cores.cuh"
#include "common/harness/contract/c_interface.hpp"
#include "library/attention/choose.hpp"
#include "library/attention/decode.cuh"
#include "library/attention/prefill.cuh"

namespace cookbook::attention {

struct Attention : Level {
  static constexpr LevelText text{
      .name = "attention",
      .changed = "prefill, decode, tensor_cores or tiled, by shape, layout and GPU",
      .expect = "the fastest of them",
      .cost = "an estimate on the host per plan",
  };
  struct Plan {
    PlannedRun run;
  };
  /// Calls f(L{}) with the level that computes the problem; false: none supports it.
  template <class F>
  static bool choose(const Problem& p, const DeviceInfo& device, const F& f) {
    const auto take = [&](auto level) {
      if (!decltype(level)::supports(p, device)) return false;
      f(level);
      return true;
    };
    for (const auto& estimate : ranked(p, device.sm_count)) {
      switch (estimate.candidate->kernel) {
        case Kernel::prefill:
          if (take(Prefill{})) return true;
          break;
        case Kernel::decode:
          if (take(Decode{})) return true;
          break;
        case Kernel::tensor_cores:
          if (take(TensorCores{})) return true;
          break;
        case Kernel::tiled:
          if (take(Tiled{})) return true;
      }
    }
    return false;
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return choose(p, device, [](auto) {}) ? Support::yes() : Tiled::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan;
    choose(p, device_info(),
           [&](auto level) { plan.run = prepare_level<decltype(level), Problem, Buffers>(p, at); });
    return plan;
  }
  static Claims claims(const Problem& p) {
    Claims claims;
    choose(p, device_info(), [&](auto level) { claims = mechanism(decltype(level)::claims(p)); });
    return claims;
  }
  static void run(const Plan& plan, Stream stream) { plan.run(stream); }
};

}  // namespace cookbook::attention
