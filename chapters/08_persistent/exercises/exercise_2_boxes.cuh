// SPDX-License-Identifier: MIT
// Exercise 8.2, a seeded bug: level 3 with its epilogue written out, and one number wrong in it.
// Which store may still be reading the box that is packed again? The tracer names both lines. Find
// and repair the number.
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"
#include "chapters/08_persistent/level_6_any_shape.cuh"

namespace cookbook::gemm {

namespace exercise_boxes {

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : multicast::Config<kA, kB> {};

using multicast::Traits;
using tma_store::kBoxBytes;
using tma_store::pack_box;

/// Writes a warp's rows of the accumulators, 16 of every 64, box by box: one is packed while those
/// before it leave. row, col: of C, the warp's first; boxes: the warp's own kBuffers. Only this
/// warp takes part, and its lane 0 issues and waits: no barrier beyond __syncwarp.
template <int kBuffers, int kMmaM, int kAccumulators>
__device__ __forceinline__ void store_tile(const float (&acc)[kMmaM][kAccumulators],
                                           const TensorMap* map_c, unsigned char* boxes, int row,
                                           int col) {
  constexpr int kAcross = kAccumulators / 32;
#pragma unroll
  for (int i = 0; i < kMmaM * kAcross; ++i) {
    unsigned char* box = boxes + i % kBuffers * kBoxBytes;
    if (lane_idx() == 0) {  // the box's last store must have read it
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
__global__ void __launch_bounds__(Traits<C>::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, boxes, barriers
  unsigned char* store = smem + C::kStages * T::kStageBytes;
  uint64_t* full = reinterpret_cast<uint64_t*>(store + T::kStoreBytes);
  uint64_t* empty = full + C::kStages;

  const int rank = static_cast<int>(cluster_block_rank());
  const int cluster = static_cast<int>(blockIdx.x) / C::kCluster;
  const int clusters = static_cast<int>(gridDim.x) / C::kCluster;
  const int tiles_m = ceil_div(e.m, C::kBlockM * C::kCluster), tiles_n = ceil_div(e.n, C::kBlockN);
  const auto tile_at = [&](int t) {  // this block's part of cluster tile t
    TileIndex tile;
    C::Order::tile(t, tiles_m, tiles_n, tile);
    return TileIndex{tile.m * C::kCluster + rank, tile.n};
  };
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      mbarrier_init(&full[s], 1);                                 // the producer
      mbarrier_init(&empty[s], 4 * T::kConsumers * C::kCluster);  // readers in either block
    }
    fence_mbarrier_init();
  }
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = cluster; t < tiles_m * tiles_n; t += clusters) {
        const TileIndex tile = tile_at(t);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          unsigned char* a = smem + write.stage * T::kStageBytes;
          uint64_t* bar = &full[write.stage];
          mbarrier_wait(&empty[write.stage], write.phase ^ 1);
          mbarrier_arrive_expect_tx(bar, T::kStageBytes);  // the other block's half of B included
          T::A::load(a, &map_a, bar, tile.m * C::kBlockM, k_block * C::kBlockK);
          T::B::load_part(a + T::A::kBytes, &map_b, bar, tile.n * C::kBlockN, k_block * C::kBlockK,
                          rank);
          write.advance();
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int row = (warpgroup - 1) * T::kMmaM * 64;  // this warpgroup's first, in the tile
    const uint64_t desc_a =
        wgmma_descriptor_advance(T::A::descriptor(smem), T::A::offset_bytes(row, 0));
    const uint64_t desc_b = T::B::descriptor(smem + T::A::kBytes);
    unsigned char* boxes = store + (warp - 4) * C::kStoreBuffers * kBoxBytes;
    const auto release = [&](int stage) {  // this warp has left it: tell either producer
      if (lane_idx() < C::kCluster) mbarrier_arrive_cluster_relaxed(&empty[stage], lane_idx());
    };
    float acc[T::kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    for (int t = cluster; t < tiles_m * tiles_n; t += clusters) {
      int previous = 0;  // the stage that the batch in flight reads
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        mbarrier_wait(&full[read.stage], read.phase);
        const uint64_t a = wgmma_descriptor_advance(desc_a, read.stage * T::kStageBytes);
        const uint64_t b = wgmma_descriptor_advance(desc_b, read.stage * T::kStageBytes);

        wgmma_fence();
#pragma unroll
        for (int k = 0; k < C::kBlockK; k += 16) {
#pragma unroll
          for (int i = 0; i < T::kMmaM; ++i) {
            wgmma_m64k16<C::kBlockN, bf16, C::kMajorA, C::kMajorB>(
                acc[i], wgmma_descriptor_advance(a, T::A::offset_bytes(64 * i, k)),
                wgmma_descriptor_advance(b, T::B::offset_bytes(0, k)), k_block > 0 || k > 0);
          }
        }
        wgmma_commit();
        wgmma_wait<1>();  // the batch before this one is done: its stage is free
        if (k_block > 0) release(previous);
        previous = read.stage;
        read.advance();
      }
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < T::kMmaM; ++i)
        wgmma_fence_operand(acc[i]);  // sums are read only from here
      release(previous);              // the next tile's loads wait for it

      const TileIndex tile = tile_at(t);
      store_tile<C::kStoreBuffers>(acc, &map_c, boxes, tile.m * C::kBlockM + row + warp % 4 * 16,
                                   tile.n * C::kBlockN);
    }  // no barrier: a warp goes on when its boxes are packed; TMA stores under the next products
    if (lane_idx() == 0) tma_store_wait_read<0>();  // shared memory lives as long as its block
  }
  cluster_sync();  // nobody leaves while the other block sends to it
}

}  // namespace exercise_boxes

struct ExerciseBoxes : LevelT<bf16> {
  using Config = exercise_boxes::Config<>;
  using Plan = TmaPlan;
  static constexpr const char* name = "exercise_boxes";
  static constexpr const char* changed = "level 3 with a mistake in how its boxes are used again";
  static constexpr const char* expect = "as level 3, whenever stores happen to be quick";
  static constexpr const char* cost = "";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a<Config>(p)),
            shared_stores().on("stage").conflict_free()};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return AnyShape::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {  // odd pitches: not what this is about
    if (p.lda % 8 != 0 || p.ldb % 8 != 0 || p.ldc % 8 != 0) {
      TmaPlan plan{p, at};
      plan.plain = true;
      return plan;
    }
    return Multicast::prepare(p, at);
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan, stream)) return;
    with_majors(plan.problem, [&](auto a, auto b) {
      using C = exercise_boxes::Config<a.value, b.value>;
      using T = exercise_boxes::Traits<C>;
      const Problem& p = plan.problem;
      LaunchConfig config{dim3(persistent_blocks<C>(p)), dim3(T::kThreads), T::kSmemBytes};
      config.cluster = C::kCluster;
      launch(exercise_boxes::kernel<C>, config, stream, plan.a, plan.b, plan.c, extents_of(p));
    });
  }
};

}  // namespace cookbook::gemm
