// SPDX-License-Identifier: MIT
// The kernels of limits.hpp.
#include "tests/planted/limits.hpp"

namespace cookbook::planted {

__global__ void wrong_in_places(const float* in, float* out, int cols, int pitch, Wrong wrong) {
  const int row = blockIdx.x, c = threadIdx.x;
  if (c >= cols) return;
  float value = 2 * in[row * static_cast<long long>(pitch) + cols - 1 - c];
  if (row >= wrong.first_row && row < wrong.end_row && row % 128 >= wrong.first_of_tile &&
      row % 128 < wrong.end_of_tile && c >= wrong.first_col && c < wrong.end_col) {
    if (wrong.unwritten) return;
    value += 1;
  }
  out[row * static_cast<long long>(pitch) + c] = value;
}

template <class P>
void WrongInPlaces<P>::run(const Plan& plan, Stream stream) {
  const Problem& p = plan.problem;
  launch(wrong_in_places, {dim3(static_cast<unsigned>(p.rows)), dim3(64)}, stream, plan.buffers.in,
         plan.buffers.out, static_cast<int>(p.cols), static_cast<int>(p.in_pitch), wrong);
}

template struct WrongInPlaces<Costly>;
template struct WrongInPlaces<Problem>;

__global__ void write_four(float* out, float a, float b, float c, float d, int first) {
  const float values[4] = {a, b, c, d};
  const int i = threadIdx.x;
  if (i >= first) out[i] = values[i];
}

void FourValues::run(const Plan& plan, Stream stream) {
  launch(write_four, {dim3(1), dim3(4)}, stream, plan.buffers.out, values[0], values[1], values[2],
         values[3], first);
}

}  // namespace cookbook::planted
