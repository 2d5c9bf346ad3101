// SPDX-License-Identifier: MIT
// Exercise 8.2, a planted bug: level 3 with its epilogue written out, and one number wrong in it.
// Which store may still be reading the box that is packed again? The tracer names both lines. Find
// and repair the number.
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"

namespace cookbook::gemm {

namespace exercise_boxes {

using persistent_static::Config;
using tma_store::kBoxBytes;
using tma_store::pack_box;
using tma_store::Smem;

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

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const ClusterTiles<C> grid(e);
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kConsumers * C::kCluster);  // of every block
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = grid.cluster; t < grid.count(); t += grid.clusters) {
        const TileIndex tile = grid.at(t);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          load_next(smem, write, &map_a, &map_b, tile, k_block, grid.rank);
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    const Descriptors<C> tiles(smem.stages[0], row);
    const auto release = [&](int stage) { release_in_cluster<C::kCluster>(&smem.empty[stage]); };
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    for (int t = grid.cluster; t < grid.count(); t += grid.clusters) {
      const int last = mma_tile(acc, smem, tiles, read, k_blocks, release);
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      release(last);             // the next tile's loads wait for it

      const TileIndex tile = grid.at(t);
      store_tile<C::kStoreBuffers>(acc, &map_c, smem.boxes[warp - 4],
                                   tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
    }  // no barrier: TMA stores the packed boxes while the warp computes the next tile
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
  cluster_sync();  // no block exits while the other still sends to it
}

}  // namespace exercise_boxes

struct ExerciseBoxes : LevelT<bf16> {
  using Config = exercise_boxes::Config<>;
  using Plan = TmaPlan;
  static constexpr LevelText text{
      .name = "exercise_boxes",
      .changed = "level 3 with a mistake in how its boxes are reused",
      .expect = "as level 3, as long as stores happen to be quick",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a<Config>(p)),
            shared_stores().on("stage").conflict_free()};
  }
  static Support supports(const Problem&, const DeviceInfo& device) {
    return device.cc() == 90 ? Support::yes() : Support::no("needs sm_90a (wgmma)");
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    if (!Multicast::supports(p, device_info())) {  // rows that TMA cannot copy
      TmaPlan plan{p, at};
      plan.fallback = true;
      return plan;
    }
    return Multicast::prepare(p, at);
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    with_majors(plan.problem, [&](auto a, auto b) {
      using C = exercise_boxes::Config<a.value, b.value>;
      const Problem& p = plan.problem;
      launch(exercise_boxes::kernel<C>,
             {dim3(persistent_blocks<C>(p)), dim3(C::kThreads), sizeof(exercise_boxes::Smem<C>),
              C::kCluster},
             stream, plan.a, plan.b, plan.c, extents_of(p));
    });
  }
};

}  // namespace cookbook::gemm
