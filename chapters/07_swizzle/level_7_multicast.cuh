// SPDX-License-Identifier: MIT
// Level 7: two blocks, one above the other, need the same columns of B: each loads half for both.
#pragma once

#include "chapters/07_swizzle/level_5_grouped.cuh"
#include "common/device/cluster.cuh"

namespace cookbook::gemm {

namespace multicast {

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : tma_store::Config<kA, kB> {
  using Order = GroupedOrder<8>;      // of cluster tiles, 256 x 256
  static constexpr int kCluster = 2;  // blocks, one above the other
};

using tma_store::kBoxBytes;
using tma_store::store_tile;

template <class C>
struct Traits : tma_store::Traits<C> {
  using A = OperandTile<C::kMajorA, Swizzle::b128, C::kBlockM, C::kBlockK>;
  using B = OperandTile<C::kMajorB, Swizzle::b128, C::kBlockN, C::kBlockK, C::kCluster>;
};

template <class C>
__global__ void __launch_bounds__(Traits<C>::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, boxes, barriers
  unsigned char* store = smem + C::kStages * T::kStageBytes;
  uint64_t* full = reinterpret_cast<uint64_t*>(store + T::kStoreBytes);
  uint64_t* empty = full + C::kStages;

  TileIndex tile;
  const int rank = static_cast<int>(cluster_block_rank());
  const int tiles_m = ceil_div(e.m, C::kBlockM * C::kCluster), tiles_n = ceil_div(e.n, C::kBlockN);
  C::Order::tile(static_cast<int>(blockIdx.x) / C::kCluster, tiles_m, tiles_n, tile);
  tile.m = tile.m * C::kCluster + rank;  // may lie below C: loads give zeros, stores nothing
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
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        unsigned char* a = smem + write.stage * T::kStageBytes;
        uint64_t* bar = &full[write.stage];
        mbarrier_wait(&empty[write.stage], write.phase ^ 1);  // at once on a stage never used
        mbarrier_arrive_expect_tx(bar, T::kStageBytes);  // the other block's half of B included
        T::A::load(a, &map_a, bar, tile.m * C::kBlockM, k_block * C::kBlockK);
        T::B::load_part(a + T::A::kBytes, &map_b, bar, tile.n * C::kBlockN, k_block * C::kBlockK,
                        rank);
        write.advance();
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int row = (warpgroup - 1) * T::kMmaM * 64;  // this warpgroup's first, in the tile
    const uint64_t desc_a =
        wgmma_descriptor_advance(T::A::descriptor(smem), T::A::offset_bytes(row, 0));
    const uint64_t desc_b = T::B::descriptor(smem + T::A::kBytes);
    float acc[T::kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
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
      if (k_block > 0 && lane_idx() < C::kCluster) {  // either producer may have sent it
        mbarrier_arrive_cluster_relaxed(&empty[previous], lane_idx());
      }
      previous = read.stage;
      read.advance();
    }
    wgmma_wait<0>();  // the last batch; nobody waits for its stage
#pragma unroll
    for (int i = 0; i < T::kMmaM; ++i) wgmma_fence_operand(acc[i]);  // sums are read only from here

    store_tile<C::kStoreBuffers>(acc, &map_c, store + (warp - 4) * C::kStoreBuffers * kBoxBytes,
                                 tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
    if (lane_idx() == 0) tma_store_wait_read<0>();  // shared memory lives as long as its block
  }
  cluster_sync();  // nobody leaves while the other block sends to it
}

}  // namespace multicast

struct Multicast : LevelT<bf16> {
  using Config = multicast::Config<>;
  using Plan = TmaPlan;
  static constexpr const char* name = "multicast";
  static constexpr const char* changed = "clusters of two: each block loads half of B for both";
  static constexpr const char* expect =
      "1.1x: 32 KB a k-block come out of L2 instead of 48, and L2 was the limit";
  static constexpr const char* cost = "two blocks run in step; a cluster must fit two neighbours";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem& p) {
    const double blocks =
        Config::kCluster * static_cast<double>(blocks_for(
                               p.m, p.n, Config::kBlockM * Config::kCluster, Config::kBlockN));
    const double k_blocks = ceil_div(static_cast<int>(p.k), Config::kBlockK);
    // Panels of B, each of which a block now asks for with half of the rows.
    return {
        tma_loads("b").requests(blocks * k_blocks * Config::kBlockN / 64),
        slower_than_previous(
            0.97, "halving what L2 sends helps only where L2 was the limit; here the clock is")};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return TmaStore::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan = with_majors(p, [&](auto a, auto b) {
      using T = multicast::Traits<multicast::Config<a.value, b.value>>;
      return plan_operands<typename T::A, typename T::B>(p, at);
    });
    plan.plain = plan.plain || !is_16_byte_aligned(at.c);
    if (!plan.plain && !plan.is_empty()) plan.c = tma_store::output_map(p, at.c);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan, stream)) return;
    const Problem& p = plan.problem;
    with_majors(p, [&](auto a, auto b) {
      using C = multicast::Config<a.value, b.value>;
      using T = multicast::Traits<C>;
      const unsigned clusters = blocks_for(p.m, p.n, C::kBlockM * C::kCluster, C::kBlockN);
      LaunchConfig config{dim3(clusters * C::kCluster), dim3(T::kThreads), T::kSmemBytes};
      config.cluster = C::kCluster;
      launch(multicast::kernel<C>, config, stream, plan.a, plan.b, plan.c, extents_of(p));
    });
  }
};

}  // namespace cookbook::gemm
