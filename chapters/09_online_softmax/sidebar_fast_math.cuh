// SPDX-License-Identifier: MIT
// Sidebar: level 5 with other exponentials. The bytes are the same. Only the instructions differ,
// and the error, which the table's max_error column shows. sidebar_exp_error.cu measures the errors
// alone.
#pragma once

#include <stdexcept>

#include "chapters/09_online_softmax/level_5_on_chip.cuh"

namespace cookbook::softmax {

/// The C library's: about 1 unit in the last place, denormal results are kept.
struct AccurateExp {
  static constexpr const char* name = "expf";
  static constexpr const char* changed = "start: expf, the most exact in fp32";
  __device__ static float of(float x) { return expf(x); }
};

/// What -use_fast_math replaces expf by.
struct IntrinsicExp {
  static constexpr const char* name = "expf_intrinsic";
  static constexpr const char* changed = "__expf: one multiplication and ex2.approx";
  __device__ static float of(float x) { return __expf(x); }
};

/// ex2.approx.ftz on x log2(e): the same, and denormal results become 0.
struct FlushedExp {
  static constexpr const char* name = "ex2_approx_ftz";
  static constexpr const char* changed = "ex2.approx.ftz: no scaling for denormal results";
  __device__ static float of(float x) { return exponential(x); }
};

template <class Exp>
struct Exponential : OnChip<Softmax<float, Exp>> {
  static constexpr LevelText text{
      .name = Exp::name,
      .changed = Exp::changed,
      .expect = "the same time: a kernel that waits for memory has idle clocks for exactness",
      .cost = "an error of some units in the last place, see notes.md",
  };

  static Claims claims(const Problem<float>& p) {
    return {global_loads("in").coalesced(), global_loads("in").bytes(pass_bytes<float>(p.shape))};
  }

  using Client = Softmax<float, Exp>;
  static RowLaunch<Client> prepare(const Problem<float>& problem, const Buffers<float>& buffers) {
    using Config = OnChipConfig<Client, 128, Access::vectors>;
    RowLaunch<Client> plan{{problem, buffers}};
    if (!plan.aligned() || problem.shape.cols > Config::kCapacity) {
      throw std::invalid_argument("one kernel: rows on 16-byte boundaries, up to 4,096 columns");
    }
    plan.start = start_on_chip<Config>;
    return plan;
  }
};

}  // namespace cookbook::softmax
