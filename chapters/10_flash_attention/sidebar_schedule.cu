// SPDX-License-Identifier: MIT
// Sidebar: which key tiles each query tile visits under a causal mask and in which order a counter
// assigns the query tiles (level 8), and how level 12 divides the tiles of a partly filled last
// wave. Usage: chapter-10-schedule, or chapter-10-schedule --json FILE: the data of a picture
// (docs/pictures.md).
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "chapters/10_flash_attention/key_chunks.hpp"
#include "chapters/10_flash_attention/schedule.cuh"
#include "common/backend/backend.hpp"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"

namespace cookbook::attention {
namespace schedules {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128;
};

constexpr int kHeads = 4, kTokens = 1024;                      // causal
constexpr int kLastHeads = 5, kLastTokens = 4096, kSms = 132;  // the ladder last_wave, on an H200
constexpr int kLastBlockN = 176;
constexpr size_t kL2Bytes = 50 << 20;

struct Assigned {
  int first_query, head, key_tiles;
};

template <class C>
__global__ void assign(Schedule schedule, Shape shape, Assigned* out) {
  for (int tile = 0; tile < schedule.tiles; ++tile) {
    const QueryTile at = schedule.at(tile, C::kBlockM, shape.heads_q);
    out[tile] = {at.first_query, at.head, key_tiles<C::kBlockM, C::kBlockN>(shape, at.first_query)};
  }
}

/// The query tiles in the order in which the counter assigns them.
std::vector<Assigned> causal_queue() {
  const Problem p =
      Problem::make({1, kHeads, kHeads, kTokens, kTokens, 128}, {}, DType::bf16, true);
  const Schedule schedule = make_schedule(p, Config::kBlockM, kL2Bytes);
  DeviceMemory out(static_cast<size_t>(schedule.tiles) * sizeof(Assigned), "out");
  launch(assign<Config>, {dim3(1), dim3(1)}, {}, schedule, p.shape, out.as<Assigned>());
  synchronize();
  std::vector<Assigned> found(static_cast<size_t>(schedule.tiles));
  out.copy_to_host(found.data(), out.bytes());
  return found;
}

void write_data(const std::string& file, const std::vector<Assigned>& queue,
                const Division& division, int tiles, int key_tiles) {
  std::vector<PictureData> assigned, blocks;
  for (const Assigned& tile : queue) {
    assigned.push_back(PictureData()
                           .set("query_tile", tile.first_query / Config::kBlockM)
                           .set("head", tile.head)
                           .set("key_tiles", tile.key_tiles));
  }
  for (size_t block = 0; block + 1 < division.begin.size(); ++block) {
    std::vector<double> chunks;  // tile, first key tile, key tiles; tile ...
    for (int i = division.begin[block]; i < division.begin[block + 1]; ++i) {
      const KeyChunk& chunk = division.chunks[static_cast<size_t>(i)];
      for (const int value : {chunk.tile, chunk.first_key_tile, chunk.key_tiles}) {
        chunks.push_back(value);
      }
    }
    blocks.push_back(PictureData().set("chunks", chunks));
  }
  PictureData("attention_schedule", 10)
      .set("tokens", kTokens)
      .set("tile", std::vector<double>{Config::kBlockM, Config::kBlockN})
      .set("queue", assigned)
      .set("tiles", tiles)
      .set("key_tiles", key_tiles)
      .set("whole_tiles", division.whole_tiles)
      .set("chunk_cost", kChunkCost)
      .set("blocks", blocks)
      .write(file);
}

int run(const std::optional<std::string>& file) {
  const std::vector<Assigned> queue = causal_queue();
  const int tiles = kLastHeads * kLastTokens / Config::kBlockM;
  const int key_tiles = ceil_div(kLastTokens, kLastBlockN);
  const Division division = divide_last_wave(tiles, key_tiles, kSms);
  if (file) {
    write_data(*file, queue, division, tiles, key_tiles);
    return 0;
  }
  std::printf("causal, %d tokens, %d heads: query tile, head, key tiles\n", kTokens, kHeads);
  for (const Assigned& tile : queue) {
    std::printf("%4d %4d %4d\n", tile.first_query / Config::kBlockM, tile.head, tile.key_tiles);
  }
  std::printf("%d tiles of %d key tiles on %d SMs: %d whole, the others in %zu chunks\n", tiles,
              key_tiles, kSms, division.whole_tiles, division.chunks.size());
  return 0;
}

}  // namespace schedules
}  // namespace cookbook::attention

int main(int argc, char** argv) {
  const auto file = cookbook::json_argument(argc, argv);
  if (!file) cookbook::take_no_arguments(argc, argv);
  try {
    return cookbook::attention::schedules::run(file);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-10-schedule: %s\n", error.what());
    return 1;
  }
}
