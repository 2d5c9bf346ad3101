// SPDX-License-Identifier: MIT
// The kernels of rows.hpp.
#include "tests/planted/rows.hpp"

#include <algorithm>

#include "tests/planted/every_bug.hpp"

namespace cookbook::planted::rows_copy {
namespace {

struct Arguments {
  const float* in;
  float* out;
  std::int64_t rows, cols, in_pitch, out_pitch;
  bool vectors;
  int* flag;
  float* kept;  // as many floats as rows
};

template <Bug kBug>
__device__ std::int64_t offset(std::int64_t row, std::int64_t pitch) {
  if (kBug == Bug::row_in_int) return static_cast<int>(row) * static_cast<int>(pitch);
  if (kBug == Bug::row_in_unsigned) {
    return static_cast<unsigned>(row) * static_cast<unsigned>(pitch);
  }
  return row * pitch;
}

template <Bug kBug>
__global__ void copy_rows(Arguments a) {
  const int lane = static_cast<int>(threadIdx.x);
  std::int64_t end = a.rows;
  if (kBug == Bug::remainder_of_sms && a.rows > gridDim.x) end = a.rows / gridDim.x * gridDim.x;
  for (std::int64_t row = blockIdx.x; row < end; row += gridDim.x) {
    const float* in = a.in + offset<kBug>(row, a.in_pitch);
    float* out = a.out + offset<kBug>(row, a.out_pitch);
    if (kBug == Bug::load_past_the_end && lane == 0 && row == a.rows - 1) {
      if (in[a.in_pitch] == 1e30f) out[0] = 0;
    }
    if (kBug == Bug::flag_stays && a.flag[0] != 0 && row == 1) continue;
    std::int64_t first = 0;
    if (a.vectors) {
      for (std::int64_t i = lane; i < a.cols / 4; i += 32) {
        reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(in)[i];
      }
      first = a.cols / 4 * 4;
    }
    const bool is_short = kBug == Bug::short_tail && a.vectors;
    std::int64_t limit = is_short ? a.cols - a.cols % 2 : a.cols;
    if (kBug == Bug::no_bounds_check || (kBug == Bug::padding_copied && row + 1 < a.rows)) {
      limit = (a.cols + 31) / 32 * 32;
    }
    for (std::int64_t c = first + lane; c < limit; c += 32) out[c] = in[c];
    if (kBug == Bug::keeps_first_inputs && lane == 0) {
      if (a.flag[0] == 0) a.kept[row] = in[0];
      out[0] = a.kept[row];
    }
  }
}

template <class T>
__global__ void set_to(T* at, T value) {
  at[0] = value;
}

bool is_aligned(const float* base) { return reinterpret_cast<std::uintptr_t>(base) % 16 == 0; }

}  // namespace

template <Bug kBug>
void CopyRows<kBug>::run(const Plan& plan, Stream stream) {
  const Problem& p = plan.problem;
  const bool out_pitch = kBug == Bug::vectors_without_out || p.out_pitch % 4 == 0;
  const bool out_base = kBug == Bug::vectors_without_base || is_aligned(plan.buffers.out);
  const bool vectors = p.in_pitch % 4 == 0 && is_aligned(plan.buffers.in) && out_pitch && out_base;
  const Arguments arguments{plan.buffers.in,
                            plan.buffers.out,
                            p.rows,
                            p.cols,
                            p.in_pitch,
                            p.out_pitch,
                            vectors,
                            plan.flag.template as<int>(),
                            plan.kept.template as<float>()};
  const auto blocks = std::min<std::int64_t>(p.rows, device_info().sm_count);
  launch(copy_rows<kBug>, {dim3(static_cast<unsigned>(blocks)), dim3(32)}, stream, arguments);
  launch(set_to<int>, {dim3(1), dim3(1)}, stream, plan.flag.template as<int>(), 1);
}

auto all_rows = every_bug<Bug, Bug::refuses_odd_pitch, CopyRows>();

}  // namespace cookbook::planted::rows_copy
