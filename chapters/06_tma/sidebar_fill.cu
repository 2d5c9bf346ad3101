// SPDX-License-Identifier: MIT
// Sidebar: what TMA does at the edges. A box may extend beyond the matrix on any side.
// Out-of-bounds elements are zero-filled, and the barrier still counts the bytes of the whole box.
// A box must begin on a 16-byte boundary of its row: here at column 0, 8, 16 ... Any other column
// is an illegal instruction. Runs on both backends and checks itself. Usage: chapter-6-fill
#include <cstdio>
#include <exception>
#include <vector>

#include "chapters/06_tma/operand.cuh"
#include "common/backend/backend.hpp"
#include "common/device/mbarrier.cuh"
#include "common/harness/run/arguments.hpp"

namespace cookbook::gemm {
namespace fill {

struct Config {
  static constexpr int kBox = 8;  // 8 x 8 elements: rows of 16 bytes, TMA's minimum
};

/// Loads the box at (x, y) and copies it to the output unchanged.
template <class C>
__global__ void __launch_bounds__(C::kBox* C::kBox)
    kernel(const __grid_constant__ TensorMap map, int x, int y, float* out) {
  bf16* box = dynamic_shared<bf16>();  // (kBox, kBox)
  uint64_t* bar = reinterpret_cast<uint64_t*>(box + C::kBox * C::kBox);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(bar, C::kBox * C::kBox * 2);  // the whole box, wherever it lies
    tma_load_2d(box, &map, bar, x, y);
  }
  __syncthreads();
  mbarrier_wait(bar, 0);
  out[threadIdx.x] = __bfloat162float(box[threadIdx.x]);
}

int run() {
  constexpr int kBox = Config::kBox, kRows = 6, kCols = 13, kPitch = 16;
  std::vector<bf16> host(kRows * kPitch, __float2bfloat16_rn(99.0f));  // 99: padding, never read
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kCols; ++c) {
      host[r * kPitch + c] = __float2bfloat16_rn(static_cast<float>(16 * (r + 1) + c));
    }
  }
  DeviceMemory matrix(host.size() * sizeof(bf16), "matrix");
  matrix.copy_from_host(host.data(), matrix.bytes());
  DeviceMemory out(kBox * kBox * sizeof(float), "out");
  const TensorMap map =
      matrix_map(matrix.as<bf16>(), kRows, kCols, kPitch, kBox, kBox, Swizzle::none);

  int wrong = 0;
  const int corners[][2] = {{0, 0}, {8, -2}, {8, 4}, {16, 8}, {-8, 0}};
  for (const auto& at : corners) {
    std::printf(
        "box at column %d, row %d of a %d x %d matrix (row r, column c holds 16 (r + 1) + c):\n",
        at[0], at[1], kRows, kCols);
    std::fflush(stdout);
    launch(kernel<Config>, {dim3(1), dim3(kBox * kBox), kBox * kBox * 2 + 8}, {}, map, at[0], at[1],
           out.as<float>());
    synchronize();
    std::vector<float> got(kBox * kBox);
    out.copy_to_host(got.data(), out.bytes());
    for (int r = 0; r < kBox; ++r) {
      for (int c = 0; c < kBox; ++c) {
        const int row = at[1] + r, col = at[0] + c;
        const bool inside = row >= 0 && row < kRows && col >= 0 && col < kCols;
        const float expected = inside ? static_cast<float>(16 * (row + 1) + col) : 0.0f;
        wrong += got[r * kBox + c] != expected;
        std::printf(" %3.0f", got[r * kBox + c]);
      }
      std::printf("\n");
    }
  }
  std::printf(wrong == 0 ? "all as documented\n" : "%d elements differ from what is documented\n",
              wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace fill
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  try {
    return cookbook::gemm::fill::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-6-fill: %s\n", error.what());
    return 1;
  }
}
