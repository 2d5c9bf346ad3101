// SPDX-License-Identifier: MIT
// A small problem for planted bugs: out[r][c] = 2 * in[r][cols - 1 - c], one block a row.
#pragma once

#include <limits>

#include "common/device/cuda.cuh"
#include "common/device/sync.cuh"
#include "common/harness/level.hpp"

namespace cookbook::planted {

struct Problem {
  std::int64_t rows, cols, in_pitch, out_pitch;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.at(1) > 256) throw BadSize("reverse takes at most 256 columns");
    return {size.at(0), size.at(1), size.at(1) + variant.extra_pitch,
            size.at(1) + variant.extra_pitch};
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

template <Bug kBug>
__global__ void reverse(float* in, float* out, int cols, int in_pitch, int out_pitch, int call) {
  __shared__ float tile[512];
  const int c = threadIdx.x;
  float* from = in + blockIdx.x * static_cast<long long>(in_pitch);
  float* to = out + blockIdx.x * static_cast<long long>(out_pitch);
  if (kBug == Bug::stale_output && call > 0) return;
  if (kBug == Bug::uninitialised_shared) {
    if (c < cols - 1) tile[c] = from[c];
  } else if (c < cols) {
    tile[c] = from[c];
  }
  if (kBug == Bug::missing_barrier) {
  } else if (kBug == Bug::missing_warp_barrier) {
    // Right for rows of up to 32 if the warp ran in step - which nothing promises.
  } else if (kBug == Bug::barrier_not_reached_by_all) {
    if (c < 32) named_barrier_sync(1, 64);  // a second warp never comes
  } else {
    __syncthreads();
  }
  if (kBug == Bug::race_between_two_warps && c == 40) tile[cols - 1] += 0.0f;
  int source = cols - 1 - c;
  if (kBug == Bug::off_by_one) source = (cols - c) % cols;
  if (kBug == Bug::wrong_at_one_size && cols == 33) source = c;
  const int limit = kBug == Bug::unwritten_tail ? cols / 32 * 32 : cols;
  if (c < limit) {
    float value = 2 * tile[source];
    if (kBug == Bug::nan_produced && c == 7) value = value * 0.0f / (value * 0.0f);
    // Both right wherever no input is NaN.
    if (kBug == Bug::nan_lost && value != value) value = 0;
    if (kBug == Bug::nan_spread && source > 0 && tile[source - 1] != tile[source - 1]) {
      value = tile[source - 1];
    }
    if (kBug == Bug::differs_between_runs && c == 3) value += static_cast<float>(call);
    if (kBug == Bug::sign_of_zero_later && call > 0 && value == 0) value = -value;
    if (kBug == Bug::out_of_bounds_load && c == 0) value += 0 * in[gridDim.x * in_pitch + 1];
    to[c] = value;
  }
  if (kBug == Bug::padding_written && c == 0 && blockIdx.x == 0) to[cols] = 1;
  if (kBug == Bug::input_changed && c == 0) from[0] += 1;
  if (kBug == Bug::two_inputs_negated && c < 2) from[c] = -from[c];
  // In one run of many, and such that every output stays right.
  if (kBug == Bug::input_padding_changed_later && call == 3 && c == 0 && blockIdx.x == 0) {
    from[cols] = 0;
  }
  if (kBug == Bug::out_of_bounds_later && call == 3 && c == 0) in[-1] = 0;
  if (kBug == Bug::out_of_bounds_store && c == 0 && blockIdx.x == gridDim.x - 1) {
    to[out_pitch + 2] = 1;
  }
}

/// A level with one bug; `call` counts how often it ran, for bugs that depend on it.
template <Bug kBug>
struct Reverse : Level {
  static constexpr const char* name = "reverse";
  static constexpr const char* changed = "one planted bug";
  static constexpr const char* expect = "to be caught";
  static constexpr const char* cost = "none";
  static constexpr const char* source = __FILE__;
  static inline int calls = 0;
  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), shared_loads().conflict_free()};
  }
  static void run(const Plan& plan, Stream stream) {
    const Problem& p = plan.problem;
    const unsigned threads = kBug == Bug::too_many_threads ? 2048 : 256;
    launch(reverse<kBug>, {dim3(static_cast<unsigned>(p.rows)), dim3(threads)}, stream,
           plan.buffers.in, plan.buffers.out, static_cast<int>(p.cols),
           static_cast<int>(p.in_pitch), static_cast<int>(p.out_pitch), calls++);
  }
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
