// SPDX-License-Identifier: MIT
// Solution: blocks count themselves, and the one that counts last adds the sums.
#pragma once

#include "capstones/gemv/level_4_split_k.cuh"

namespace cookbook::gemv {

struct MergeConfig : SplitKConfig {
  static __device__ __forceinline__ bool is_last(unsigned* counter, int /*split*/, int splits) {
    return atomicAdd(counter, 1u) + 1 == static_cast<unsigned>(splits);
  }
};

struct Merge : SplitK {
  static constexpr LevelText text{.name = "merge", .changed = "a counter"};
  static void run(const Plan& plan, Stream stream) { run_as<MergeConfig>(plan, stream); }
};

namespace wrong {

/// Two blocks may read the same count.
struct PlainConfig : SplitKConfig {
  static __device__ __forceinline__ bool is_last(unsigned* counter, int /*split*/, int splits) {
    return ++*counter == static_cast<unsigned>(splits);
  }
};

struct Merge : SplitK {
  static constexpr LevelText text{.name = "merge", .changed = "a counter that is no atomic"};
  static void run(const Plan& plan, Stream stream) { run_as<PlainConfig>(plan, stream); }
};

}  // namespace wrong
}  // namespace cookbook::gemv
