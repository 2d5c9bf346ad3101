// SPDX-License-Identifier: MIT
// The kernels of small_types.hpp.
#include "tests/planted/small_types.hpp"

#include "tests/planted/every_bug.hpp"

namespace cookbook::planted::small_types {
namespace {

constexpr int kThreads = 128;

template <Bug kBug>
__global__ void scaled(Buffers at, float scale, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= (kBug == Bug::unwritten_tail ? n / 32 * 32 : n)) return;
  const std::int8_t from = at.a[i];
  const int a = kBug == Bug::read_as_unsigned ? static_cast<std::uint8_t>(from) : from;
  float y = static_cast<float>(a) * static_cast<float>(at.b[i]);
  if (kBug != Bug::scale_forgotten) y *= scale;
  at.wide[i] = fp8_e5m2(y);
  int whole = kBug == Bug::truncates ? static_cast<int>(y) : __float2int_rn(y);  // of NaN: 0
  if (kBug != Bug::wraps) whole = min(max(whole, -128), 127);
  at.whole[i] = static_cast<std::int8_t>(whole);
}

}  // namespace

template <Bug kBug>
void Scaled<kBug>::run(const Plan& plan, Stream stream) {
  launch(scaled<kBug>,
         {dim3(static_cast<unsigned>((plan.problem.n + kThreads - 1) / kThreads)), dim3(kThreads)},
         stream, plan.buffers, plan.problem.scale, plan.problem.n);
}

auto all_small_types = every_bug<Bug, Bug::scale_forgotten, Scaled>();

}  // namespace cookbook::planted::small_types
