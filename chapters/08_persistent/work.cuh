// SPDX-License-Identifier: MIT
/// @file
/// Which cluster computes what in a persistent grid: whole tiles assigned round-robin and, for
/// stream-K, the k-blocks of some tiles distributed evenly.
///
///     three clusters, four tiles of six k-blocks; the first tile is cut, the others are whole
///
///     tile 0   |0 0|1 1|2 2|   cluster 2 holds the tile's last k-blocks: it adds up and stores
///     tile 1   |0 0 0 0 0 0|
///     tile 2   |1 1 1 1 1 1|
///     tile 3   |2 2 2 2 2 2|
#pragma once

#include <algorithm>
#include <cstdint>

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/cuda.cuh"

namespace cookbook::gemm {

/// The tiles of C as a persistent grid sees them; a tile is what one *cluster* computes at a time.
struct Work {
  int tiles_m = 0, tiles_n = 0;
  int k_blocks = 0;
  int group = 1;         // group size: rows of tiles, traversed column by column, for L2
  int shared_tiles = 0;  // tiles 0 .. shared_tiles - 1 are cut into k-blocks
  int share = 0;         // number of these k-blocks per cluster

  __host__ __device__ int tiles() const { return tiles_m * tiles_n; }

  /// Position of tile `index`: as grouped_tile, written out because passing the members by value
  /// changes the order in which the kernels load them.
  __device__ __forceinline__ TileIndex at(int index) const {
    const int per_group = group * tiles_n;
    const int first = index / per_group * group;
    const int height = min(group, tiles_m - first);
    const int within = index % per_group;
    return {first + within % height, within / height};
  }
};

/// The work of an m x n x k GEMM in cluster tiles of tile_m x tile_n and k-blocks of block_k.
inline Work work_of(const Problem& p, int tile_m, int tile_n, int block_k, int group) {
  const Extents e = extents_of(p);
  return {ceil_div(e.m, tile_m), ceil_div(e.n, tile_n), ceil_div(e.k, block_k), group, 0, 0};
}

/// Cuts the first `tiles` tiles into k-blocks and distributes them evenly over `clusters` clusters.
inline void share_tiles(Work& work, int tiles, int clusters) {
  tiles = std::min(tiles, work.tiles());
  if (std::int64_t{tiles} * work.k_blocks > (1 << 30)) return;  // k-blocks are counted in int
  work.shared_tiles = tiles;
  work.share = ceil_div(tiles * work.k_blocks, clusters);
}

/// A segment of a tile: k-blocks k_begin .. k_end - 1.
struct Segment {
  int tile, k_begin, k_end;
};

/// Iterates over the work of one cluster: first its k-blocks of the tiles that were cut,
/// *backwards*, then whole tiles. Backwards, because the cluster then hands over the segment that
/// others wait for before it waits itself. A cluster only ever waits for clusters of lower index,
/// which the GPU started no later.
class Segments {
 public:
  __device__ __forceinline__ Segments(const Work& work, int cluster, int clusters)
      : work_(work), clusters_(clusters), tile_(work.shared_tiles + cluster) {
    const int units = work.shared_tiles * work.k_blocks;
    unit_begin_ = min(units, cluster * work.share);
    unit_end_ = min(units, unit_begin_ + work.share);
  }
  __device__ __forceinline__ bool more() const {
    return unit_end_ > unit_begin_ || tile_ < work_.tiles();
  }
  __device__ __forceinline__ bool next(Segment& segment) {
    if (unit_end_ > unit_begin_) {
      const int tile = (unit_end_ - 1) / work_.k_blocks, first = tile * work_.k_blocks;
      const int begin = max(unit_begin_, first);
      segment = {tile, begin - first, unit_end_ - first};
      unit_end_ = begin;
      return true;
    }
    if (tile_ >= work_.tiles()) return false;
    segment = {tile_, 0, work_.k_blocks};
    tile_ += clusters_;
    return true;
  }

 private:
  const Work& work_;
  int clusters_, tile_;
  int unit_begin_, unit_end_;
};

}  // namespace cookbook::gemm
