// SPDX-License-Identifier: MIT
// Level 8: the accumulators are not the registers that the epilogue stores, so the compiler may put
// each of them into the register bank that suits the FMAs.
#pragma once

#include "chapters/04_double_buffering/level_7_block_order.cuh"

namespace cookbook::sgemm {

struct AnyRegisterConfig : BlockOrderConfig {};

/// C = alpha A B. Registers with even numbers are in one bank, those with odd numbers in the other,
/// and an FMA must not read two operands from one bank in the same clock. A 16-byte load or store
/// uses four registers in a row. So b[j] and, if it is stored as it is, acc[i][j] are both in the
/// bank of j % 2: a conflict in nearly every FMA, unless the compiler moves one of them. It cannot
/// know that alpha is 1. So it must multiply, and acc[i][j] is free to be in either bank.
template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    any_register_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                        const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                        int64_t ldc, float alpha) {
  using TileA = float[C::kK][C::kPitchA];  // (k, rows of A)
  using TileB = float[C::kK][C::kN];
  TileA* a_tile = reinterpret_cast<TileA*>(dynamic_shared<float>());  // (stage)
  TileB* b_tile = reinterpret_cast<TileB*>(a_tile + C::kStages);
  const TileIndex tile = grouped_tile<C>(static_cast<int>(blockIdx.x), m, n);
  const int tile_row = tile.row * C::kM;
  const int tile_col = tile.col * C::kN;

  constexpr int kStepM = WarpLayout<C>::kStepM, kStepN = WarpLayout<C>::kStepN;
  const WarpLayout<C> at;
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  TileCopy<C, kAligned> copy(tile_row, tile_col, m, n, k, a, lda, b, ldb);
  // Start filling all stages but one; tiles past the end of k are zero-filled.
  for (int s = 0; s < C::kStages - 1; ++s) {
    copy(a_tile[s], b_tile[s], s * C::kK);
    cp_async_commit();
  }
  float a_fragment[2][C::kThreadM], b_fragment[2][C::kThreadN];  // (k odd or even, rows | columns)
  const auto load_fragments = [&](int s, int p) {
#pragma unroll
    for (int i = 0; i < C::kThreadM; i += 4) {
      load_fragment4(&a_fragment[p % 2][i], &a_tile[s][p][at.row + i / 4 * kStepM]);
    }
#pragma unroll
    for (int j = 0; j < C::kThreadN; j += 4) {
      load_fragment4(&b_fragment[p % 2][j], &b_tile[s][p][at.col + j / 4 * kStepN]);
    }
  };

  int stage = 0, fill = C::kStages - 1;  // the stage being multiplied, the stage to be filled
  cp_async_wait<C::kStages - 2>();       // the first tile has arrived
  __syncthreads();
  load_fragments(stage, 0);
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    timeline::begin(timeline::Kind::multiply);
#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      // Load the fragments of step p + 1 while step p multiplies. After the last step that is step
      // 0 of the next tile, which must have arrived by then.
      if (p + 1 < C::kK) {
        load_fragments(stage, p + 1);
      } else {
        cp_async_wait<C::kStages - 2>();
        __syncthreads();  // the next tile has arrived, and all threads have read this one
        fill = stage;
        stage = stage + 1 < C::kStages ? stage + 1 : 0;
        load_fragments(stage, 0);
      }
      if (p == 0) {  // the stage read before the last barrier is free
        copy(a_tile[fill], b_tile[fill], k0 + (C::kStages - 1) * C::kK);
        cp_async_commit();
      }
      add_outer_product(acc, a_fragment[p % 2], b_fragment[p % 2]);
    }
    timeline::end(timeline::Kind::multiply);
  }

#pragma unroll
  for (int i = 0; i < C::kThreadM; ++i) {
    const int row = tile_row + at.row + i / 4 * kStepM + i % 4;
#pragma unroll
    for (int j = 0; j < C::kThreadN; j += 4) {
      const int col = tile_col + at.col + j / 4 * kStepN;
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

struct AnyRegister : Level {
  static constexpr LevelText text{
      .name = "any_register",
      .changed = "each element of C is multiplied by alpha, which is 1, before it is stored",
      .expect =
          "the store no longer decides which register bank an accumulator is in: fewer bank "
          "conflicts in the loop, some 5 per cent",
      .cost = "128 multiplications per thread, once; none in the loop",
  };

  static Support supports(const Problem&, const DeviceInfo& device) {
    return enough_shared_memory<AnyRegisterConfig>(device);
  }

  static Claims claims(const Problem&) {
    Claims claims = copy_claims();
    claims.push_back(shared_loads().wavefronts_per_request(2));
    claims.push_back(faster_than_previous(1.03));
    claims.push_back(fraction_of_roof(0.77));
    claims.push_back(against_library("cuBLAS", 1.0));
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    using C = AnyRegisterConfig;
    const Problem& p = plan.problem;
    const Buffers& at = plan.buffers;
    const float alpha = 1;
    launch(in_16_byte_pieces(p, at) ? any_register_kernel<C, true> : any_register_kernel<C, false>,
           {grid_of_tiles<C>(p), dim3(C::kThreads), stages_bytes<C>()}, stream, p.m, p.n, p.k, at.a,
           p.lda, at.b, p.ldb, at.c, p.ldc, alpha);
  }
};

}  // namespace cookbook::sgemm
