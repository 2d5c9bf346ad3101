// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar of chapter 4: double buffering alone, and when it loses. Three ways to load the next
// tile, with one and with two resident blocks. Registers or unused shared memory limit the number
// of blocks. There are three sizes: one fills the GPU with two blocks per SM, one gives each SM at
// most one block, and one has a short K.
#include "chapters/02_tiling/sweep.hpp"
#include "chapters/04_double_buffering/level_1_register_prefetch.cuh"
#include "chapters/04_double_buffering/level_2_async_copy.cuh"
#include "chapters/04_double_buffering/level_3_multistage.cuh"
#include "common/harness/run/arguments.hpp"

namespace cookbook::sgemm {

template <class Base, int kBlocksPerSm>
struct Resident : Base {
  static constexpr int kBlocks = kBlocksPerSm;
};

/// Dynamic shared memory that keeps a second block off the SM without changing the code.
inline std::size_t room_for_one() { return device_info().smem_per_block_bytes / 2 + 1024; }

}  // namespace cookbook::sgemm

int main(int argc, char** argv) {
  using namespace cookbook::sgemm;
  using V2 = Resident<VectorisedConfig, 2>;
  using V1 = Resident<VectorisedConfig, 1>;
  using P2 = Resident<RegisterPrefetchConfig, 2>;
  using P1 = Resident<RegisterPrefetchConfig, 1>;
  using A2 = AsyncCopyConfig;
  using M2 = MultistageConfig;
  const std::size_t one = room_for_one();
  for (const cookbook::Size& size : cookbook::joined_sizes(
           argc, argv, {{4096, 4096, 4096}, {1024, 1024, 4096}, {8192, 8192, 64}})) {
    sweep(size,
          {candidate<V2>("one buffer, 2 blocks per SM", vectorised_kernel<V2, true>),
           candidate<V2>("one buffer, forced to 1 block", vectorised_kernel<V2, true>, one),
           candidate<V1>("one buffer, any registers", vectorised_kernel<V1, true>),
           candidate<P1>("register prefetch, any registers", register_prefetch_kernel<P1, true>),
           candidate<P2>("register prefetch, capped at 128", register_prefetch_kernel<P2, true>),
           candidate<P2>("register prefetch, capped, 1 block", register_prefetch_kernel<P2, true>,
                         one),
           candidate<A2>("cp.async, 2 stages, 2 blocks", async_copy_kernel<A2, true>),
           candidate<A2>("cp.async, 2 stages, 1 block", async_copy_kernel<A2, true>, one),
           candidate<M2>("cp.async, 4 stages, 2 blocks", multistage_kernel<M2, true>),
           candidate<M2>("cp.async, 4 stages, 1 block", multistage_kernel<M2, true>, one)});
  }
}
