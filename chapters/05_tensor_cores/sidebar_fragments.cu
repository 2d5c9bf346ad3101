// SPDX-License-Identifier: MIT
// Sidebar: which lane holds which element. Loads tiles whose elements are their own index,
// multiplies by an identity, and prints where every element went. Exit status 1 if that differs
// from the figure in the README. With --json FILE it writes the data of a picture instead
// (docs/pictures.md): C, the tiles of level 6, and the accumulators of one instruction.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "chapters/05_tensor_cores/level_6_wide_tiles.cuh"
#include "common/backend/backend.hpp"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"

namespace cookbook::gemm {
namespace {

/// What each lane holds: the 16-bit halves of its registers as indices into A (16x16) and B (16x8),
/// and, for its four accumulators, the index into D (16x8).
struct Held {
  std::uint16_t a[32][8];  // a[0] low, a[0] high, a[1] low ...
  std::uint16_t b[32][4];
  float d[32][4];
};

template <class C>
__global__ void show_fragments(Held* held) {
  bf16* one = dynamic_shared<bf16>();                           // (16, 16): the identity
  bf16* numbers = one + 256;                                    // (16, 8): element i is i
  auto* a_index = reinterpret_cast<std::uint16_t*>(one) + 384;  // (16, 16): element i is i
  auto* b_index = a_index + 256;                                // (16, 8)
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) {
    one[i] = static_cast<bf16>(i / 16 == i % 16 ? 1.0f : 0.0f);
    a_index[i] = static_cast<std::uint16_t>(i);
    if (i < 128) numbers[i] = static_cast<bf16>(static_cast<float>(i));  // exact below 256
    if (i < 128) b_index[i] = static_cast<std::uint16_t>(i);
  }
  __syncwarp();

  // A: lanes 0-15 address the rows' first 16 bytes, lanes 16-31 the second. B: lanes 0-15 address
  // rows.
  std::uint32_t a[4], b[2], ones[4], counted[2];
  ldmatrix_x4(a, a_index + lane % 16 * 16 + lane / 16 * 8);
  ldmatrix_x2_trans(b, b_index + lane % 16 * 8);
  ldmatrix_x4(ones, one + lane % 16 * 16 + lane / 16 * 8);
  ldmatrix_x2_trans(counted, numbers + lane % 16 * 8);
  float d[4] = {};
  mma_m16n8k16<bf16>(d, ones, counted);  // D = I * numbers

  for (int i = 0; i < 8; ++i) {
    held->a[lane][i] = static_cast<std::uint16_t>(a[i / 2] >> (i % 2 * 16));
    if (i < 4) held->b[lane][i] = static_cast<std::uint16_t>(b[i / 2] >> (i % 2 * 16));
    if (i < 4) held->d[lane][i] = d[i];
  }
}

/// Prints a rows x cols matrix: lane owner[i] / 8 holds element i at position owner[i] % 8.
void print(const char* title, int rows, int cols, bool halves, const std::vector<int>& owner) {
  std::printf("\n%s: lane.register\n      ", title);
  for (int col = 0; col < cols; ++col) std::printf("%7d", col);
  for (int row = 0; row < rows; ++row) {
    std::printf("\n%4d  ", row);
    for (int col = 0; col < cols; ++col) {
      const int at = owner[static_cast<std::size_t>(row * cols + col)];
      const int place = at % 8;
      if (halves) {
        std::printf("  %2d.%d%c", at / 8, place / 2, place % 2 ? 'h' : 'l');
      } else {
        std::printf("  %2d.%d ", at / 8, place);
      }
    }
  }
  std::printf("\n");
}

Held load_and_multiply() {
  DeviceMemory memory(sizeof(Held), "held");
  launch(show_fragments<void>, {dim3(1), dim3(32), 2048}, {}, memory.as<Held>());
  synchronize();
  Held held;
  memory.copy_to_host(&held, sizeof held);
  return held;
}

void write_data(const std::string& file) {
  using C = wide_tiles::Config<bf16>;
  const Held held = load_and_multiply();
  std::vector<double> elements;  // of D, row by row: lane 0's d0 to d3, lane 1's ...
  for (const auto& lane : held.d) elements.insert(elements.end(), lane, lane + 4);
  PictureData("zoom", 5)
      .set("size", std::vector<double>{8192, 8192})
      .set("block", std::vector<double>{C::kBlockM, C::kBlockN})
      .set("warp", std::vector<double>{C::kWarpM, C::kWarpN})
      .set("instruction", std::vector<double>{16, 8})
      .set("accumulators", C::kMmaM * C::kMmaN * 4)
      .set("elements", elements)
      .write(file);
}

int show() {
  const Held held = load_and_multiply();
  std::vector<int> a(256, -1), b(128, -1), d(128, -1);
  bool as_drawn = true;
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 8; ++i) {
      a[held.a[lane][i] % 256] = lane * 8 + i;
      const int row = g + i / 2 % 2 * 8, col = 2 * t + i % 2 + i / 4 * 8;
      as_drawn = as_drawn && held.a[lane][i] == row * 16 + col;
    }
    for (int i = 0; i < 4; ++i) {
      b[held.b[lane][i] % 128] = lane * 8 + i;
      const int k = 2 * t + i % 2 + i / 2 * 8;
      as_drawn = as_drawn && held.b[lane][i] == k * 8 + g;
      d[static_cast<int>(held.d[lane][i]) % 128] = lane * 8 + i;
      const int row = g + i / 2 * 8, col = 2 * t + i % 2;
      as_drawn = as_drawn && held.d[lane][i] == static_cast<float>(row * 8 + col);
    }
  }
  std::printf("mma.sync.m16n8k16: l and h are the lower and upper half of a 32-bit register\n");
  print("A (16 x 16), ldmatrix.x4", 16, 16, true, a);
  print("B (16 x 8), ldmatrix.x2.trans of rows of k", 16, 8, true, b);
  print("D (16 x 8), fp32", 16, 8, false, d);
  std::printf("\n%s\n", as_drawn ? "As the README draws them." : "NOT as the README draws them.");
  return as_drawn ? 0 : 1;
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  if (const auto file = cookbook::json_argument(argc, argv)) {
    cookbook::gemm::write_data(*file);
    return 0;
  }
  cookbook::take_no_arguments(argc, argv);
  return cookbook::gemm::show();
}
