// SPDX-License-Identifier: MIT
// Which query tiles are divided, and which block computes which keys of them. On the host.
#pragma once

#include <algorithm>
#include <vector>

namespace cookbook::attention {

/// Keys of one query tile that one block computes.
struct KeyChunk {
  int tile;                       // number of the query tile in the schedule
  int first_key_tile, key_tiles;  // its key tiles
  int first, count;               // the tile's chunks are first .. first + count - 1
};

/// Query tiles from `whole_tiles` on are divided. Block b computes chunks begin[b] to
/// begin[b + 1] - 1. `begin` is empty if no tile is divided.
struct Division {
  int whole_tiles;
  std::vector<int> begin;
  std::vector<KeyChunk> chunks;
};

/// What a chunk costs besides its keys, in key tiles: the load of its queries, and a partial output
/// that is written and merged. Measured: with 4, query tiles of 12 key tiles stay whole, and
/// dividing them loses 1 %.
inline constexpr int kChunkCost = 4;

/// Divides query tiles whole_tiles to tiles - 1, of key_tiles key tiles each. Fills one block after
/// the other: a chunk of n key tiles counts as n + chunk_cost, and those of a block as `most` or
/// less. The number of blocks is begin.size() - 1.
inline Division fill_blocks(int tiles, int whole_tiles, int key_tiles, int most, int chunk_cost) {
  Division division{whole_tiles, {0}, {}};
  auto& chunks = division.chunks;
  const auto count = [&] { return static_cast<int>(chunks.size()); };
  int room = most;
  for (int tile = whole_tiles; tile < tiles; ++tile) {
    const int first = count();
    for (int at = 0; at < key_tiles;) {
      if (room <= chunk_cost) {
        division.begin.push_back(count());
        room = most;
      }
      const int n = std::min(room - chunk_cost, key_tiles - at);
      chunks.push_back({tile, at, n, first, 0});
      at += n;
      room -= n + chunk_cost;
    }
    for (int i = first; i < count(); ++i) chunks[static_cast<size_t>(i)].count = count() - first;
  }
  division.begin.push_back(count());
  return division;
}

/// Divides the query tiles that do not fill a wave of `blocks` blocks, if each block's chunks then
/// take less time than a whole tile. All tiles have key_tiles key tiles.
inline Division divide_last_wave(int tiles, int key_tiles, int blocks,
                                 int chunk_cost = kChunkCost) {
  const int whole = tiles - tiles % blocks;
  if (whole < tiles) {
    const long long keys = static_cast<long long>(tiles - whole) * key_tiles;
    for (auto most = static_cast<int>(keys / blocks) + chunk_cost + 1; most < key_tiles; ++most) {
      Division division = fill_blocks(tiles, whole, key_tiles, most, chunk_cost);
      if (static_cast<int>(division.begin.size()) > blocks + 1) continue;
      division.begin.resize(static_cast<size_t>(blocks) + 1, division.begin.back());
      return division;
    }
  }
  return {tiles, {}, {}};
}

}  // namespace cookbook::attention
