// SPDX-License-Identifier: MIT
// Level 4: 16 bytes per access, and one rescaling per access instead of one per element.
#pragma once

#include "chapters/09_online_softmax/partial.cuh"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/row_io.cuh"

namespace cookbook::softmax {

/// Elements of a row before its first 16-byte boundary; all of them if `in` and `out` do not reach
/// a boundary at the same element.
template <class T>
__device__ __forceinline__ int elements_before_boundary(const T* in, const T* out, int cols) {
  const auto from = reinterpret_cast<std::uintptr_t>(in) % 16;
  const auto to = reinterpret_cast<std::uintptr_t>(out) % 16;
  return from != to ? cols : min(cols, static_cast<int>((16 - from) % 16 / sizeof(T)));
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    vectorised_softmax(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                       Shape shape) {
  using T = typename C::T;
  constexpr int kWarps = C::kThreads / kWarpSize, kPack = kPackOf<T>;
  const std::int64_t row = blockIdx.x;
  const int thread = threadIdx.x;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  __shared__ uint2 shared[kWarps];  // (max, sum) of each warp

  const int head = elements_before_boundary(in, out, static_cast<int>(shape.cols));
  const int vectors = (static_cast<int>(shape.cols) - head) / kPack;
  const int singles = static_cast<int>(shape.cols) - vectors * kPack;  // head and tail

  MaxSum part;
  // [quote vectorised]
  for (int i = thread; i < vectors; i += C::kThreads) {
    float x[kPack];
    load_pack(x, in + head + i * kPack);
    add(part, x);
  }
  // [end quote]
  for (int i = thread; i < singles; i += C::kThreads) {
    add(part, as_float(in[i < head ? i : i + vectors * kPack]));
  }
  part = merge_lanes(part);
  if (lane_idx() == 0) store_vector(&shared[warp_idx()], part);
  __syncthreads();  // every warp's pair is in the table: the only barrier
  part = merge_lanes<kWarps>(load_vector<MaxSum>(&shared[lane_idx() % kWarps]));

  const float scale = 1 / part.sum;
  for (int i = thread; i < vectors; i += C::kThreads) {
    float x[kPack];
    load_pack(x, in + head + i * kPack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[j] = exponential(x[j] - part.max) * scale;
    store_pack(out + head + i * kPack, x);
  }
  for (int i = thread; i < singles; i += C::kThreads) {
    const int col = i < head ? i : i + vectors * kPack;
    out[col] = rounded<T>(exponential(as_float(in[col]) - part.max) * scale);
  }
}

template <class T>
struct Vectorised : Level<T> {
  using Config = BlockConfig<T>;
  static constexpr LevelText text{
      .name = "vectorised",
      .changed = "16-byte accesses; one rescaling per access, not per element",
      .expect = "a quarter (bf16: an eighth) of the requests, that many times the bytes in flight",
      .cost = "single elements before the first 16-byte boundary",
  };

  static Claims claims(const Problem<T>& p) {
    const double accesses = static_cast<double>(p.shape.elements()) / kPackOf<T> / 32;
    return {global_loads("in").coalesced(),
            global_stores("out").coalesced(),
            global_loads("in").bytes(2 * pass_bytes<T>(p.shape)),
            global_loads("in").requests(2 * accesses),
            global_stores("out").requests(accesses),
            faster_than_previous(1.0)};
  }

  static void run(const PlanOf<T>& plan, Stream stream) {
    launch_rows<T>(vectorised_softmax<Config>, plan, stream, Config::kThreads);
  }
};

}  // namespace cookbook::softmax
