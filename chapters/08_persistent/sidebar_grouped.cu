// SPDX-License-Identifier: MIT
// Sidebar: grouped products. Several products of different sizes - a mixture of experts, say - in
// one persistent launch: their tiles form one list. Level 3 without clusters; a tile finds its
// product, and with it its tensor maps, by walking a list in the kernel's parameters. Checks itself
// on both backends; on a GPU it is timed beside one launch a product. Usage: chapter-8-grouped
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "common/harness/arguments.hpp"
#include "common/harness/check.hpp"
#if COOKBOOK_CUDA
#include "chapters/08_persistent/linked_level.hpp"
#include "common/bench/bench.hpp"
#endif

namespace cookbook::gemm {
namespace grouped_products {

using tma_store::kBoxBytes;
using tma_store::store_tile;
using tma_store::Traits;

struct Config : tma_store::Config<Major::k, Major::mn> {};

/// One product and where its tiles begin in the common list.
struct One {
  TensorMap a, b, c;
  int first_tile, tiles_m, k_blocks;

  /// Position of tile t of the list; down the columns, so that neighbours share B.
  __device__ __forceinline__ TileIndex at(int t) const {
    return {(t - first_tile) % tiles_m, (t - first_tile) / tiles_m};
  }
};

/// What the kernel takes: at most 4 KB of parameters.
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
__global__ void __launch_bounds__(Traits<C>::kThreads, 1)
    kernel(const __grid_constant__ Products products) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, boxes, barriers
  unsigned char* store = smem + C::kStages * T::kStageBytes;
  uint64_t* full = reinterpret_cast<uint64_t*>(store + T::kStoreBytes);
  uint64_t* empty = full + C::kStages;

  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);

  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      mbarrier_init(&full[s], 1);  // the producer
      mbarrier_init(&empty[s], 4 * T::kConsumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = first; t < products.tiles; t += step) {
        const One& p = products.of(t);
        const TileIndex tile = p.at(t);
        for (int k_block = 0; k_block < p.k_blocks; ++k_block) {
          unsigned char* a = smem + write.stage * T::kStageBytes;
          uint64_t* bar = &full[write.stage];
          mbarrier_wait(&empty[write.stage], write.phase ^ 1);
          mbarrier_arrive_expect_tx(bar, T::kStageBytes);
          T::A::load(a, &p.a, bar, tile.m * C::kBlockM, k_block * C::kBlockK);
          T::B::load(a + T::A::kBytes, &p.b, bar, tile.n * C::kBlockN, k_block * C::kBlockK);
          write.advance();
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int row = (warpgroup - 1) * T::kMmaM * 64;  // this warpgroup's first, in the tile
    const uint64_t desc_a =
        wgmma_descriptor_advance(T::A::descriptor(smem), T::A::offset_bytes(row, 0));
    const uint64_t desc_b = T::B::descriptor(smem + T::A::kBytes);
    unsigned char* boxes = store + (warp - 4) * C::kStoreBuffers * kBoxBytes;
    const auto release = [&](int stage) {
      if (lane_idx() == 0) mbarrier_arrive(&empty[stage]);
    };
    float acc[T::kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    for (int t = first; t < products.tiles; t += step) {
      const One& p = products.of(t);
      int previous = 0;  // the stage that the batch in flight reads
      for (int k_block = 0; k_block < p.k_blocks; ++k_block) {
        mbarrier_wait(&full[read.stage], read.phase);
        const uint64_t a = wgmma_descriptor_advance(desc_a, read.stage * T::kStageBytes);
        const uint64_t b = wgmma_descriptor_advance(desc_b, read.stage * T::kStageBytes);

        wgmma_fence();
#pragma unroll
        for (int k = 0; k < C::kBlockK; k += 16) {
#pragma unroll
          for (int i = 0; i < T::kMmaM; ++i) {
            wgmma_m64k16<C::kBlockN, bf16, C::kMajorA, C::kMajorB>(
                acc[i], wgmma_descriptor_advance(a, T::A::offset_bytes(64 * i, k)),
                wgmma_descriptor_advance(b, T::B::offset_bytes(0, k)), k_block > 0 || k > 0);
          }
        }
        wgmma_commit();
        wgmma_wait<1>();  // the batch before this one is done: its stage is free
        if (k_block > 0) release(previous);
        previous = read.stage;
        read.advance();
      }
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < T::kMmaM; ++i)
        wgmma_fence_operand(acc[i]);  // sums are read only from here
      release(previous);              // the next tile's loads wait for it

      const TileIndex tile = p.at(t);
      store_tile<C::kStoreBuffers>(acc, &p.c, boxes, tile.m * C::kBlockM + row + warp % 4 * 16,
                                   tile.n * C::kBlockN);
    }  // no barrier: a warp goes on when its boxes are packed; TMA stores under the next products
    if (lane_idx() == 0) tma_store_wait_read<0>();  // shared memory lives as long as its block
  }
}

/// The products' plans as one. None of them may be empty, and all pitches must suit TMA.
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
    using T = Traits<Config>;
    const int blocks = std::min(device_info().sm_count, products.tiles);
    launch(kernel<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads), T::kSmemBytes},
           stream, products);
  };
  all_at_once({});
  synchronize();
  int status = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto comparison = instances[i]->compare();
    std::printf("product %zu, %lld x %lld x %lld: %s\n", i, static_cast<long long>(sizes[i][0]),
                static_cast<long long>(sizes[i][1]), static_cast<long long>(sizes[i][2]),
                comparison.ok ? "ok" : comparison.message.c_str());
    if (!comparison.ok) status = 1;
  }
#if COOKBOOK_CUDA
  const Chapter chapter = chapter_8_entry();
  std::vector<std::function<void(Stream)>> single;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    single.push_back(prepare_level(chapter, "any_shape", plans[i].problem, plans[i].buffers));
  }
  const std::vector<Contender> contenders{{"one persistent launch", all_at_once},
                                          {"a launch a product (any_shape)", [&](Stream stream) {
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

}  // namespace grouped_products
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  using cookbook::gemm::grouped_products::run;
#if COOKBOOK_CUDA
  // Eight experts that got uneven numbers of tokens, 8,192 in all.
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
