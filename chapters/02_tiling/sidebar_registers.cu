// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar of chapter 2: how far to unroll, and how many registers to allow. The kernel is the last
// level of the ladder, unchanged. Only two constants of its configuration differ.
#include "chapters/02_tiling/level_5_vectorised.cuh"
#include "chapters/02_tiling/sweep.hpp"
#include "common/harness/run/arguments.hpp"

namespace cookbook::sgemm {

/// kBlocksPerSm is the second argument of __launch_bounds__. The compiler must leave room for that
/// many blocks of 256 threads in 65,536 registers, so a thread gets 255, 128, 80 or 64.
template <int kBlocksPerSm, int kSteps>
struct RegisterConfig : VectorisedConfig {
  static constexpr int kBlocks = kBlocksPerSm, kUnroll = kSteps;
};

template <int kBlocksPerSm, int kSteps>
Candidate row(const char* name) {
  using C = RegisterConfig<kBlocksPerSm, kSteps>;
  return candidate<C>(name, vectorised_kernel<C, true>);
}

}  // namespace cookbook::sgemm

int main(int argc, char** argv) {
  using namespace cookbook::sgemm;
  for (const cookbook::Size& size : cookbook::joined_sizes(argc, argv, {{4096, 4096, 4096}})) {
    sweep(size, {row<2, 1>("unrolled 1 step of 8, room for 2 blocks"),
                 row<2, 2>("unrolled 2 steps"), row<2, 4>("unrolled 4 steps"),
                 row<2, 8>("unrolled 8 steps"), row<1, 8>("room for 1 block: up to 255 registers"),
                 row<3, 8>("room for 3 blocks: 80 registers"),
                 row<4, 8>("room for 4 blocks: 64 registers")});
  }
}
