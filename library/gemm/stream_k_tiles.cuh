// SPDX-License-Identifier: MIT
/// @file
/// Tiles that may be cut along K, and rows of C of any pitch: chapter 8's hidden epilogue or its
/// ping-pong schedule, its stream-K segments, and ordinary stores where TMA cannot store C.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "chapters/07_swizzle/level_7_multicast.cuh"
#include "library/gemm/plan.cuh"

namespace cookbook::gemm::any_shape {

template <class C, Major kMajorA, Major kMajorB>
__global__ void __launch_bounds__(Traits<C, kMajorA, kMajorB>::kThreads, 1)
    stream_k_tiles(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                   const __grid_constant__ TensorMap map_c, Output out, Extents e,
                   const __grid_constant__ Work work, PartialSums partial) {
  using T = Traits<C, kMajorA, kMajorB>;
  static_assert(sizeof(tma_store::Smem<T>) == T::kSmemBytes);
  auto& smem = *dynamic_shared<tma_store::Smem<T>>();
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;
  const int rank = C::kCluster > 1 ? static_cast<int>(cluster_block_rank()) : 0;
  const int cluster = static_cast<int>(blockIdx.x) / C::kCluster;
  Segments segments(work, cluster, static_cast<int>(gridDim.x) / C::kCluster);
  Segment s;
  const auto tile_at = [&](int t) {  // this block's tile in cluster tile t
    const TileIndex tile = work.at(t);
    return TileIndex{tile.m * C::kCluster + rank, tile.n};
  };

  if (threadIdx.x == 0) {
    tma_prefetch_descriptor(&map_a);  // its latency matters where tiles are few
    tma_prefetch_descriptor(&map_b);
    init_barriers(smem, T::kReaders);
  }
  allow_next_launch();
  if constexpr (C::kCluster > 1) {
    cluster_sync();  // the other block sends to our stages and arrives on our barriers
  } else {
    __syncthreads();
  }

  if (warpgroup == 0) {
    register_dealloc<40>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      wait_for_previous_launch();
      while (segments.next(s)) {
        const TileIndex tile = tile_at(s.tile);
        for (int k_block = s.k_begin; k_block < s.k_end; ++k_block) {
          if constexpr (C::kCluster > 1) {
            load_next(smem, write, &map_a, &map_b, tile, k_block, rank);
          } else {
            load_next(smem, write, &map_a, &map_b, tile, k_block);
          }
        }
      }
    }
  } else {
    register_alloc<232>();
    const int group = warpgroup - 1, lane = lane_idx();
    const int row = T::kPingPong ? 0 : group * T::kMmaM * 64;  // this warpgroup's first row
    const Descriptors<T> tiles(smem.stages[0], row);
    const auto release = [&](int stage) {  // signals `empty` to each block
      if constexpr (C::kCluster > 1) {
        release_in_cluster<C::kCluster>(&smem.empty[stage]);
      } else {
        if (lane == 0) mbarrier_arrive(&smem.empty[stage]);
      }
    };
    float acc[T::kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup
    StageCursor<C::kStages> read;

    for (int turn = 0; segments.next(s); ++turn) {
      if constexpr (T::kPingPong) {
        if (turn % 2 != group) {  // the other warpgroup's tile: skip its stages
          read.advance(s.k_end - s.k_begin);
          continue;
        }
        if (turn > 0) named_barrier_sync(1 + group, 256);  // after the other warpgroup's wgmma
      }
      const int last = mma_tile(acc, smem, tiles, read, s.k_end - s.k_begin, release);
      if constexpr (T::kPingPong) {
        if (segments.more()) named_barrier_arrive(2 - group, 256);  // the other warpgroup's turn
      }
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      release(last);             // the next tile's loads wait for it

      bool stores = true;
      if constexpr (T::kGeneral) {
        stores =
            complete_tile<T::kTileWarps>(acc, partial, work, s, cluster, (warp - 4) % T::kTileWarps,
                                         [&](int c) { return c * C::kCluster + rank; });
      }
      if (!stores) continue;  // another cluster stores this tile
      const TileIndex tile = tile_at(s.tile);
      const int m = tile.m * C::kBlockM + row + warp % 4 * 16, n = tile.n * C::kBlockN;
      if (!T::kGeneral || out.c == nullptr) {
        tma_store::store_tile<T::kStoreBuffers>(acc, &map_c, smem.boxes[warp - 4], m, n);
      } else {
        store_tile_unaligned(acc, out, e, smem.boxes[warp - 4], m, n);
      }
    }
    if (lane == 0) tma_store_wait_read<0>();
  }
  if constexpr (C::kCluster > 1) cluster_sync();  // no block exits while another sends to it
}

/// Launches a plan of configuration C and operands of these layouts.
template <class C, Major kMajorA, Major kMajorB>
void launch_stream_k_tiles(const Plan& plan, Stream stream) {
  using T = Traits<C, kMajorA, kMajorB>;
  launch_padding(plan.a, stream);
  launch_padding(plan.b, stream);
  LaunchConfig config{dim3(static_cast<unsigned>(plan.blocks)), dim3(T::kThreads), T::kSmemBytes};
  config.cluster = C::kCluster;
  config.dependent = launches_dependent(plan.tma.problem, T::kBlockM);
  launch(stream_k_tiles<C, kMajorA, kMajorB>, config, stream, plan.tma.a, plan.tma.b, plan.tma.c,
         plan.out, extents_of(plan.tma.problem), plan.work,
         PartialSums{plan.sums.as<float>(), plan.flags.as<int>()});
}

/// The plan of a GEMM with one configuration, for operands of these layouts: the library chooses
/// among three, chapter 11 tunes over many. tiles_to_share: the number of cluster tiles to cut into
/// k-blocks (stream-K). group: the group size of the raster order, in rows of cluster tiles.
template <class C, Major kMajorA, Major kMajorB>
Plan prepare_in(const Problem& p, const Buffers& at, int tiles_to_share, int group = C::kGroup) {
  using T = Traits<C, kMajorA, kMajorB>;
  Plan plan{TmaPlan{p, at}};
  plan.start = launch_stream_k_tiles<C, kMajorA, kMajorB>;
  plan.tma.fallback = p.k == 0;
  if (plan.tma.is_empty() || plan.tma.fallback) return plan;

  plan.a = padded_matrix(at.a, p.a_rows(), p.a_cols(), p.lda, "padded a");
  plan.b = padded_matrix(at.b, p.b_rows(), p.b_cols(), p.ldb, "padded b");
  plan.tma.a = T::A::map(plan.a.base(), p.a_rows(), p.a_cols(), plan.a.base_pitch());
  plan.tma.b = T::B::map(plan.b.base(), p.b_rows(), p.b_cols(), plan.b.base_pitch());
  if (rows_are_16_byte_aligned(at.c, p.ldc) && tma_stores_rows_of(p.n)) {
    plan.tma.c = tma_store::output_map(p, at.c);
  } else {
    plan.out = {at.c, p.ldc};
  }
  if (!T::kGeneral && (plan.out.c != nullptr || tiles_to_share > 0)) {
    throw std::invalid_argument(
        "these tiles leave no registers for rows that TMA cannot store, or for stream-K");
  }

  plan.work = work_of(p, C::kBlockM * C::kCluster, C::kBlockN, C::kBlockK, group);
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

/// The same for operands of the problem's layout.
template <class C>
Plan prepare_with(const Problem& p, const Buffers& at, int tiles_to_share) {
  return with_majors(
      p, [&](auto a, auto b) { return prepare_in<C, a.value, b.value>(p, at, tiles_to_share); });
}

}  // namespace cookbook::gemm::any_shape
