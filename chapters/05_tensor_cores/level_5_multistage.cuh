// SPDX-License-Identifier: MIT
// Level 5: cp.async copies tiles into a ring of stages while earlier tiles are multiplied.
#pragma once

#include "chapters/05_tensor_cores/level_4_swizzled.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace multistage {

using wmma_shared::load_tile;

template <class T>
struct Config : swizzled::Config<T> {
  static constexpr int kStages = 3, kBlocks = 2;  // 96 KB: two blocks fit on a Hopper SM
  static constexpr std::size_t kSmemBytes = kStages * swizzled::Config<T>::kSmemBytes;

  /// Starts to copy the chunk; `matrix` is a readable address for a chunk out of bounds.
  template <bool kVector>
  static __device__ __forceinline__ void copy_chunk(T* destination, const T* source, int valid,
                                                    const T* matrix) {
    copy_chunk_async<kVector>(destination, source, valid, matrix);
  }

  /// Waits until tile t may be read, and starts to copy the tile whose stage is free then.
  template <class C, class LoadStage>
  static __device__ __forceinline__ void next_tile(const LoadStage& load_stage, int t) {
    // [quote multistage]
    cp_async_wait<C::kStages - 2>();  // this thread's part of tile t has arrived
    __syncthreads();                  // every thread's has, and all have read tile t - 1
    load_stage(t + C::kStages - 1);   // so its stage may be filled again
    // [end quote]
  }
};

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks) kernel(GemmArgs<typename C::Element> p) {
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
    C::template next_tile<C>(load_stage, t);
    const T* a_tile = a_tiles + t % C::kStages * kATile;
    const T* b_tile = b_tiles + t % C::kStages * kBTile;
#pragma unroll
    for (int step = 0; step < C::kBlockK / 16; ++step) {
      std::uint32_t a[C::kMmaM][4], b[C::kMmaN][2];  // (kWarpM, 16) of A, (16, kWarpN) of B
      C::template load_fragments<C>(a, b, a_tile, b_tile, at, step);
#pragma unroll
      for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k16<T>(acc[i][j], a[i], b[j]);
      }
    }
  }
  C::Epilogue::template store<C, kVector>(acc, p, at);
}

/// A level that launches this kernel.
template <class C>
struct KernelLevel : TileLevel<C> {
  static void run(const typename TileLevel<C>::Plan& plan, Stream stream) {
    const bool vector = vectors_fit(plan.problem, plan.buffers);
    TileLevel<C>::launch_tiles(vector ? kernel<C, true> : kernel<C, false>, plan, stream);
  }
};

}  // namespace multistage

template <class T>
struct Multistage : multistage::KernelLevel<multistage::Config<T>> {
  static constexpr LevelText text{
      .name = "multistage",
      .changed = "cp.async into three stages, one barrier per tile",
      .expect =
          "global latency leaves the loop: two tiles are always in flight while a third is "
          "multiplied",
      .cost = "96 KB of shared memory",
  };

  static Claims claims(const ProblemT<T>& p) {
    return async_copy_claims(
        {shared_loads().conflict_free(), pair_stores(p), faster_than_previous(1.1)});
  }
};

}  // namespace cookbook::gemm
