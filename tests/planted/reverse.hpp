// SPDX-License-Identifier: MIT
// A small problem for planted bugs: out[r][c] = 2 * in[r][cols - 1 - c], one block per row.
#pragma once

#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::planted {

struct Problem {
  std::int64_t rows, cols, in_pitch, out_pitch;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.at(1) > 256) throw BadSize("reverse takes at most 256 columns");
    return {size.at(0), size.at(1), size.at(1) + variant.of("in").extra_pitch,
            size.at(1) + variant.of("out").extra_pitch};
  }
  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, rows, cols, in_pitch, Role::input},
            {"out", DType::f32, rows, cols, out_pitch, Role::output}};
  }
  double bytes() const { return 8.0 * static_cast<double>(rows * cols); }
  double flops() const { return 0; }
  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    for (std::int64_t c = 0; c < cols; ++c) {
      value[c] = 2 * tensors["in"].at(row, cols - 1 - c);
      bound[c] = 0;
    }
  }
};

struct Buffers {
  float* in;
  float* out;
  static Buffers bind(const DevicePointers& at) {
    return {at.get<float>("in"), at.get<float>("out")};
  }
};

using Level = LevelOf<Problem, Buffers>;

enum class Bug {
  none,
  missing_barrier,
  missing_warp_barrier,
  race_between_two_warps,
  off_by_one,
  unwritten_tail,
  stale_output,
  nan_produced,
  nan_lost,
  nan_spread,
  wrong_at_one_size,
  padding_written,
  input_changed,
  two_inputs_negated,
  out_of_bounds_store,
  out_of_bounds_load,
  uninitialised_shared,
  differs_between_runs,
  barrier_not_reached_by_all,
  too_many_threads,
  sign_of_zero_later,
  out_of_bounds_later,
  input_padding_changed_later,
};

/// A level with one bug; `call` counts how often it ran, for bugs that depend on it.
template <Bug kBug>
struct Reverse : Level {
  static constexpr LevelText text{.name = "reverse", .changed = "one planted bug"};
  static inline int calls = 0;
  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), shared_loads().conflict_free()};
  }
  static void run(const Plan& plan, Stream stream);  // reverse.cu
};

template <Bug kBug>
Ladder reverse_ladder() {
  Reverse<kBug>::calls = 0;
  Ladder ladder = ladder_over<Problem>("reverse", "reverse rows", {"rows", "cols"});
  ladder.gpu_size = ladder.check_size = ladder.trace_size = {4, 64};
  ladder.test_sizes = {{1, 1}, {3, 33}, {4, 64}, {2, 200}};
  ladder.levels = rows<Reverse<kBug>>();
  return ladder;
}

}  // namespace cookbook::planted
