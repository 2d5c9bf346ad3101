// SPDX-License-Identifier: MIT
// Level 2: tiles are handed out one by one, to whoever is free.
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"

namespace cookbook::gemm {

namespace persistent_dynamic {

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : multicast::Config<kA, kB> {
  static constexpr int kQueue = 2;  // tiles told ahead
};

using tma_store::kBoxBytes;
using tma_store::store_tile;

template <class C>
struct Traits : multicast::Traits<C> {
  static constexpr int kSmemBytes = multicast::Traits<C>::kSmemBytes + C::kQueue * (8 + 8 + 4);
};

template <class C>
__global__ void __launch_bounds__(Traits<C>::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e, int* next) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, boxes, barriers
  unsigned char* store = smem + C::kStages * T::kStageBytes;
  uint64_t* full = reinterpret_cast<uint64_t*>(store + T::kStoreBytes);
  uint64_t* empty = full + C::kStages;
  uint64_t* told = empty + C::kStages;  // a queue of kQueue tiles: written,
  uint64_t* heard = told + C::kQueue;   // and read by everybody in the cluster (rank 0's counts)
  int* queue = reinterpret_cast<int*>(heard + C::kQueue);

  const int rank = static_cast<int>(cluster_block_rank());
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
    for (int i = 0; i < C::kQueue; ++i) {
      mbarrier_init(&told[i], 1);
      mbarrier_init(&heard[i], C::kCluster * (1 + 4 * T::kConsumers));  // producers, consumer warps
    }
    fence_mbarrier_init();
  }
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  const int tiles = tiles_m * tiles_n;
  const auto hear = [&](StageCursor<C::kQueue>& at) {  // the next tile; the same for everybody
    mbarrier_wait_cluster(&told[at.stage], at.phase);
    return queue[at.stage];
  };
  const auto confirm = [&](StageCursor<C::kQueue>& at) {  // one thread of each reader
    mbarrier_arrive_cluster(&heard[at.stage], 0);
  };

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      StageCursor<C::kQueue> at;
      for (int t = hear(at); t < tiles; t = hear(at)) {
        confirm(at);
        at.advance();
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
    if (warp == 1 && rank == 0 && elect_one()) {  // the scheduler, one a cluster
      StageCursor<C::kQueue> at;
      for (int t = 0; t < tiles; at.advance()) {
        mbarrier_wait_cluster(&heard[at.stage], at.phase ^ 1);
        t = atomicAdd(&next[0], 1);
        for (int r = 0; r < C::kCluster; ++r) {
          *map_shared(&queue[at.stage], r) = t;
          mbarrier_arrive_cluster(&told[at.stage], r);
        }
      }
      if (atomicAdd(&next[1], 1) == clusters - 1) next[0] = next[1] = 0;  // the last one tidies up
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
    StageCursor<C::kQueue> at;
    for (int t = hear(at); t < tiles; t = hear(at)) {
      __syncwarp();  // all lanes have read the queue
      if (lane_idx() == 0) confirm(at);
      at.advance();
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
      if (lane_idx() == 0) tma_store_wait<0>();
      named_barrier_sync(1, 256);  // all of C's tile is written: on to the next one
    }
  }
  cluster_sync();  // nobody leaves while the other block sends to it
}

}  // namespace persistent_dynamic

struct PersistentDynamic : LevelT<bf16> {
  using Config = persistent_dynamic::Config<>;
  struct Plan {
    TmaPlan tma;
    DeviceMemory next;  // the counter, and how many clusters are done
  };
  static constexpr const char* name = "dynamic";
  static constexpr const char* changed =
      "a counter in global memory deals the tiles; a scheduler thread a cluster fetches ahead";
  static constexpr const char* expect =
      "the same: all tiles of a product take equally long. It pays where they do not (grouped "
      "products)";
  static constexpr const char* cost = "an atomic a tile, and a queue in shared memory";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a<Config>(p)), global_loads().requests(0),
            slower_than_previous(0.97,
                                 "equal tiles leave nothing to balance; the counter is fetched "
                                 "ahead, so it costs nothing either")};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return TmaStore::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{Multicast::prepare(p, at), DeviceMemory(2 * sizeof(int), "next tile")};
    plan.next.fill(0);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan.tma, stream)) return;
    with_majors(plan.tma.problem, [&](auto a, auto b) {
      using C = persistent_dynamic::Config<a.value, b.value>;
      using T = persistent_dynamic::Traits<C>;
      const Problem& p = plan.tma.problem;
      LaunchConfig config{dim3(persistent_blocks<C>(p)), dim3(T::kThreads), T::kSmemBytes};
      config.cluster = C::kCluster;
      launch(persistent_dynamic::kernel<C>, config, stream, plan.tma.a, plan.tma.b, plan.tma.c,
             extents_of(p), plan.next.as<int>());
    });
  }
};

}  // namespace cookbook::gemm
