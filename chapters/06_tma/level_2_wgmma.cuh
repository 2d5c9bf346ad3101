// SPDX-License-Identifier: MIT
// Level 2: wgmma: the tensor cores read both operands from shared memory themselves. No swizzle.
#pragma once

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::gemm {

/// Starts the loads of one k-block of a tile of C. `full` counts the bytes of both operands. Called
/// by one thread.
template <class C>
__device__ __forceinline__ void load_k_block(Stage<C>& stage, const TensorMap* map_a,
                                             const TensorMap* map_b, uint64_t* full, TileIndex tile,
                                             int k_block) {
  mbarrier_arrive_expect_tx(full, sizeof(Stage<C>));
  Stage<C>::A::load(stage.a, map_a, full, tile.m * C::kBlockM, k_block * C::kBlockK);
  Stage<C>::B::load(stage.b, map_b, full, tile.n * C::kBlockN, k_block * C::kBlockK);
}

/// Where wgmma finds the tiles of a stage and of the following stages.
template <class C>
struct Descriptors {
  uint64_t a, b;

  /// row: the first row of A's tile that this warpgroup multiplies; a multiple of 64.
  __device__ __forceinline__ explicit Descriptors(const Stage<C>& stage, int row = 0)
      : a(wgmma_descriptor_advance(Stage<C>::A::descriptor(stage.a),
                                   Stage<C>::A::offset_bytes(row, 0))),
        b(Stage<C>::B::descriptor(stage.b)) {}

  /// The same tiles `stages` stages further on.
  __device__ __forceinline__ Descriptors at(int stages) const {
    Descriptors there = *this;
    there.a = wgmma_descriptor_advance(a, stages * static_cast<int>(sizeof(Stage<C>)));
    there.b = wgmma_descriptor_advance(b, stages * static_cast<int>(sizeof(Stage<C>)));
    return there;
  }
};

/// One batch of wgmma: multiplies the tiles of one k-block. acc (+)= A B; without `accumulate` the
/// old values are ignored. The batch is issued and committed; the caller waits for it. acc: per 64
/// rows of the warpgroup, 64 x kBlockN accumulators distributed over its 128 threads.
template <class C, int kMmaM, int kAccumulators>
__device__ __forceinline__ void mma_k_block(float (&acc)[kMmaM][kAccumulators],
                                            const Descriptors<C>& tiles, bool accumulate) {
  using A = typename Stage<C>::A;
  using B = typename Stage<C>::B;
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < C::kBlockK; k += 16) {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
      wgmma_m64k16<C::kBlockN, bf16, C::kMajorA, C::kMajorB>(
          acc[i], wgmma_descriptor_advance(tiles.a, A::offset_bytes(64 * i, k)),
          wgmma_descriptor_advance(tiles.b, B::offset_bytes(0, k)), accumulate || k > 0);
    }
  }
  wgmma_commit();
}

namespace wgmma_tiles {

struct Config : DefaultOperands {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr Swizzle kSwizzle = Swizzle::none;
  static constexpr int kThreads = 128;  // one warpgroup
};

template <class C>
struct Smem {
  Stage<C> stage;
  uint64_t full;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);

  if (threadIdx.x == 0) {
    mbarrier_init(&smem.full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  const Descriptors<C> tiles(smem.stage);
  float acc[C::kBlockM / 64][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    // [quote wgmma]
    if (threadIdx.x == 0) load_k_block(smem.stage, &map_a, &map_b, &smem.full, tile, k_block);
    mbarrier_wait(&smem.full, k_block & 1);
    mma_k_block(acc, tiles, k_block > 0);
    wgmma_wait<0>();  // the batch has read the tiles and written acc
    __syncthreads();  // ... in all four warps: the tiles may be overwritten
    // [end quote]
  }
  store_accumulators(acc, out, e, tile.m * C::kBlockM, tile.n * C::kBlockN);
}

/// Everything but the level's name: level 3 and chapter 7 run this kernel with other swizzles.
template <class C>
struct LevelOn : WgmmaLevel<C> {
  static void run(const TmaPlan& plan, Stream stream) {
    WgmmaLevel<C>::launch_tiles(kernel<C>, sizeof(Smem<C>), plan, stream);
  }
};

}  // namespace wgmma_tiles

struct WgmmaTiles : wgmma_tiles::LevelOn<wgmma_tiles::Config> {
  static constexpr LevelText text{
      .name = "wgmma",
      .changed = "wgmma: one instruction multiplies 64 x 128 x 16 from shared memory",
      .expect =
          "slower: the tensor cores are faster, but an unswizzled tile needs 24 boxes of 16-byte "
          "rows",
      .cost = "128 accumulators per thread; sm_90a only",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            at_least_previous(0.2,
                              "unswizzled tiles are made of 16-byte rows, the worst shape "
                              "for TMA: see level 3")};
  }
};

}  // namespace cookbook::gemm
