// SPDX-License-Identifier: MIT
// Attention: for any lengths, mask and rows the kernel that choose.hpp ranks first among those that
// support them.
#pragma once

#include "chapters/10_flash_attention/decode_level_5_eight_warps.cuh"
#include "chapters/10_flash_attention/level_15_max_of_bits.cuh"
#include "chapters/10_flash_attention/level_2_tiled.cuh"
#include "chapters/10_flash_attention/level_3_tensor_cores.cuh"
#include "common/harness/contract/c_interface.hpp"
#include "library/attention/choose.hpp"

namespace cookbook::attention {

struct Attention : Level {
  static constexpr LevelText text{
      .name = "attention",
      .changed = "max_of_bits, eight_warps, tensor_cores or tiled, by shape, layout and GPU",
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
        case Kernel::max_of_bits:
          if (take(MaxOfBits{})) return true;
          break;
        case Kernel::eight_warps:
          if (take(EightWarps{})) return true;
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
  static void run(const Plan& plan, Stream stream) { plan.run(stream); }
};

}  // namespace cookbook::attention
