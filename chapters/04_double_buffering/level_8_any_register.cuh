// SPDX-License-Identifier: MIT
// Level 8: the accumulators are not the registers that the epilogue stores, so the compiler may put
// each of them into the register bank that suits the FMAs. The kernel is level 6's, with another
// Config.
#pragma once

#include "chapters/04_double_buffering/level_7_block_order.cuh"

namespace cookbook::sgemm {

struct AnyRegisterConfig : BlockOrderConfig {
  /// C = alpha A B. Registers with even numbers are in one bank, those with odd numbers in the
  /// other, and an FMA must not read two operands from one bank in the same clock. A 16-byte load
  /// or store uses four registers in a row. So b[j] and, if it is stored as it is, acc[i][j] are
  /// both in the bank of j % 2: a conflict in nearly every FMA, unless the compiler moves one of
  /// them. It cannot know that alpha is 1. So it must multiply, and acc[i][j] is free to be in
  /// either bank.
  template <class C, bool kAligned>
  static __device__ __forceinline__ void store(const float (&acc)[C::kThreadM][C::kThreadN],
                                               float* c, int64_t ldc, int row0, int col0, int m,
                                               int n, float alpha) {
#pragma unroll
    for (int i = 0; i < C::kThreadM; ++i) {
      const int row = row0 + i / 4 * WarpLayout<C>::kStepM + i % 4;
#pragma unroll
      for (int j = 0; j < C::kThreadN; j += 4) {
        const int col = col0 + j / 4 * WarpLayout<C>::kStepN;
        if (row < m) {
          // [quote any_register]
          // Only these new values must be in four registers in a row.
          store_row4<kAligned>(c + row * ldc, col, n,
                               make_float4(alpha * acc[i][j], alpha * acc[i][j + 1],
                                           alpha * acc[i][j + 2], alpha * acc[i][j + 3]));
          // [end quote]
        }
      }
    }
  }
};

struct AnyRegister : FragmentPrefetchLevel<AnyRegisterConfig> {
  static constexpr LevelText text{
      .name = "any_register",
      .changed = "each element of C is multiplied by alpha, which is 1, before it is stored",
      .expect =
          "the store no longer decides which register bank an accumulator is in: fewer bank "
          "conflicts in the loop, some 5 per cent",
      .cost = "128 multiplications per thread, once; none in the loop",
  };

  static Claims claims(const Problem&) {
    return copy_claims({shared_loads().wavefronts_per_request(2), faster_than_previous(1.03),
                        fraction_of_roof(0.77), against_library("cuBLAS", 1.0)});
  }

  static void run(const Plan& plan, Stream stream) {
    using C = AnyRegisterConfig;
    const float alpha = 1;
    launch_tiles<C>(fragment_prefetch_kernel<C, true, float>,
                    fragment_prefetch_kernel<C, false, float>, plan, stream, stages_bytes<C>(),
                    alpha);
  }
};

}  // namespace cookbook::sgemm
