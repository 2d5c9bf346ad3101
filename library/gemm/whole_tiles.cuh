// SPDX-License-Identifier: MIT
/// @file
/// Tiles that are assigned whole, where TMA stores C. With few tiles per SM the start
/// and the end of a block count, so this kernel has neither stream-K nor a path for odd pitches,
/// and differs from `stream_k_tiles` in three places:
///
/// - The producer starts loading before the other warps have started.
/// - Blocks form no clusters. Only stages that are filled again are released.
/// - The last tile's boxes of C take the place of A in the stages, so none waits for another.
///
/// It can also compute tiles of the transpose of C, which may have any multiple of 16 rows of C.
#pragma once

#include <algorithm>

#include "library/gemm/plan.cuh"

namespace cookbook::gemm::any_shape {

/// kWarpgroups: consumers, with kM / kWarpgroups rows each. kLoop: a persistent grid; otherwise one
/// block per tile. kTransposedC: a tile of the transpose of C: its kM rows are columns of C.
template <int kM, int kN, int kDepth, int kWarpgroups, bool kLoop = false,
          bool kTransposedC = false>
struct TileConfig {
  static constexpr int kBlockM = kM, kBlockN = kN, kBlockK = 64;
  static constexpr int kStages = kDepth;
  static constexpr int kCluster = 1;  // every block loads its own tiles
  static constexpr int kConsumers = kWarpgroups;
  static constexpr bool kPersistent = kLoop;
  static constexpr bool kTransposed = kTransposedC;
};

/// Tiles of the transpose of C, a block per tile.
template <int kM, int kN, int kDepth, int kWarpgroups>
using TransposedConfig = TileConfig<kM, kN, kDepth, kWarpgroups, false, true>;

template <class C, Major kA, Major kB>
struct TileTraits : C {
  static constexpr Major kMajorA = kA, kMajorB = kB;
  static constexpr Swizzle kSwizzle = Swizzle::b128;
  // B's columns along the span are loaded in whole panels of 64: fewer stages may fit.
  static constexpr int kColumns = kB == Major::k ? C::kBlockN : (C::kBlockN + 63) / 64 * 64;
  static constexpr int kStageBytes = (C::kBlockM + kColumns) * C::kBlockK * 2 + 16;  // + barriers
  static constexpr int kStages = std::min(C::kStages, (232448 - 1024) / kStageBytes);
  static constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;  // per warpgroup
  static constexpr int kAccumulators = kMmaM * C::kBlockN / 2;
  static constexpr bool kMovesRegisters = kAccumulators > 96;  // from producer to consumers
  static constexpr int kProducer = 4 * C::kConsumers;          // its warp
  static constexpr int kThreads = 128 * C::kConsumers + (kMovesRegisters ? 128 : kWarpSize);
  static constexpr int kBoxes = (C::kBlockN + 63) / 64;  // across a tile
  static_assert(kBoxes <= kStages && kMmaM >= 1);
  static constexpr int kBoxRows = std::min(64, C::kBlockN);  // of C, where the tile is transposed
  static_assert(!C::kTransposed || (kMmaM == 1 && !C::kPersistent));
};

template <class T>
struct TileSmem {
  using Config = T;
  // For tiles that are not a block's last one: two boxes per warp where they fit.
  static constexpr int kRingBytes = T::kStages * (int{sizeof(Stage<T>)} + 16);
  static constexpr int kStoreBuffers =
      kRingBytes + 4 * T::kConsumers * 2 * kBoxBytes <= 232448 ? 2 : 1;
  static constexpr int kBoxBytesOfWarp = T::kPersistent ? kStoreBuffers * kBoxBytes : 16;
  Stage<T> stages[T::kStages];
  unsigned char boxes[T::kPersistent ? 4 * T::kConsumers : 1][kBoxBytesOfWarp];
  uint64_t full[T::kStages], empty[T::kStages];
};

/// Stores a warp's rows of the accumulators from boxes in the stages, which must not be in use: a
/// box per stage, in the place of the same 16 rows of A. The last box overlaps the one before where
/// the tile's width is no multiple of 64. row_in_tile: of the warpgroup; row, col: the warp's first
/// element of C.
template <class T, int kMmaM, int kAccumulators>
__device__ __forceinline__ void store_from_stages(const float (&acc)[kMmaM][kAccumulators],
                                                  const TensorMap* map_c, Stage<T>* stages,
                                                  int row_in_tile, int row, int col) {
#pragma unroll
  for (int i = 0; i < kMmaM; ++i) {
    const int offset = (row_in_tile + 64 * i) * 128 + warp_idx() % 4 * kBoxBytes;
#pragma unroll
    for (int b = 0; b < T::kBoxes; ++b) {
      const int across = 64 * b < T::kBlockN - 64 ? 64 * b : T::kBlockN - 64;
      unsigned char* box = stages[b].a + offset;
      __syncwarp();  // lane 0 has stored the previous box alone; stmatrix needs the whole warp
      tma_store::pack_columns(box, acc[i], across);
      fence_proxy_async();  // every lane's writes, before TMA reads them
      __syncwarp();
      if (lane_idx() == 0) {
        tma_store_2d(map_c, box, col + across, row + 64 * i);
        tma_store_commit();
      }
    }
  }
}

/// The same for a tile of the transpose of C. A warpgroup's 64 rows of the accumulators are 64
/// columns of C, so its four warps fill a box of 64 rows of C together, in the place of the
/// warpgroup's 64 rows of A in a stage. row, col: the warpgroup's first element of C.
template <class T, int kAccumulators>
__device__ __forceinline__ void store_transposed(const float (&acc)[1][kAccumulators],
                                                 const TensorMap* map_c, Stage<T>* stages,
                                                 int row_in_tile, int row, int col) {
  const int warpgroup = row_in_tile / 64, lane = lane_idx();
  const int matrix = lane / 8, chunk = warp_idx() % 4 * 2 + matrix % 2;
#pragma unroll
  for (int b = 0; b < T::kBoxes; ++b) {
    const int first = std::min(64 * b, T::kBlockN - T::kBoxRows);  // row of C in the tile
    unsigned char* box = stages[b].a + row_in_tile * 128;
#pragma unroll
    for (int j = 0; j < T::kBoxRows / 16; ++j) {  // 16 rows of C at a time
      const float* d = &acc[0][first / 2 + 8 * j];
      const uint32_t r[4] = {to_pair<bf16>(d[0], d[1]),   // rows 0..7,  columns 0..7 of C
                             to_pair<bf16>(d[2], d[3]),   // rows 0..7,  columns 8..15
                             to_pair<bf16>(d[4], d[5]),   // rows 8..15, columns 0..7
                             to_pair<bf16>(d[6], d[7])};  // rows 8..15, columns 8..15
      const int byte = (16 * j + matrix / 2 * 8 + lane % 8) * 128 + chunk * 16;
      stmatrix_x4_trans(box + swizzle_address<Swizzle::b128>(byte), r);  // [stage]
    }
  }
  fence_proxy_async();  // every thread's writes, before TMA reads them
  named_barrier_sync(2 + warpgroup, 128);
  if (warp_idx() % 4 == 0 && lane == 0) {
#pragma unroll
    for (int b = 0; b < T::kBoxes; ++b) {
      const int first = std::min(64 * b, T::kBlockN - T::kBoxRows);
      tma_store_2d(map_c, stages[b].a + row_in_tile * 128, col, row + first);
    }
    tma_store_commit();
  }
}

template <class C, Major kMajorA, Major kMajorB>
__global__ void __launch_bounds__(TileTraits<C, kMajorA, kMajorB>::kThreads, 1)
    whole_tiles(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                const __grid_constant__ TensorMap map_c, const __grid_constant__ Work work) {
  using T = TileTraits<C, kMajorA, kMajorB>;
  auto& smem = *dynamic_shared<TileSmem<T>>();
  const int warp = warp_idx_uniform(), warpgroup = warp / 4, lane = lane_idx();
  const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);

