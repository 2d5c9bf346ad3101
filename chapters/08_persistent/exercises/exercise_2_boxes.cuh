// SPDX-License-Identifier: MIT
// Exercise 8.2, a planted bug: level 3 with its epilogue written out, and one number wrong in it.
// Which store may still be reading the box that is packed again? The tracer names both lines. Find
// and repair the number.
#pragma once

#include "chapters/08_persistent/level_3_hidden_epilogue.cuh"

namespace cookbook::gemm {

namespace exercise_boxes {

using tma_store::kBoxBytes;
using tma_store::pack_box;

/// Writes a warp's rows of the accumulators, 16 of every 64, box by box. The warp packs one box
/// while TMA stores the previous ones. row, col: the warp's first element of C; boxes: kBuffers
/// boxes that only this warp uses. Lane 0 issues the stores and waits for them, so __syncwarp is
/// the only barrier.
template <int kBuffers, int kMmaM, int kAccumulators>
__device__ __forceinline__ void store_tile(const float (&acc)[kMmaM][kAccumulators],
                                           const TensorMap* map_c, unsigned char* boxes, int row,
                                           int col) {
  constexpr int kAcross = kAccumulators / 32;
#pragma unroll
  for (int i = 0; i < kMmaM * kAcross; ++i) {
    unsigned char* box = boxes + i % kBuffers * kBoxBytes;
    if (lane_idx() == 0) {  // the box's previous store must have read it
      if (i == 0) {
        tma_store_wait_read<0>();
      } else {
        tma_store_wait_read<kBuffers>();
      }
    }
    __syncwarp();
    pack_box(box, acc[i / kAcross], i % kAcross);
    fence_proxy_async();  // every lane's writes, before TMA reads them
    __syncwarp();
    if (lane_idx() == 0) {
      tma_store_2d(map_c, box, col + 64 * (i % kAcross), row + 64 * (i / kAcross));
      tma_store_commit();
    }
  }
}

struct Epilogue : hidden_epilogue::Epilogue {
  template <class C, int kMmaM, int kAccumulators>
  static __device__ __forceinline__ void store(const float (&acc)[kMmaM][kAccumulators],
                                               const TensorMap* map_c, unsigned char* boxes,
                                               int row, int col) {
    store_tile<C::kStoreBuffers>(acc, map_c, boxes, row, col);
  }
};

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : persistent_static::Config<kA, kB> {
  using Epilogue = exercise_boxes::Epilogue;
};

}  // namespace exercise_boxes

struct ExerciseBoxes : persistent_static::LevelOn<exercise_boxes::Config> {
  static constexpr LevelText text{
      .name = "exercise_boxes",
      .changed = "level 3 with a mistake in how its boxes are reused",
      .expect = "as level 3, as long as stores happen to be quick",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), shared_stores().on("stage").conflict_free()};
  }
  static Support supports(const Problem&, const DeviceInfo& device) {
    return device.cc() == 90 ? Support::yes() : Support::no("needs sm_90a (wgmma)");
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    if (LayoutLevel::supports(p, device_info())) return LayoutLevel::prepare(p, at);
    TmaPlan plan{p, at};  // rows that TMA cannot copy
    plan.fallback = true;
    return plan;
  }
};

}  // namespace cookbook::gemm
