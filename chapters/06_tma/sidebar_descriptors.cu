// SPDX-License-Identifier: MIT
// Sidebar: the descriptor of a tile of A, without a swizzle (level 2) and with one (level 3), and
// where TMA puts each 16-byte chunk of that tile. Needs sm_90. Usage: chapter-6-descriptors, or
// chapter-6-descriptors --json FILE: the data of a picture (docs/pictures.md).
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "chapters/06_tma/operand.cuh"
#include "common/backend/backend.hpp"
#include "common/device/mbarrier.cuh"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"

namespace cookbook::gemm {
namespace descriptors {

constexpr int kRows = 64, kK = 64;  // of the tile: wgmma's M, and a k-block

template <class C>
struct Smem {
  unsigned char tile[C::kBytes];
  uint64_t full;
};

/// out: the tile as it lies in shared memory; bits: the descriptor at k = 0 and at k = 16.
template <class C>
__global__ void __launch_bounds__(128)
    describe(const __grid_constant__ TensorMap map, uint16_t* out, uint64_t* bits) {
  auto& smem = *dynamic_shared<Smem<C>>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&smem.full, C::kBytes);
    C::load(smem.tile, &map, &smem.full, 0, 0);
    bits[0] = C::descriptor(smem.tile);
    bits[1] = wgmma_descriptor_advance(bits[0], C::offset_bytes(0, 16));
  }
  __syncthreads();
  mbarrier_wait(&smem.full, 0);
  for (int i = threadIdx.x; i < kRows * kK; i += blockDim.x) {
    out[i] = reinterpret_cast<const uint16_t*>(smem.tile)[i];
  }
}

struct Described {
  std::string swizzle;
  std::vector<std::uint64_t> bits;
  std::vector<double> places;  // of chunk 8 row + k / 8: in 16 bytes from the start of the tile
};

template <Swizzle kSwizzle>
Described run(const std::string& name) {
  using Tile = OperandTile<Major::k, kSwizzle, kRows, kK>;
  std::vector<std::uint16_t> matrix(kRows * kK);  // an element holds its own index
  std::iota(matrix.begin(), matrix.end(), std::uint16_t{0});
  DeviceMemory in(matrix.size() * 2, "matrix"), out(in.bytes(), "out"), bits(16, "bits");
  in.copy_from_host(matrix.data(), in.bytes());
  launch(describe<Tile>, {dim3(1), dim3(128), sizeof(Smem<Tile>)}, {},
         Tile::map(in.as<bf16>(), kRows, kK, kK), out.as<std::uint16_t>(),
         bits.as<std::uint64_t>());
  synchronize();
  Described found{name, std::vector<std::uint64_t>(2), std::vector<double>(kRows * kK / 8)};
  bits.copy_to_host(found.bits.data(), bits.bytes());
  out.copy_to_host(matrix.data(), out.bytes());
  for (std::size_t i = 0; i < matrix.size(); i += 8) {
    found.places[matrix[i] / 8] = static_cast<double>(i / 8);
  }
  return found;
}

/// The halves of a descriptor: a number of JSON does not hold 64 bits.
PictureData data(const Described& tile) {
  const auto half = [&](std::size_t which, int shift) {
    return static_cast<double>(static_cast<std::uint32_t>(tile.bits[which] >> shift));
  };
  return PictureData()
      .set("swizzle", tile.swizzle)
      .set("high", half(0, 32))
      .set("low", half(0, 0))
      .set("low_of_next_step", half(1, 0))
      .set("places", tile.places);
}

int run_all(const std::optional<std::string>& file) {
  const std::vector<Described> tiles = {run<Swizzle::none>("none"), run<Swizzle::b128>("128")};
  if (file) {
    PictureData("descriptor", 6)
        .set("rows", kRows)
        .set("tiles", std::vector{data(tiles[0]), data(tiles[1])})
        .write(*file);
    return 0;
  }
  for (const Described& tile : tiles) {
    std::printf("swizzle %-4s  k 0: %016" PRIx64 "  k 16: %016" PRIx64 "\n", tile.swizzle.c_str(),
                tile.bits[0], tile.bits[1]);
  }
  return 0;
}

}  // namespace descriptors
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  const auto file = cookbook::json_argument(argc, argv);
  if (!file) cookbook::take_no_arguments(argc, argv);
  try {
    return cookbook::gemm::descriptors::run_all(file);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-6-descriptors: %s\n", error.what());
    return 1;
  }
}