  if (warp == T::kProducer && elect_one()) {
    tma_prefetch_descriptor(&map_a);
    tma_prefetch_descriptor(&map_b);
    init_barriers(smem, T::kProducer);  // readers: the consumers' warps
  }
  __syncwarp();
  allow_next_launch();
  if (warp == T::kProducer) {
    named_barrier_arrive(1, T::kProducer * kWarpSize + kWarpSize);
  } else if (warp < T::kProducer) {
    named_barrier_sync(1, T::kProducer * kWarpSize + kWarpSize);  // the barriers are initialised
  }

  if (warpgroup == T::kConsumers) {
    if constexpr (T::kMovesRegisters) register_dealloc<40>();
    if (warp == T::kProducer && elect_one()) {
      StageCursor<T::kStages> write;
      wait_for_previous_launch();  // the prologue may run before; stores follow these loads
      for (int t = block; t < work.tiles(); t += blocks) {
        const TileIndex tile = work.at(t);
        for (int k_block = 0; k_block < work.k_blocks; ++k_block) {
          load_next(smem, write, &map_a, &map_b, tile, k_block);
        }
      }
    }
  } else {
    if constexpr (T::kMovesRegisters) register_alloc<232>();
    const int row = warpgroup * T::kMmaM * 64;  // this warpgroup's first row
    const Descriptors<T> tiles(smem.stages[0], row);
    // Number of loads that wait for a release from here on.
    int refills = (work.tiles() - block + blocks - 1) / blocks * work.k_blocks - T::kStages;
    const auto release = [&](int stage) {
      if (refills-- <= 0) return;
      if (lane == 0) mbarrier_arrive(&smem.empty[stage]);
    };
    float acc[T::kMmaM][T::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup
    StageCursor<T::kStages> read;
    for (int t = block; t < work.tiles(); t += blocks) {
      const int last = mma_tile(acc, smem, tiles, read, work.k_blocks, release);
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      release(last);             // the next tile's loads wait for it

      const TileIndex tile = work.at(t);
      const int m = tile.m * T::kBlockM + row + warp % 4 * 16, n = tile.n * T::kBlockN;
      if constexpr (T::kTransposed) {
        named_barrier_sync(2 + warpgroup, 128);  // the warpgroup has read its rows of A
        store_transposed<T>(acc, &map_c, smem.stages, row, n, tile.m * T::kBlockM + row);
      } else if (!T::kPersistent || t + blocks >= work.tiles()) {
        named_barrier_sync(2 + warpgroup, 128);  // the warpgroup has read its rows of A
        store_from_stages<T>(acc, &map_c, smem.stages, row, m, n);
      } else if constexpr (T::kPersistent) {
        tma_store::store_tile<TileSmem<T>::kStoreBuffers>(acc, &map_c, smem.boxes[warp], m, n);
      }
    }
    if (lane == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
}

/// Launches a plan of prepare_whole_in.
template <class C, Major kMajorA, Major kMajorB>
void launch_whole(const Plan& plan, Stream stream) {
  using T = TileTraits<C, kMajorA, kMajorB>;
  launch_padding(plan.a, stream);
  launch_padding(plan.b, stream);
  LaunchConfig config{dim3(static_cast<unsigned>(plan.blocks)), dim3(T::kThreads),
                      sizeof(TileSmem<T>)};
  config.dependent = launches_dependent(plan.tma.problem, T::kBlockM);
  launch(whole_tiles<C, kMajorA, kMajorB>, config, stream, plan.tma.a, plan.tma.b, plan.tma.c,
         plan.work);
}

template <class C, Major kMajorA, Major kMajorB>
Plan prepare_whole_in(const Problem& p, const Buffers& at) {
  using T = TileTraits<C, kMajorA, kMajorB>;
  Plan plan{TmaPlan{p, at}};
  plan.start = launch_whole<C, kMajorA, kMajorB>;
  plan.a = padded_matrix(at.a, p.a_rows(), p.a_cols(), p.lda, "padded a");
  plan.b = padded_matrix(at.b, p.b_rows(), p.b_cols(), p.ldb, "padded b");
  const PaddedMatrix& rows = T::kTransposed ? plan.b : plan.a;  // operands of the tile
  const PaddedMatrix& cols = T::kTransposed ? plan.a : plan.b;
  plan.tma.a = Stage<T>::A::map(rows.base(), rows.rows, rows.cols, rows.base_pitch());
  plan.tma.b = Stage<T>::B::map(cols.base(), cols.rows, cols.cols, cols.base_pitch());
  plan.tma.c = T::kTransposed ? matrix_map(at.c, p.m, p.n, p.ldc, T::kBoxRows, 64, Swizzle::b128)
                              : tma_store::output_map(p, at.c);
  Problem of_tiles = p;
  if (T::kTransposed) std::swap(of_tiles.m, of_tiles.n);
  plan.work = work_of(of_tiles, T::kBlockM, T::kBlockN, T::kBlockK, 8);
  const int tiles = plan.work.tiles();
  plan.blocks = T::kPersistent ? std::min(tiles, grid_blocks<T>()) : tiles;
  return plan;
}

/// The plan of a GEMM with tiles C, assigned whole. TMA must be able to store C.
template <class C>
Plan prepare_whole(const Problem& p, const Buffers& at) {
  return with_majors(p, [&](auto a, auto b) {
    if constexpr (C::kTransposed) {
      return prepare_whole_in<C, b.value, a.value>(p, at);
    } else {
      return prepare_whole_in<C, a.value, b.value>(p, at);
    }
  });
}

}  // namespace cookbook::gemm::any_shape
