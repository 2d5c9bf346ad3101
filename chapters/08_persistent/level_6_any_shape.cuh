// SPDX-License-Identifier: MIT
// Level 6: everything at once, for any shape: tiles chosen by size, rows of any pitch.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/08_persistent/plan.cuh"
#include "common/device/cluster.cuh"

namespace cookbook::gemm {

namespace any_shape {

template <class C, Major kMajorA, Major kMajorB>
__global__ void __launch_bounds__(Traits<C, kMajorA, kMajorB>::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Output out, Extents e,
           const __grid_constant__ Work work, PartialSums partial) {
  using T = Traits<C, kMajorA, kMajorB>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, boxes, barriers
  unsigned char* store = smem + C::kStages * T::kStageBytes;
  uint64_t* full = reinterpret_cast<uint64_t*>(store + T::kStoreBytes);
  uint64_t* empty = full + C::kStages;

  const int warp = warp_idx_uniform(), warpgroup = warp / 4;
  const int rank = C::kCluster > 1 ? static_cast<int>(cluster_block_rank()) : 0;
  const int cluster = static_cast<int>(blockIdx.x) / C::kCluster;
  Segments segments(work, cluster, static_cast<int>(gridDim.x) / C::kCluster);
  Segment s;

  if (threadIdx.x == 0) {
    tma_prefetch_descriptor(&map_a);  // small products notice
    tma_prefetch_descriptor(&map_b);
    for (int i = 0; i < C::kStages; ++i) {
      mbarrier_init(&full[i], 1);             // this block's producer
      mbarrier_init(&empty[i], T::kReaders);  // every warp that reads what it sent, cluster-wide
    }
    fence_mbarrier_init();
  }
  if constexpr (C::kCluster > 1) {
    cluster_sync();  // the other block sends to our stages and arrives on our barriers
  } else {
    __syncthreads();
  }

  if (warpgroup == 0) {
    register_dealloc<40>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      while (segments.next(s)) {
        const TileIndex tile = work.at(s.tile);
        const int m = (tile.m * C::kCluster + rank) * C::kBlockM, n = tile.n * C::kBlockN;
        for (int k_block = s.k_begin; k_block < s.k_end; ++k_block) {
          unsigned char* a = smem + write.stage * T::kStageBytes;
          uint64_t* bar = &full[write.stage];
          mbarrier_wait(&empty[write.stage], write.phase ^ 1);
          mbarrier_arrive_expect_tx(bar, T::kStageBytes);  // the other block's part of B included
          T::A::load(a, &map_a, bar, m, k_block * C::kBlockK);
          if constexpr (C::kCluster > 1) {
            T::B::load_part(a + T::A::kBytes, &map_b, bar, n, k_block * C::kBlockK, rank);
          } else {
            T::B::load(a + T::A::kBytes, &map_b, bar, n, k_block * C::kBlockK);
          }
          write.advance();
        }
      }
    }
  } else {
    register_alloc<232>();
    const int group = warpgroup - 1, lane = lane_idx();
    const int row = T::kPingPong ? 0 : group * T::kMmaM * 64;  // this warpgroup's first in the tile
    unsigned char* boxes = store + (warp - 4) * T::kStoreBuffers * kBoxBytes;
    const uint64_t desc_a =
        wgmma_descriptor_advance(T::A::descriptor(smem), T::A::offset_bytes(row, 0));
    const uint64_t desc_b = T::B::descriptor(smem + T::A::kBytes);
    const auto release = [&](int stage) {  // this warp has left it: tell each producer
      if constexpr (C::kCluster > 1) {
        if (lane < C::kCluster) mbarrier_arrive_cluster_relaxed(&empty[stage], lane);
      } else {
        if (lane == 0) mbarrier_arrive(&empty[stage]);
      }
    };
    float acc[T::kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup
    StageCursor<C::kStages> read;

    for (int turn = 0; segments.next(s); ++turn) {
      if constexpr (T::kPingPong) {
        if (turn % 2 != group) {  // the other warpgroup's: step over its stages
          read.advance(s.k_end - s.k_begin);
          continue;
        }
        if (turn > 0) named_barrier_sync(1 + group, 256);  // until its products are all issued
      }
      int previous = 0;  // the stage that the batch in flight reads
      for (int k_block = s.k_begin; k_block < s.k_end; ++k_block) {
        mbarrier_wait(&full[read.stage], read.phase);
        const uint64_t a = wgmma_descriptor_advance(desc_a, read.stage * T::kStageBytes);
        const uint64_t b = wgmma_descriptor_advance(desc_b, read.stage * T::kStageBytes);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < C::kBlockK; k += 16) {
#pragma unroll
          for (int i = 0; i < T::kMmaM; ++i) {
            wgmma_m64k16<C::kBlockN, bf16, kMajorA, kMajorB>(
                acc[i], wgmma_descriptor_advance(a, T::A::offset_bytes(64 * i, k)),
                wgmma_descriptor_advance(b, T::B::offset_bytes(0, k)),
                k_block > s.k_begin || k > 0);
          }
        }
        wgmma_commit();
        wgmma_wait<1>();  // the batch before this one is done: its stage is free
        if (k_block > s.k_begin) release(previous);
        previous = read.stage;
        read.advance();
      }
      if constexpr (T::kPingPong) {
        if (segments.more()) named_barrier_arrive(2 - group, 256);  // the other's turn
      }
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < T::kMmaM; ++i)
        wgmma_fence_operand(acc[i]);  // sums are read only from here
      release(previous);

      bool stores = true;
      if constexpr (T::kGeneral) {
        stores =
            complete_tile<T::kTileWarps>(acc, partial, work, s, cluster, (warp - 4) % T::kTileWarps,
                                         [&](int c) { return c * C::kCluster + rank; });
      }
      const TileIndex tile = work.at(s.tile);
      const int m = (tile.m * C::kCluster + rank) * C::kBlockM + row + warp % 4 * 16;
      const int n = tile.n * C::kBlockN;
      if (!stores) continue;
      if (!T::kGeneral || out.c == nullptr) {
        tma_store::store_tile<T::kStoreBuffers>(acc, &map_c, boxes, m, n);
      } else {
        store_tile_unaligned(acc, out, e, boxes, m, n);
      }
    }
    if (lane == 0) tma_store_wait_read<0>();
  }
  if constexpr (C::kCluster > 1) cluster_sync();  // nobody leaves while others send to it
}

