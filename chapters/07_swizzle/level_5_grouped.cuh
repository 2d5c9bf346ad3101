// SPDX-License-Identifier: MIT
// Level 5: chapter 6's last kernel, its tiles taken in groups of rows.
#pragma once

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/07_swizzle/tile_order.cuh"

namespace cookbook::gemm {

namespace l2_order {

template <class TileOrder, Major kA = Major::k, Major kB = Major::mn>
struct Config : tma_store::Config<kA, kB> {
  using Order = TileOrder;
};

using tma_store::kBoxBytes;
using tma_store::store_tile;
using tma_store::Traits;

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
  const int tiles_m = ceil_div(e.m, C::kBlockM), tiles_n = ceil_div(e.n, C::kBlockN);
  if (!C::Order::tile(static_cast<int>(blockIdx.x), tiles_m, tiles_n, tile)) return;
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      mbarrier_init(&full[s], 1);                   // the producer
      mbarrier_init(&empty[s], 4 * T::kConsumers);  // the warps that read
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        unsigned char* a = smem + write.stage * T::kStageBytes;
        uint64_t* bar = &full[write.stage];
        mbarrier_wait(&empty[write.stage], write.phase ^ 1);  // at once on a stage never used
        mbarrier_arrive_expect_tx(bar, T::kStageBytes);
        T::A::load(a, &map_a, bar, tile.m * C::kBlockM, k_block * C::kBlockK);
        T::B::load(a + T::A::kBytes, &map_b, bar, tile.n * C::kBlockN, k_block * C::kBlockK);
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
      if (k_block > 0 && lane_idx() == 0) mbarrier_arrive(&empty[previous]);
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
}

/// Everything but the name.
template <class Order>
struct LevelOn : LevelT<bf16> {
  using Plan = TmaPlan;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    return TmaStore::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) { return TmaStore::prepare(p, at); }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan, stream)) return;
    const Problem& p = plan.problem;
    with_majors(p, [&](auto a, auto b) {
      using C = Config<Order, a.value, b.value>;
      const Extents e = extents_of(p);
      launch(kernel<C>,
             {dim3(Order::blocks(ceil_div(e.m, C::kBlockM), ceil_div(e.n, C::kBlockN))),
              dim3(Traits<C>::kThreads), Traits<C>::kSmemBytes},
             stream, plan.a, plan.b, plan.c, e);
    });
  }
  /// Boxes of A that all tiles take: no order changes what blocks ask for, only where it is found.
  static double boxes_of_a(const Problem& p) {
    using C = Config<Order>;
    return static_cast<double>(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)) *
           ceil_div(static_cast<int>(p.k), C::kBlockK);
  }
};

}  // namespace l2_order

struct Grouped4 : l2_order::LevelOn<GroupedOrder<4>> {
  static constexpr const char* name = "grouped_4";
  static constexpr const char* changed =
      "blocks go down four rows of tiles, then to the next column";
  static constexpr const char* expect =
      "a wave covers 4 x 33 tiles: less of A, but most of B; at 4096 both fit L2 in any order";
  static constexpr const char* cost = "two divisions a block";
  static constexpr const char* source = __FILE__;
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            slower_than_previous(0.97, "the worst order asks HBM for a third of what it gives")};
  }
};

struct Grouped8 : l2_order::LevelOn<GroupedOrder<8>> {
  static constexpr const char* name = "grouped_8";
  static constexpr const char* changed = "eight rows of tiles at a time";
  static constexpr const char* expect = "8 x 16.5 tiles of 128 x 256: 1,024 rows by 4,224 columns";
  static constexpr const char* cost = "two divisions a block";
  static constexpr const char* source = __FILE__;
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            slower_than_previous(0.97, "the height matters only once operands exceed L2")};
  }
};

struct Grouped16 : l2_order::LevelOn<GroupedOrder<16>> {
  static constexpr const char* name = "grouped_16";
  static constexpr const char* changed = "sixteen rows of tiles at a time";
  static constexpr const char* expect =
      "16 x 8.25 tiles: 2,048 rows by 2,112 columns, the squarest patch and the fewest bytes";
  static constexpr const char* cost = "two divisions a block";
  static constexpr const char* source = __FILE__;
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            slower_than_previous(0.97, "the height matters only once operands exceed L2")};
  }
};

}  // namespace cookbook::gemm
