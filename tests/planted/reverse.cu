// SPDX-License-Identifier: MIT
// The kernels of reverse.hpp.
#include "tests/planted/reverse.hpp"

#include "common/device/sync.cuh"
#include "tests/planted/every_bug.hpp"

namespace cookbook::planted {

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

template <Bug kBug>
void Reverse<kBug>::run(const Plan& plan, Stream stream) {
  const Problem& p = plan.problem;
  const unsigned threads = kBug == Bug::too_many_threads ? 2048 : 256;
  launch(reverse<kBug>, {dim3(static_cast<unsigned>(p.rows)), dim3(threads)}, stream,
         plan.buffers.in, plan.buffers.out, static_cast<int>(p.cols), static_cast<int>(p.in_pitch),
         static_cast<int>(p.out_pitch), calls++);
}

auto all_reverse = every_bug<Bug, Bug::input_padding_changed_later, Reverse>();

}  // namespace cookbook::planted
