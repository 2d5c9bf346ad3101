// SPDX-License-Identifier: MIT
// Level 8: C is stored through shared memory, in whole rows of the tile. The kernel is level 7's,
// with another Config.
#pragma once

#include "chapters/05_tensor_cores/level_7_fragments_ahead.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"

namespace cookbook::gemm {

namespace coalesced_epilogue {

/// A block's accumulators go to C through a tile in shared memory, with the swizzle of
/// C::tile_offset. It is stored 16 bytes per thread: a warp stores 512 contiguous bytes of a row.
struct StoreRows {
  template <class C, bool kVector, class T>
  static __device__ __forceinline__ void store(const float (&acc)[C::kMmaM][C::kMmaN][4],
                                               const GemmArgs<T>& p, const WarpTile& at) {
    cp_async_wait<0>();               // no copy is in flight
    __syncthreads();                  // ... in any thread, and all have read their last fragments
    T* c_tile = dynamic_shared<T>();  // (kBlockM, kBlockN), in place of the tiles of A and B
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < C::kMmaN; ++j) {
        const int row = at.row + i * 16 + at.lane / 4, chunk = at.col / 8 + j;
        // [quote coalesced_epilogue]
        T* top = c_tile + C::template tile_offset<C::kBlockN>(row, chunk) + at.lane % 4 * 2;
        T* bottom = c_tile + C::template tile_offset<C::kBlockN>(row + 8, chunk) + at.lane % 4 * 2;
        store_vector(top, to_pair<T>(acc[i][j][0], acc[i][j][1]));     // [gather]
        store_vector(bottom, to_pair<T>(acc[i][j][2], acc[i][j][3]));  // [gather]
        // [end quote]
      }
    }
    __syncthreads();  // the tile of C is complete
    constexpr int kChunks = C::kBlockN / 8;
    const int chunk = static_cast<int>(threadIdx.x % kChunks);
#pragma unroll
    for (int i = 0; i < C::kBlockM * kChunks / C::kThreads; ++i) {
      const int row = static_cast<int>(threadIdx.x / kChunks) + i * (C::kThreads / kChunks);
      const T* from = c_tile + C::template tile_offset<C::kBlockN>(row, chunk);
      store_chunk<kVector>(p, at.row0 + row, at.col0 + chunk * 8,
                           load_vector<Pack<T, 8>>(from));  // [leave]
    }
  }
};

template <class T>
struct Config : wide_tiles::Config<T> {
  using Epilogue = StoreRows;
};

}  // namespace coalesced_epilogue

template <class T>
struct CoalescedEpilogue : fragments_ahead::KernelLevel<coalesced_epilogue::Config<T>> {
  static constexpr LevelText text{
      .name = "coalesced_epilogue",
      .changed = "C through shared memory, stored with 16 bytes per thread",
      .expect =
          "half the sectors written, all of them whole; little time where K is large, more where "
          "small",
      .cost = "two barriers per block, 64 KB of the tiles' own shared memory",
  };

  static Claims claims(const ProblemT<T>&) {
    return async_copy_claims(
        {global_stores("c").coalesced(), global_stores("c").sectors_per_request(16),
         shared_loads().conflict_free(), shared_stores().on("gather").conflict_free(),
         faster_than_previous(1.02)});
  }
};

}  // namespace cookbook::gemm
