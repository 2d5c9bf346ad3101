// SPDX-License-Identifier: MIT
// A small problem for planted bugs: out[r][c] = 2 * in[r][cols - 1 - c], one block per row.
#pragma once

#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::planted {

/// A tensor `in` and a tensor `out` of as many rows and columns.
struct Rows {
  std::int64_t rows, cols, in_pitch, out_pitch;

  static Rows make(const Size& size, const Variant& variant) {
    return {size.at(0), size.at(1), size.at(1) + variant.of("in").extra_pitch,
            size.at(1) + variant.of("out").extra_pitch};
  }
  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, rows, cols, in_pitch, Role::input},
            {"out", DType::f32, rows, cols, out_pitch, Role::output}};
  }
  double bytes() const { return 8.0 * static_cast<double>(rows * cols); }
  double flops() const { return 0; }
};

struct Problem : Rows {
  static Problem make(const Size& size, const Variant& variant) {
    if (size.at(1) > 256) throw BadSize("reverse takes at most 256 columns");
    return {Rows::make(size, variant)};
  }
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

#define COOKBOOK_REVERSE_BUGS(BUG) \
  BUG(none)                        \
  BUG(missing_barrier)             \
  BUG(missing_warp_barrier)        \
  BUG(race_between_two_warps)      \
  BUG(off_by_one)                  \
  BUG(unwritten_tail)              \
  BUG(stale_output)                \
  BUG(nan_produced)                \
  BUG(nan_lost)                    \
  BUG(nan_spread)                  \
  BUG(wrong_at_one_size)           \
  BUG(padding_written)             \
  BUG(input_changed)               \
  BUG(two_inputs_negated)          \
  BUG(out_of_bounds_store)         \
  BUG(out_of_bounds_load)          \
  BUG(uninitialised_shared)        \
  BUG(differs_between_runs)        \
  BUG(barrier_not_reached_by_all)  \
  BUG(too_many_threads)            \
  BUG(sign_of_zero_later)          \
  BUG(out_of_bounds_later)         \
  BUG(input_padding_changed_later)

#define COOKBOOK_BUG(NAME) NAME,
enum class Bug { COOKBOOK_REVERSE_BUGS(COOKBOOK_BUG) };
#undef COOKBOOK_BUG

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
