// SPDX-License-Identifier: MIT
// Example 2, RoPE: memory-bound and in place. The space: threads per block, and the number of heads
// that a thread rotates with the cosines and sines in its registers.
#pragma once

#include <algorithm>

#include "chapters/11_autotuning/rope_problem.hpp"
#include "chapters/11_autotuning/tuner/space.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/math.cuh"
#include "common/device/vector.cuh"

namespace cookbook::rope {

template <int kThreadCount, int kHeadCount>
struct Config {
  static constexpr int kThreads = kThreadCount;
  static constexpr int kHeads = kHeadCount;  // heads of one token per thread

  static tune::Parameters parameters() { return {{"threads", kThreads}, {"heads", kHeads}}; }
  static constexpr bool kLegal = kThreads <= 1024;
  static std::string why_illegal() {
    return tune::with_commas(kThreads) + " threads > 1,024 per block";
  }
};

/// A thread rotates kPack neighbouring pairs of kHeads heads. It reads its elements before it
/// writes them, and no other thread accesses them. So `out` may be `in`, and neither is
/// __restrict__.
template <class C, int kPack>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const bf16* in, bf16* out, const float* __restrict__ cos, const float* __restrict__ sin,
           Shape shape) {
  const std::int64_t packs = shape.half / kPack;
  const std::int64_t groups = ceil_div(shape.heads, C::kHeads);
  const std::int64_t index = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t token = index / (groups * packs);
  if (token >= shape.tokens) return;
  const std::int64_t first = index / packs % groups * C::kHeads;  // head
  const std::int64_t pair = index % packs * kPack;

  constexpr int kWords = kPack < 4 ? kPack : 4;  // floats per access to the tables
  float c[kPack], s[kPack];
#pragma unroll
  for (int j = 0; j < kPack; j += kWords) {
    const std::int64_t at = token * shape.table_pitch + pair + j;
    const auto some_c = load_vector<Pack<float, kWords>>(cos + at);
    const auto some_s = load_vector<Pack<float, kWords>>(sin + at);
#pragma unroll
    for (int k = 0; k < kWords; ++k) c[j + k] = some_c[k], s[j + k] = some_s[k];
  }
#pragma unroll
  for (int h = 0; h < C::kHeads; ++h) {
    if (first + h >= shape.heads) break;
    const std::int64_t at = (token * shape.heads + first + h) * shape.pitch + pair;
    auto low = load_vector<Pack<bf16, kPack>>(in + at);
    auto high = load_vector<Pack<bf16, kPack>>(in + at + shape.half);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float a = to_float(low[j]), b = to_float(high[j]);
      low[j] = from_float<bf16>(a * c[j] - b * s[j]);
      high[j] = from_float<bf16>(b * c[j] + a * s[j]);
    }
    store_vector(out + at, low);
    store_vector(out + at + shape.half, high);
  }
}

template <class C, bool kSplit>
struct TunedT : LevelOf<ProblemT<kSplit>, BuffersT<kSplit>> {
  using Problem = ProblemT<kSplit>;
  using Plan = typename LevelOf<Problem, BuffersT<kSplit>>::Plan;
  static constexpr LevelText text{
      .name = "rope",
      .changed = "one configuration of the space",
  };

  static Claims claims(const Problem&) {
    const char* const in = kSplit ? "in" : "x";
    const char* const out = kSplit ? "out" : "x";
    return {global_loads(in).coalesced(), global_loads(in).sectors_per_request(16),
            global_stores(out).coalesced(), global_stores(out).sectors_per_request(16)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const auto& at = plan.buffers;
    if (shape.pairs() == 0) return;
    const auto aligned = [](const void* p) {
      return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
    };
    const bool wide = aligned(at.in) && aligned(at.out) && aligned(at.cos) && aligned(at.sin) &&
                      shape.half % 8 == 0 && shape.pitch % 8 == 0 && shape.table_pitch % 4 == 0;
    const std::int64_t threads =
        shape.tokens * ceil_div(shape.heads, C::kHeads) * (wide ? shape.half / 8 : shape.half);
    const LaunchConfig config{dim3(static_cast<unsigned>(ceil_div(threads, C::kThreads))),
                              dim3(C::kThreads)};
    launch(wide ? kernel<C, 8> : kernel<C, 1>, config, stream, at.in, at.out, at.cos, at.sin,
           shape);
  }
};

template <class C>
using InPlace = TunedT<C, false>;
template <class C>
using Split = TunedT<C, true>;  // what a search runs

/// More heads per thread: fewer bytes of tables, but fewer threads to hide latency.
inline double predict(const tune::Parameters& parameters, const Size& size,
                      const DeviceInfo& device) {
  const double heads = double(tune::value_of(parameters, "heads"));
  const double block = double(tune::value_of(parameters, "threads"));
  const double tokens = double(size[0]), half = double(size[2]) / 2;
  const double threads = tokens * std::ceil(double(size[1]) / heads) * half / 8;
  const double bytes = 8.0 * tokens * double(size[1]) * half + 64.0 * threads;  // x, then tables
  const double resident = std::min(threads / device.sm_count, 2048.0 / std::max(1.0, heads / 4));
  const double bandwidth = std::min(1.0, resident * 32 * std::min(heads, 4.0) / 32768);
  const double tail =
      std::ceil(threads / block / device.sm_count) * block * device.sm_count / threads;
  return bytes / bandwidth / device.sm_count / 1e3 * std::min(tail, 2.0);
}

}  // namespace cookbook::rope
