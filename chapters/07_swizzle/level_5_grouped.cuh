// SPDX-License-Identifier: MIT
// Level 5: chapter 6's last kernel with swizzled rasterisation: tiles in groups of rows.
#pragma once

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/07_swizzle/tile_order.cuh"

namespace cookbook::gemm {

namespace l2_order {

template <class TileOrder, Major kA = Major::k, Major kB = Major::mn>
struct Config : tma_store::Config<kA, kB> {
  using Order = TileOrder;
};

using tma_store::Smem;
using tma_store::store_tile;

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  TileIndex tile;
  const int tiles_m = ceil_div(e.m, C::kBlockM), tiles_n = ceil_div(e.n, C::kBlockN);
  // [quote grouped]
  if (!C::Order::tile(static_cast<int>(blockIdx.x), tiles_m, tiles_n, tile)) return;
  // [end quote]
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kConsumers);  // readers: the consumers' warps
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        load_next(smem, write, &map_a, &map_b, tile, k_block);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    const Descriptors<C> tiles(smem.stages[0], row);
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    mma_tile(acc, smem, tiles, read, k_blocks, [&](int stage) {
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[stage]);
    });
    wgmma_wait<0>();           // the last batch; no load waits for its stage
    wgmma_fence_operand(acc);  // the accumulators are read only from here

    store_tile<C::kStoreBuffers>(acc, &map_c, smem.boxes[warp - 4],
                                 tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
}

/// Config by layout, as LayoutLevel requires it.
template <class Order>
struct ConfigOf {
  template <Major kA, Major kB>
  using Layout = Config<Order, kA, kB>;
};

/// Everything but the level's name.
template <class Order>
struct LevelOn : tma_store::LayoutLevel<ConfigOf<Order>::template Layout> {
  using Base = tma_store::LayoutLevel<ConfigOf<Order>::template Layout>;

  static void run(const TmaPlan& plan, Stream stream) {
    Base::in_layout(plan, stream, [&](auto config) {
      using C = decltype(config);
      const Extents e = extents_of(plan.problem);
      launch(kernel<C>,
             {dim3(Order::blocks(ceil_div(e.m, C::kBlockM), ceil_div(e.n, C::kBlockN))),
              dim3(C::kThreads), sizeof(Smem<C>)},
             stream, plan.a, plan.b, plan.c, e);
    });
  }
  /// Boxes of A of all tiles. The raster order changes where blocks find the data, not how much
  /// they load.
  static double boxes_of_a(const Problem& p) { return gemm::boxes_of_a<typename Base::Config>(p); }
};

}  // namespace l2_order

struct Grouped4 : l2_order::LevelOn<GroupedOrder<4>> {
  static constexpr LevelText text{
      .name = "grouped_4",
      .changed = "group size 4: blocks go down four rows of tiles, then to the next column",
      .expect =
          "a wave covers 4 x 33 tiles: less of A, but most of B; at 4096 both fit L2 in any order",
      .cost = "two divisions per block",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            at_least_previous(0.97, "the worst order asks HBM for a third of what it gives")};
  }
};

struct Grouped8 : l2_order::LevelOn<GroupedOrder<8>> {
  static constexpr LevelText text{
      .name = "grouped_8",
      .changed = "group size 8: eight rows of tiles at a time",
      .expect = "8 x 16.5 tiles of 128 x 256: 1,024 rows by 4,224 columns",
      .cost = "two divisions per block",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            at_least_previous(0.97, "the height matters only once operands exceed L2")};
  }
};

struct Grouped16 : l2_order::LevelOn<GroupedOrder<16>> {
  static constexpr LevelText text{
      .name = "grouped_16",
      .changed = "group size 16: sixteen rows of tiles at a time",
      .expect =
          "16 x 8.25 tiles: 2,048 rows by 2,112 columns, the squarest patch and the fewest bytes",
      .cost = "two divisions per block",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            at_least_previous(0.97, "the height matters only once operands exceed L2")};
  }
};

}  // namespace cookbook::gemm