/// The product with one configuration: what level 6 chooses among, and chapter 11 tunes over.
template <class C>
struct Tuned {
  static void run(const Plan& plan, Stream stream) {
    launch_padding(plan.a, stream);
    launch_padding(plan.b, stream);
    with_majors(plan.tma.problem, [&](auto a, auto b) {
      using T = Traits<C, a.value, b.value>;
      LaunchConfig config{dim3(static_cast<unsigned>(plan.blocks)), dim3(T::kThreads),
                          T::kSmemBytes};
      config.cluster = C::kCluster;
      launch(kernel<C, a.value, b.value>, config, stream, plan.tma.a, plan.tma.b, plan.tma.c,
             plan.out, extents_of(plan.tma.problem), plan.work,
             PartialSums{plan.sums.as<float>(), plan.flags.as<int>()});
    });
  }

  /// tiles_to_share: how many cluster tiles to cut for stream-K.
  static Plan prepare(const Problem& p, const Buffers& at, int tiles_to_share) {
    Plan plan{TmaPlan{p, at}};
    plan.launch_product = run;
    plan.tma.plain = p.k == 0;
    if (plan.tma.is_empty() || plan.tma.plain) return plan;

    plan.a = padded_matrix(at.a, p.a_rows(), p.a_cols(), p.lda, "padded a");
    plan.b = padded_matrix(at.b, p.b_rows(), p.b_cols(), p.ldb, "padded b");
    with_majors(p, [&](auto a, auto b) {
      using T = Traits<C, a.value, b.value>;
      plan.tma.a = T::A::map(plan.a.base(), p.a_rows(), p.a_cols(), plan.a.base_pitch());
      plan.tma.b = T::B::map(plan.b.base(), p.b_rows(), p.b_cols(), plan.b.base_pitch());
    });
    if (rows_are_16_byte_aligned(at.c, p.ldc)) {
      plan.tma.c = tma_store::output_map(p, at.c);
    } else {
      plan.out = {at.c, p.ldc};
    }
    if (!Traits<C, Major::k, Major::k>::kGeneral && (plan.out.c != nullptr || tiles_to_share > 0)) {
      throw std::invalid_argument("these tiles leave no registers for odd pitches or stream-K");
    }

    plan.work = work_of(p, C::kBlockM * C::kCluster, C::kBlockN, C::kBlockK, C::kGroup);
    const int clusters = grid_blocks<C>() / C::kCluster;
    if (tiles_to_share > 0) {
      share_tiles(plan.work, tiles_to_share, clusters);
      plan.blocks = clusters * C::kCluster;
      const size_t sums = size_t(plan.blocks) * C::kBlockM * C::kBlockN;
      plan.sums = DeviceMemory(sums * sizeof(float), "partial sums");
      plan.flags = DeviceMemory(size_t(plan.blocks) * 8 * sizeof(int), "partial flags");
      plan.flags.fill(0);
    } else {
      plan.blocks = std::min(clusters, plan.work.tiles()) * C::kCluster;
    }
    return plan;
  }
};

