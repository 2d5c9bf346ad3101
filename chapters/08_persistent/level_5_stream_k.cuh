// SPDX-License-Identifier: MIT
// Level 5: stream-K. Where tiles do not fill the last wave, k-blocks are dealt instead of tiles.
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"
#include "chapters/08_persistent/partial_sums.cuh"

namespace cookbook::gemm {

namespace stream_k {

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : multicast::Config<kA, kB> {};

using multicast::Traits;
using tma_store::kBoxBytes;
using tma_store::store_tile;

template <class C>
__global__ void __launch_bounds__(Traits<C>::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, const __grid_constant__ Work work,
           PartialSums partial) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, boxes, barriers
  unsigned char* store = smem + C::kStages * T::kStageBytes;
  uint64_t* full = reinterpret_cast<uint64_t*>(store + T::kStoreBytes);
  uint64_t* empty = full + C::kStages;

  const int rank = static_cast<int>(cluster_block_rank());
  const int cluster = static_cast<int>(blockIdx.x) / C::kCluster;
  Segments segments(work, cluster, static_cast<int>(gridDim.x) / C::kCluster);
  Segment s;
  const auto tile_at = [&](int t) {  // this block's part of cluster tile t
    const TileIndex tile = work.at(t);
    return TileIndex{tile.m * C::kCluster + rank, tile.n};
  };
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
      while (segments.next(s)) {
        const TileIndex tile = tile_at(s.tile);
        for (int k_block = s.k_begin; k_block < s.k_end; ++k_block) {
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
    while (segments.next(s)) {
      int previous = 0;  // the stage that the batch in flight reads
      for (int k_block = s.k_begin; k_block < s.k_end; ++k_block) {
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
                wgmma_descriptor_advance(b, T::B::offset_bytes(0, k)),
                k_block > s.k_begin || k > 0);
          }
        }
        wgmma_commit();
        wgmma_wait<1>();  // the batch before this one is done: its stage is free
        if (k_block > s.k_begin) release(previous);
        previous = read.stage;
        read.advance();
      }
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < T::kMmaM; ++i)
        wgmma_fence_operand(acc[i]);  // sums are read only from here
      release(previous);              // the next tile's loads wait for it

      if (!complete_tile<4 * T::kConsumers>(acc, partial, work, s, cluster, warp - 4,
                                            [&](int c) { return c * C::kCluster + rank; })) {
        continue;  // somebody else stores this tile
      }
      const TileIndex tile = tile_at(s.tile);
      store_tile<C::kStoreBuffers>(acc, &map_c, boxes, tile.m * C::kBlockM + row + warp % 4 * 16,
                                   tile.n * C::kBlockN);
    }  // no barrier: a warp goes on when its boxes are packed; TMA stores under the next products
    if (lane_idx() == 0) tma_store_wait_read<0>();  // shared memory lives as long as its block
  }
  cluster_sync();  // nobody leaves while the other block sends to it
}

}  // namespace stream_k

struct StreamK : LevelT<bf16> {
  using Config = stream_k::Config<>;
  struct Plan {
    TmaPlan tma;
    Work work{};
    int clusters = 0;
    DeviceMemory sums{}, flags{};
  };
  static constexpr const char* name = "stream_k";
  static constexpr const char* changed =
      "the last wave's tiles are cut into equal shares of k-blocks";
  static constexpr const char* expect =
      "one wave's idle multiprocessors are put to work; the same where waves are full";
  static constexpr const char* cost =
      "partial sums go through L2: 128 KB a block, written and read";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem& p) {
    const double all = 1.0 * ceil_div(static_cast<int>(p.k), Config::kBlockK) * Config::kCluster *
                       blocks_for(p.m, p.n, Config::kBlockM * Config::kCluster, Config::kBlockN);
    return {tma_loads("a").requests(all),  // no k-block is done twice
            slower_than_previous(0.9, "it pays where the last wave is far from full")};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return TmaStore::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{Multicast::prepare(p, at)};
    if (plan.tma.is_empty() || plan.tma.plain) return plan;
    constexpr int kClusterM = Config::kBlockM * Config::kCluster;
    plan.work = work_of(p, kClusterM, Config::kBlockN, Config::kBlockK, 8);
    plan.clusters = std::max(1, device_info().sm_count / Config::kCluster);
    share_tiles(plan.work, plan.work.tiles() % plan.clusters, plan.clusters);
    const size_t blocks = size_t(plan.clusters) * Config::kCluster;
    plan.sums =
        DeviceMemory(blocks * Config::kBlockM * Config::kBlockN * sizeof(float), "partial sums");
    plan.flags = DeviceMemory(blocks * 8 * sizeof(int), "partial flags");
    plan.flags.fill(0);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan.tma, stream)) return;
    with_majors(plan.tma.problem, [&](auto a, auto b) {
      using C = stream_k::Config<a.value, b.value>;
      using T = stream_k::Traits<C>;
      LaunchConfig config{dim3(static_cast<unsigned>(plan.clusters * C::kCluster)),
                          dim3(T::kThreads), T::kSmemBytes};
      config.cluster = C::kCluster;
      launch(stream_k::kernel<C>, config, stream, plan.tma.a, plan.tma.b, plan.tma.c, plan.work,
             PartialSums{plan.sums.as<float>(), plan.flags.as<int>()});
    });
  }
};

}  // namespace cookbook::gemm
