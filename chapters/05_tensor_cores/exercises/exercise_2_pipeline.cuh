// SPDX-License-Identifier: MIT
// Exercise 5.2, a planted bug: level 5 with one wrong line in its pipeline.
//
// It may well give the right answer on a GPU most of the time. Run it under each of the three
// schedules (COOKBOOK_SIMT_ASYNC=late, early, random), find out which guarantee is missing, and
// repair it. How many groups have been committed when tile t is about to be read, and how many may
// still be in flight?
#pragma once

#include "chapters/05_tensor_cores/level_5_multistage.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace exercise_pipeline {

using mma_ldmatrix::load_fragments;
using multistage::load_tile;

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads, 2) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
  constexpr int kATile = C::kBlockM * C::kBlockK, kBTile = C::kBlockK * C::kBlockN;
  T* a_tiles = dynamic_shared<T>();            // (kStages, kBlockM, kBlockK)
  T* b_tiles = a_tiles + C::kStages * kATile;  // (kStages, kBlockK, kBlockN)

  const WarpTile at = warp_tile<C>(p);

  float acc[C::kMmaM][C::kMmaN][4] = {};  // (kWarpM, kWarpN) of C, four elements per thread and mma

  const int tiles = ceil_div(p.k, C::kBlockK);
  // Starts the copy of tile t into stage t % kStages. Past the last tile it copies zeros, which no
  // thread reads: the count of groups stays right without a branch.
  const auto load_stage = [&](int t) {
    const int stage = t % C::kStages, k0 = t * C::kBlockK;
    load_tile<C, C::kBlockM, C::kBlockK, kVector>(a_tiles + stage * kATile, p.a, p.lda, p.m, p.k,
                                                  at.row0, k0);
    load_tile<C, C::kBlockK, C::kBlockN, kVector>(b_tiles + stage * kBTile, p.b, p.ldb, p.k, p.n,
                                                  k0, at.col0);
    cp_async_commit();
  };
  for (int t = 0; t < C::kStages - 1; ++t) load_stage(t);

  for (int t = 0; t < tiles; ++t) {
    cp_async_wait<C::kStages - 1>();  // this thread's part of tile t has arrived
    __syncthreads();                  // every thread's has, and all have read tile t - 1
    load_stage(t + C::kStages - 1);   // so its stage may be filled again
    const T* a_tile = a_tiles + t % C::kStages * kATile;
    const T* b_tile = b_tiles + t % C::kStages * kBTile;
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
  }
  C::Epilogue::template store<C, kVector>(acc, p, at);
}

}  // namespace exercise_pipeline

struct ExercisePipeline : NnLevel<bf16> {
  static constexpr LevelText text{
      .name = "exercise_pipeline",
      .changed = "level 5 with a mistake in its pipeline",
      .expect = "as level 5, as long as the copies happen to arrive in time",
  };

  static Claims claims(const Problem&) {
    Claims claims = async_copy_claims();
    claims.push_back(shared_loads().conflict_free());
    return claims;
  }
  static void run(const Plan& plan, Stream stream) {
    using C = multistage::Config<bf16>;
    const auto& p = plan.problem;
    launch(vectors_fit(p, plan.buffers) ? exercise_pipeline::kernel<C, true>
                                        : exercise_pipeline::kernel<C, false>,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads), C::kSmemBytes},
           stream, gemm_args(p, plan.buffers));
  }
};

}  // namespace cookbook::gemm