//                           M    N    K  stages  cluster  group
using Large = Config<128, 256, 64, 4, 2, 8, Schedule::cooperative>;   // many tiles
using Medium = Config<128, 128, 64, 6, 1, 8, Schedule::cooperative>;  // too few of them
using Small = Config<128, 64, 64, 8, 1, 8, Schedule::cooperative>;    // not even enough of those

/// The plan of whichever of the configurations is predicted to be fastest, with its tiles dealt
/// whole or the last wave shared.
template <class... Configs>
Plan prepare_best(const Problem& p, const Buffers& at) {
  const Prediction guesses[] = {predict<Configs>(p)...};
  Plan (*const prepare[])(const Problem&, const Buffers&, int) = {&Tuned<Configs>::prepare...};
  const auto clocks = [](const Prediction& guess) { return std::min(guess.whole, guess.shared); };
  size_t best = 0;
  for (size_t i = 1; i < sizeof...(Configs); ++i) {
    if (clocks(guesses[i]) < clocks(guesses[best])) best = i;
  }
  const bool share = guesses[best].shared < guesses[best].whole;
  return prepare[best](p, at, share ? guesses[best].tiles_to_share : 0);
}

}  // namespace any_shape

struct AnyShape : LevelT<bf16> {
  using Plan = any_shape::Plan;
  static constexpr const char* name = "any_shape";
  static constexpr const char* changed =
      "tiles and schedule chosen by shape; operands with odd pitches are copied to padded rows";
  static constexpr const char* expect =
      "the best level below at every size; 3.5x and more of cuBLAS where a pitch is odd";
  static constexpr const char* cost = "three configurations compiled; workspace for odd pitches";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem&) {
    return {shared_stores().on("stage").conflict_free(), against_library("cuBLAS", 0.97)};
  }
  static Support supports(const Problem&, const DeviceInfo& device) {
    if (device.cc() != 90) return Support::no("needs sm_90a (wgmma)");
    return Support::yes();
  }

  static Plan prepare(const Problem& p, const Buffers& at) {
    using namespace any_shape;
    if (p.m == 0 || p.n == 0 || p.k == 0) return Tuned<Large>::prepare(p, at, 0);
    return prepare_best<Large, Medium, Small>(p, at);
  }
  static void run(const Plan& plan, Stream stream) {
    if (!launched_plain(plan.tma, stream)) plan.launch_product(plan, stream);
  }
};

}  // namespace cookbook::gemm
