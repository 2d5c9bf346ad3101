// SPDX-License-Identifier: MIT
// Sidebar: constant memory delivers one word at a time to a whole warp. Requests of lanes for
// different words are served one after the other.
#pragma once

#include <cmath>

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

constexpr int kKnots = 32;

/// The knots in constant memory. A thread's result does not depend on the order in which it reads
/// them.
__constant__ float constant_knots[kKnots] = {
    -4.00f, -3.75f, -3.50f, -3.25f, -3.00f, -2.75f, -2.50f, -2.25f, -2.00f, -1.75f, -1.50f,
    -1.25f, -1.00f, -0.75f, -0.50f, -0.25f, 0.00f,  0.25f,  0.50f,  0.75f,  1.00f,  1.25f,
    1.50f,  1.75f,  2.00f,  2.25f,  2.50f,  2.75f,  3.00f,  3.25f,  3.50f,  3.75f};

/// out[i] = sum over k of |in[i] - knot[k]|, knot[k] = k / 4 - 4.
struct KnotProblem {
  std::int64_t n = 0;

  static KnotProblem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0) throw BadSize("knots take one size, n >= 0");
    return {size[0]};
  }

  std::vector<TensorSpec> tensors() const {
    TensorSpec knots{"knots", DType::f32, 1, kKnots, kKnots, Role::input};
    knots.fill = [](HostTensor& tensor, std::uint64_t) {
      for (std::int64_t k = 0; k < kKnots; ++k) tensor.set(0, k, static_cast<double>(k) / 4 - 4);
    };
    return {Problem{n}.vector("in", Role::input), knots, Problem{n}.vector("out", Role::output)};
  }

  double bytes() const { return 2.0 * 4.0 * static_cast<double>(n); }
  double flops() const { return 2.0 * kKnots * static_cast<double>(n); }

  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& in = tensors["in"];
    for (std::int64_t col = 0; col < in.spec.cols; ++col) {
      double sum = 0;
      for (int k = 0; k < kKnots; ++k) sum += std::fabs(in.at(row, col) - (k / 4.0 - 4));
      value[col] = sum;
      bound[col] = 4 * std::sqrt(double{kKnots}) * unit_roundoff(DType::f32) * sum;
    }
  }
};

struct KnotBuffers {
  const float* in = nullptr;
  const float* knots = nullptr;  // (kKnots), in global memory
  float* out = nullptr;

  static KnotBuffers bind(const DevicePointers& at) {
    return {at.get<const float>("in"), at.get<const float>("knots"), at.get<float>("out")};
  }
};

using KnotLevel = LevelOf<KnotProblem, KnotBuffers>;

struct ConstantBroadcast {  // all lanes ask for the same word
  static constexpr const char* name = "constant_broadcast";
  static __device__ __forceinline__ float knot(const float*, int k) { return constant_knots[k]; }
};
struct ConstantScattered {  // lane l starts at word l: 32 different words at each step
  static constexpr const char* name = "constant_scattered";
  static __device__ __forceinline__ float knot(const float*, int k) {
    return constant_knots[(k + threadIdx.x) % kKnots];
  }
};
struct GlobalBroadcast {
  static constexpr const char* name = "read_only_broadcast";
  static __device__ __forceinline__ float knot(const float* knots, int k) {
    return __ldg(knots + k);
  }
};
struct GlobalScattered {  // the 32 words fill one line, which L1 delivers at once
  static constexpr const char* name = "read_only_scattered";
  static __device__ __forceinline__ float knot(const float* knots, int k) {
    return __ldg(knots + (k + threadIdx.x) % kKnots);
  }
};

template <class TableValue>
struct KnotConfig {
  using Table = TableValue;
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerSm = 8;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    knot_distance(const float* __restrict__ in, const float* __restrict__ knots,
                  float* __restrict__ out, std::int64_t n) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
#pragma unroll 1
  for (std::int64_t i = thread; i < n; i += threads) {
    const float x = in[i];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kKnots; ++k) sum += fabsf(x - C::Table::knot(knots, k));
    out[i] = sum;
  }
}

template <class Table>
struct Knots : KnotLevel {
  using Config = KnotConfig<Table>;
  static constexpr LevelText text{
      .name = Table::name,
      .changed = "where the 32 knots lie and in which order lanes visit them",
      .expect = "constant memory: one word for all lanes is free, 32 different words take 32 turns",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const unsigned blocks = resident_blocks(ceil_div(n, Config::kThreads), Config::kBlocksPerSm);
    launch(knot_distance<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.knots, plan.buffers.out, n);
  }
};

}  // namespace cookbook::coalescing
