// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: the last level with other tiles, stages and raster orders, all timed interleaved with
// cuBLAS. Usage: chapter-5-configs [M N K]...   (default 4096 and 8192, square)
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "chapters/05_tensor_cores/level_9_hoisted_addresses.cuh"
#include "chapters/05_tensor_cores/sweep.hpp"
#include "common/harness/run/arguments.hpp"

namespace cookbook::gemm {
namespace {

template <int kBlockMValue, int kBlockNValue, int kBlockKValue, int kWarpsMValue, int kWarpsNValue,
          int kStagesValue, int kGroupValue>
struct Tuned : coalesced_epilogue::Config<bf16> {
  static constexpr int kBlockM = kBlockMValue, kBlockN = kBlockNValue, kBlockK = kBlockKValue;
  static constexpr int kWarpsM = kWarpsMValue, kWarpsN = kWarpsNValue;
  static constexpr int kWarpM = kBlockM / kWarpsM, kWarpN = kBlockN / kWarpsN;
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kGroup = kGroupValue;
  static constexpr int kStages = kStagesValue;
  static constexpr std::size_t kSmemBytes = kStages * sizeof(bf16) * (kBlockM + kBlockN) * kBlockK;
  static_assert(kSmemBytes >= sizeof(bf16) * kBlockM * kBlockN, "C is gathered in the tiles");

  static std::string name() {
    return std::to_string(kBlockM) + "x" + std::to_string(kBlockN) + "x" + std::to_string(kBlockK) +
           ", " + std::to_string(kWarpsM) + "x" + std::to_string(kWarpsN) + " warps, " +
           std::to_string(kStages) + " stages, groups of " + std::to_string(kGroup);
  }
};

template <class C>
void add(Sweep& sweep) {
  sweep.add(C::name(), [&]() -> std::function<void(Stream)> {
    return [p = gemm_args(sweep.problem, sweep.buffers)](Stream stream) {
      launch(hoisted_addresses::kernel<C, true>,
             {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads), C::kSmemBytes},
             stream, p);
    };
  });
}

int run(const Size& size) {
  Sweep sweep(size, false, false);
  if (!vectors_fit(sweep.problem, sweep.buffers)) {
    std::fprintf(stderr, "chapter-5-configs: K and N must be multiples of 8\n");
    return 2;
  }
  add<Tuned<128, 256, 64, 2, 4, 4, 8>>(sweep);   // the level
  add<Tuned<128, 256, 64, 2, 4, 4, 4>>(sweep);   // block order
  add<Tuned<128, 256, 64, 2, 4, 4, 16>>(sweep);  //
  add<Tuned<128, 256, 64, 2, 4, 3, 8>>(sweep);   // fewer stages
  add<Tuned<256, 128, 64, 4, 2, 4, 8>>(sweep);   // the tile transposed
  add<Tuned<256, 128, 64, 4, 2, 4, 4>>(sweep);   //
  add<Tuned<128, 128, 64, 2, 2, 3, 8>>(sweep);   // two independent blocks of four warps
  add<Tuned<128, 128, 64, 2, 2, 3, 16>>(sweep);  //
  return sweep.report();
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  const std::vector<cookbook::Size> sizes =
      cookbook::product_sizes(argc, argv, {{4096, 4096, 4096}, {8192, 8192, 8192}});
  int status = 0;
  for (const auto& size : sizes) {
    if (const int failed = cookbook::gemm::run(size)) status = failed;
  }
  return status;
}
