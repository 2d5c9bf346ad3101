// SPDX-License-Identifier: MIT
// Sidebar: grouped GEMM. Several GEMMs of different sizes (the experts of a mixture, for example)
// in one persistent launch: their tiles form one list. The kernel is level 3 without clusters. A
// block finds the GEMM of a tile, and with it the tensor maps, by searching a list in the kernel's
// parameters. Checks itself on both backends; on a GPU it is timed next to one launch per GEMM.
// Usage: chapter-8-grouped
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "common/harness/run/arguments.hpp"
#include "common/harness/verdict/check.hpp"
#if COOKBOOK_CUDA
#include "chapters/08_persistent/linked_level.hpp"
#include "common/bench/bench.hpp"
#endif

namespace cookbook::gemm {
namespace grouped_gemm {

using tma_store::Smem;
using tma_store::store_tile;

struct Config : tma_store::Config<Major::k, Major::mn> {};

/// One GEMM and the index of its first tile in the common list.
struct One {
  TensorMap a, b, c;
  int first_tile, tiles_m, k_blocks;

  /// Position of tile t of the list; column by column, so that consecutive tiles use the same part
  /// of B.
  __device__ __forceinline__ TileIndex at(int t) const {
    return {(t - first_tile) % tiles_m, (t - first_tile) / tiles_m};
  }
};

/// The kernel's parameters: at most 4 KB.
struct Products {
  static constexpr int kMost = 8;
  One list[kMost];
  int count, tiles;

  __device__ __forceinline__ const One& of(int t) const {
    int i = count - 1;
    while (list[i].first_tile > t) --i;
    return list[i];
  }
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ Products products) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kConsumers);  // readers: the consumers' warps
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = first; t < products.tiles; t += step) {
        const One& p = products.of(t);
        const TileIndex tile = p.at(t);
        for (int k_block = 0; k_block < p.k_blocks; ++k_block) {
          load_next(smem, write, &p.a, &p.b, tile, k_block);
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    const Descriptors<C> tiles(smem.stages[0], row);
    const auto release = [&](int stage) {
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[stage]);
    };
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    for (int t = first; t < products.tiles; t += step) {
      const One& p = products.of(t);
      const int last = mma_tile(acc, smem, tiles, read, p.k_blocks, release);
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      release(last);             // the next tile's loads wait for it

      const TileIndex tile = p.at(t);
      store_tile<C::kStoreBuffers>(acc, &p.c, smem.boxes[warp - 4],
                                   tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
    }  // no barrier: TMA stores the packed boxes while the warp computes the next tile
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
}

/// One plan for all GEMMs. None of them may be empty, and all pitches must be supported by TMA.
Products gather(const std::vector<TmaPlan>& plans) {
  Products all{};
  for (const TmaPlan& plan : plans) {
    const Extents e = extents_of(plan.problem);
    One& one = all.list[all.count++];
    one.a = plan.a, one.b = plan.b, one.c = plan.c;
    one.first_tile = all.tiles;
    one.tiles_m = ceil_div(e.m, Config::kBlockM);
    one.k_blocks = ceil_div(e.k, Config::kBlockK);
    all.tiles += one.tiles_m * ceil_div(e.n, Config::kBlockN);
  }
  return all;
}

int run(const std::vector<Size>& sizes) {
  const auto ladder = ladder_over<Problem>("gemm", "", {"M", "N", "K"});
  std::vector<std::unique_ptr<Instance>> instances;
  std::vector<TmaPlan> plans;
  double flops = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    instances.push_back(std::make_unique<Instance>(ladder, sizes[i], InputKind::normal, 1 + i));
    const Problem p = Problem::make(sizes[i], {});
    plans.push_back(TmaStore::prepare(p, Buffers::bind(instances[i]->pointers())));
    flops += p.flops();
  }
  const Products products = gather(plans);
  const auto all_at_once = [&](Stream stream) {
    const int blocks = std::min(device_info().sm_count, products.tiles);
    launch(kernel<Config>,
           {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads), sizeof(Smem<Config>)},
           stream, products);
  };
  all_at_once({});
  synchronize();
  int status = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto comparison = instances[i]->compare();
    std::printf("GEMM %zu, %lld x %lld x %lld: %s\n", i, static_cast<long long>(sizes[i][0]),
                static_cast<long long>(sizes[i][1]), static_cast<long long>(sizes[i][2]),
                comparison.ok ? "ok" : comparison.message.c_str());
    if (!comparison.ok) status = 1;
  }
#if COOKBOOK_CUDA
  const Chapter library = capstone_gemm_entry();
  std::vector<std::function<void(Stream)>> single;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    single.push_back(prepare_level(library, "any_shape", plans[i].problem, plans[i].buffers));
  }
  const std::vector<Contender> contenders{{"one persistent launch", all_at_once},
                                          {"one launch per GEMM (any_shape)", [&](Stream stream) {
                                             for (const auto& launch_one : single)
                                               launch_one(stream);
                                           }}};
  const auto measured = measure(contenders, {}, nullptr);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    std::printf("  %-34s %7.1f TFLOP/s %s\n", contenders[i].name.c_str(),
                flops / measured[i].cold.median * 1e-6, measured[i].error.c_str());
  }
#else
  (void)flops;
#endif
  return status;
}

}  // namespace grouped_gemm
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  using cookbook::gemm::grouped_gemm::run;
#if COOKBOOK_CUDA
  // Eight experts with uneven numbers of tokens, 8,192 in total.
  return run({{2432, 4096, 2048},
              {1800, 4096, 2048},
              {1304, 4096, 2048},
              {976, 4096, 2048},
              {728, 4096, 2048},
              {504, 4096, 2048},
              {320, 4096, 2048},
              {128, 4096, 2048}});
#else
  return run({{264, 256, 128}, {128, 520, 72}, {8, 8, 200}, {96, 256, 64}});
#endif
}
