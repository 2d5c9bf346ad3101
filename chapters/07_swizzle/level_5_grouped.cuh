// SPDX-License-Identifier: MIT
// Level 5: chapter 6's last kernel with swizzled rasterisation: tiles in groups of rows.
#pragma once

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/07_swizzle/tile_order.cuh"

namespace cookbook::gemm {

namespace l2_order {

/// Level 8's Config in another order.
template <class TileOrder>
struct In {
  template <Major kA, Major kB>
  struct Config : tma_store::Config<kA, kB> {
    // [quote grouped]
    using Order = TileOrder;
    // [end quote]
  };
};

/// Everything but the level's name. The order changes where blocks find the data, not how much they
/// load.
template <class Order>
using LevelOn = tma_store::LevelOn<In<Order>::template Config>;

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
