// SPDX-License-Identifier: MIT
// Exercise 5.3: level 4 with the epilogue of level 8. It is right, but slow: a warp's stores to the
// tile of C hit the same banks. Change tile_offset, and nothing else, so that the claims hold.
// There are two ways; one of them does not fit into the 32 KB that the level has requested.
#pragma once

#include "chapters/05_tensor_cores/level_8_coalesced_epilogue.cuh"

namespace cookbook::gemm {

namespace exercise_epilogue {

/// How level 8's epilogue places the tile of C.
struct CTile : swizzled::Config<bf16> {
  /// Offset of chunk `chunk` (8 elements) of row `row` in the tile of C (128 x kCols).
  template <int kCols>
  static __device__ __forceinline__ int tile_offset(int row, int chunk) {
    return row * kCols + chunk * 8;
  }
};

struct Config : swizzled::Config<bf16> {
  struct Epilogue {
    template <class C, bool kVector>
    static __device__ __forceinline__ void store(const float (&acc)[kMmaM][kMmaN][4],
                                                 const GemmArgs<bf16>& p, const WarpTile& at) {
      coalesced_epilogue::StoreRows::store<CTile, kVector>(acc, p, at);
    }
  };
};

}  // namespace exercise_epilogue

struct ExerciseEpilogue : mma_ldmatrix::KernelLevel<exercise_epilogue::Config> {
  static constexpr LevelText text{
      .name = "exercise_epilogue",
      .changed = "level 4, C through shared memory",
      .expect = "whole sectors to global memory, and no bank conflict on the way",
  };

  static Claims claims(const Problem&) {
    return {global_stores("c").coalesced(), shared_stores().on("gather").conflict_free(),
            shared_loads().conflict_free()};
  }
};

}  // namespace cookbook::gemm
