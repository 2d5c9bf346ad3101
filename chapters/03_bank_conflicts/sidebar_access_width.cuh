// SPDX-License-Identifier: MIT
// Sidebar: which warp-wide shared-memory accesses conflict? Two warps exchange values through
// shared memory, 4, 8 or 16 bytes per lane, with a stride of 1, 2, 3 or 32 words.
#pragma once

#include <algorithm>

#include "chapters/03_bank_conflicts/problem.hpp"
#include "common/device/vector.cuh"

namespace cookbook::transpose {

constexpr int kExchanges = 32;  // even: every value returns to its thread

/// out[i] = in[i], through kExchanges stores to and loads from shared memory.
struct ExchangeProblem {
  std::int64_t n = 0;  // floats, a multiple of 4

  static ExchangeProblem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0 || size[0] % 4 != 0) {
      throw BadSize("exchange takes one size, a multiple of 4");
    }
    return {size[0]};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, n / 4, 4, 4, Role::input},
            {"out", DType::f32, n / 4, 4, 4, Role::output}};
  }

  double bytes() const {
    return 2.0 * 4.0 * kExchanges * static_cast<double>(n);
  }  // through shared memory
  double flops() const { return 0; }

  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    for (std::int64_t col = 0; col < 4; ++col) {
      value[col] = tensors["in"].at(row, col);
      bound[col] = 0;
    }
  }
};

using ExchangeLevel = LevelOf<ExchangeProblem, Buffers>;

template <int kWidthValue, int kStrideValue>
struct ExchangeConfig {
  static constexpr int kThreads = 256;
  static constexpr int kWidth = kWidthValue;    // floats per access
  static constexpr int kStride = kStrideValue;  // stride from lane to lane, in accesses
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    exchange(const float* __restrict__ in, float* __restrict__ out, std::int64_t n) {
  using Word = Pack<float, C::kWidth>;
  __shared__ Word slots[C::kThreads * C::kStride];
  const int mine = threadIdx.x * C::kStride;
  const int partner = (threadIdx.x ^ 32) * C::kStride;  // the same lane of the neighbouring warp

  const std::int64_t first = (std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x) * C::kWidth;
  Word value = {};
#pragma unroll
  for (int k = 0; k < C::kWidth; ++k) {
    if (first + k < n) value[k] = in[first + k];
  }
#pragma unroll 1
  for (int round = 0; round < kExchanges; ++round) {
    store_vector(&slots[mine], value);
    __syncthreads();  // the partner has stored
    value = load_vector<Word>(&slots[partner]);
    __syncthreads();  // the partner has loaded: its words may be overwritten
  }
#pragma unroll
  for (int k = 0; k < C::kWidth; ++k) {
    if (first + k < n) out[first + k] = value[k];
  }
}

template <int kWidth, int kStride>
struct Exchange : ExchangeLevel {
  using Config = ExchangeConfig<kWidth, kStride>;
  static constexpr LevelText text{
      .name = "exchange",
      .changed = "width of an access, distance between lanes",
      .expect = "wavefronts = words per lane x lanes that share a bank",
  };

  /// Lanes whose first word is in the same bank, of those that one wavefront could otherwise serve.
  static constexpr int conflict_degree() {
    const int lanes = 32 / kWidth;  // lanes whose words fill the 32 banks
    int banks_apart = kWidth * kStride % 32;
    int degree = 1;  // the largest power of two that divides both, over the width
    while (banks_apart % 2 == 0 && degree < 32) {
      banks_apart = banks_apart == 0 ? 0 : banks_apart / 2;
      degree *= 2;
    }
    return std::min(degree / kWidth, lanes);
  }

  static Claims claims(const Problem&) {
    const double wavefronts = kWidth * conflict_degree();
    Claims claims = {shared_loads().wavefronts_per_request(wavefronts),
                     shared_stores().wavefronts_per_request(wavefronts)};
    if (conflict_degree() == 1) claims.push_back(shared_loads().conflict_free());
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t per_block = Config::kThreads * kWidth;
    const auto blocks = static_cast<unsigned>((n + per_block - 1) / per_block);
    launch(exchange<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, n);
  }
};

}  // namespace cookbook::transpose
