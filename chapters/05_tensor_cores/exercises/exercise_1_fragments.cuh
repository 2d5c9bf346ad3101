// SPDX-License-Identifier: MIT
// Exercise 5.1, a kernel with a hole: the fragments of B.
//
// A is loaded. Write the load of B: which row of the tile, and which chunk of it, must lane l
// address, so that pair[0], pair[1] become the lower and upper half of k of columns 0-7, and
// pair[2], pair[3] those of columns 8-15? Meet the claim: four wavefronts, no conflict.
#pragma once

#include "chapters/05_tensor_cores/level_4_swizzled.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace exercise_fragments {

using wmma_shared::load_tile;

/// The fragments of k step `step` of a warp's rows of A and columns of B. ldmatrix.x4 moves a 16x16
/// piece: lanes 0-15 give its rows' first chunks, lanes 16-31 the second ones. A is
/// already in the layout of mma.sync. B is stored k by n and needed n by k, so ldmatrix transposes
/// its 8x8 matrices.
template <class C, class T>
__device__ __forceinline__ void load_fragments(std::uint32_t (&a)[C::kMmaM][4],
                                               std::uint32_t (&b)[C::kMmaN][2], const T* a_tile,
                                               [[maybe_unused]] const T* b_tile, const WarpTile& at,
                                               int step) {
  const int row = at.lane % 16, chunk = at.lane / 16;
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
    const int offset = C::template tile_offset<C::kBlockK>(at.row + i * 16 + row, step * 2 + chunk);
    ldmatrix_x4(a[i], a_tile + offset);  // [a]
  }
#pragma unroll
  for (int j = 0; j < C::kMmaN; j += 2) {
    std::uint32_t pair[4] = {};  // two neighbouring n8 fragments
    // Your code here: one ldmatrix_x4_trans. End its line with the tag: // [b]
    b[j][0] = pair[0], b[j][1] = pair[1];
    b[j + 1][0] = pair[2], b[j + 1][1] = pair[3];
  }
}

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads, 2) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
  T* a_tile = dynamic_shared<T>();               // (kBlockM, kBlockK)
  T* b_tile = a_tile + C::kBlockM * C::kBlockK;  // (kBlockK, kBlockN)

  const WarpTile at = warp_tile<C>(p);
  float acc[C::kMmaM][C::kMmaN][4] = {};  // (kWarpM, kWarpN) of C, four elements per thread and mma

  for (int k0 = 0; k0 < p.k; k0 += C::kBlockK) {
    load_tile<C, C::kBlockM, C::kBlockK, kVector>(a_tile, p.a, p.lda, p.m, p.k, at.row0, k0);
    load_tile<C, C::kBlockK, C::kBlockN, kVector>(b_tile, p.b, p.ldb, p.k, p.n, k0, at.col0);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int step = 0; step < C::kBlockK / 16; ++step) {
      std::uint32_t a[C::kMmaM][4], b[C::kMmaN][2];  // (kWarpM, 16) of A, (16, kWarpN) of B
      load_fragments<C>(a, b, a_tile, b_tile, at, step);
#pragma unroll
      for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k16<T>(acc[i][j], a[i], b[j]);
      }
    }
    __syncthreads();  // all threads have read them
  }
  C::Epilogue::template store<C, kVector>(acc, p, at);
}

}  // namespace exercise_fragments

struct ExerciseFragments : NnLevel<bf16> {
  static constexpr LevelText text{
      .name = "exercise_fragments",
      .changed = "ldmatrix of B, by you",
      .expect = "as level 4: right, and without bank conflicts",
  };

  static Claims claims(const Problem& p) {
    return {shared_loads().on("b").wavefronts_per_request(4),
            shared_loads().on("b").requests(8.0 * 4 * 2 * static_cast<double>(p.m * p.n * p.k) /
                                            (128 * 128 * 64))};
  }
  static void run(const Plan& plan, Stream stream) {
    using C = swizzled::Config<bf16>;
    const auto& p = plan.problem;
    launch(vectors_fit(p, plan.buffers) ? exercise_fragments::kernel<C, true>
                                        : exercise_fragments::kernel<C, false>,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads), C::kSmemBytes},
           stream, gemm_args(p, plan.buffers));
  }
};

}  // namespace cookbook::gemm
