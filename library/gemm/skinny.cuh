// SPDX-License-Identifier: MIT
/// @file
/// A GEMM with 2 to 32 rows or columns of C: W times a few vectors. Reading W takes the time, so
/// TMA keeps all of shared memory in flight. The tensor cores compute the GEMM transposed: outputs
/// are the rows of a wgmma and vectors its columns, because it has at least 64 rows but any
/// multiple of 8 columns. K is divided among the blocks of a cluster, which add their sums through
/// distributed shared memory. So the same kernel also computes C if it has few tiles and K is long.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "chapters/06_tma/level_7_one_in_flight.cuh"
#include "library/gemm/plan.cuh"
#include "common/device/cluster.cuh"
#include "common/device/vector.cuh"

namespace cookbook::gemm::any_shape {

/// kVectors: columns of a block's tile. kW, kX: the majors of W and of the vectors. kLoop: a
/// persistent grid; otherwise a cluster per tile.
template <int kVectors, Major kW, Major kX, bool kLoop = false>
struct SkinnyConfig {
  static constexpr Major kMajorA = kW, kMajorB = kX;
  static constexpr bool kPersistent = kLoop;
  static constexpr Swizzle kSwizzle = Swizzle::b128;
  static constexpr int kBlockM = 64;  // outputs
  static constexpr int kBlockN = kVectors, kBlockK = 64;
  static constexpr int kCluster = 1;          // no block loads for another
  static constexpr int kPitch = kBlockM + 4;  // of the sums of a vector: free of bank conflicts
  // The sums take the place of the stages, except where the next tile is loaded meanwhile.
  static constexpr int kOwnSums = kPersistent ? kBlockN * kPitch : 1;
  static constexpr int kBlocksPerSm = !kPersistent ? 2 : kVectors <= 16 ? 4 : 3;
  static constexpr int kRingBytes =  // of a part of an SM
      kPersistent ? 228 * 1024 / kBlocksPerSm - 2048 - int{sizeof(float)} * kOwnSums : 108 * 1024;
  static constexpr int kStages = kRingBytes / (128 * (kBlockM + kBlockN));
  static constexpr int kConsumers = 1;
  static constexpr int kThreads = 128 * kConsumers + kWarpSize;  // + the producer's warp
};

template <class C>
struct SkinnySmem {
  using Config = C;
  uint64_t full[C::kStages], empty[C::kStages];
  alignas(16) float own_sums[C::kOwnSums];
  alignas(1024) Stage<C> stages[C::kStages];  // last: as many as there are k-blocks

  __device__ float* sums() {  // [vector][output]
    return C::kPersistent ? own_sums : reinterpret_cast<float*>(stages);
  }
  static constexpr size_t bytes(int k_blocks) {
    if (C::kPersistent) return sizeof(SkinnySmem);
    const size_t stages = sizeof(Stage<C>) * static_cast<size_t>(std::min(k_blocks, C::kStages));
    return offsetof(SkinnySmem, stages) + std::max(stages, sizeof(float) * C::kBlockN * C::kPitch);
  }
};

/// Stores four neighbouring outputs of a vector, those that exist; one store where they are
/// together.
__device__ __forceinline__ void store_four(const floatx4& sums, const Gemv& p, std::int64_t output,
                                           std::int64_t vector) {
  bf16* y = p.y + output * p.y_step + vector * p.y_pitch;
  if (p.y_step == 1 && output + 4 <= p.outputs && reinterpret_cast<std::uintptr_t>(y) % 8 == 0) {
    store_vector(y, Pack<std::uint32_t, 2>{to_pair<bf16>(sums[0], sums[1]),
                                           to_pair<bf16>(sums[2], sums[3])});
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (output + j < p.outputs) y[j * p.y_step] = __float2bfloat16_rn(sums[j]);
  }
}

/// A cluster computes kBlockM outputs of kBlockN vectors per tile; its blocks divide the k-blocks.
/// There are as many clusters as tiles, or fewer where the grid is persistent.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    skinny(const __grid_constant__ TensorMap map_w, const __grid_constant__ TensorMap map_x, Gemv p,
           int all_k_blocks, int tiles) {
  auto& smem = *dynamic_shared<SkinnySmem<C>>();
  constexpr int kReaders = 128 * C::kConsumers;  // threads
  const int warp = warp_idx_uniform(), lane = lane_idx();
  const int rank = static_cast<int>(cluster_block_rank()),
            splits = static_cast<int>(cluster_size());
  const int first_tile = static_cast<int>(blockIdx.x) / splits;
  const int clusters = static_cast<int>(gridDim.x) / splits;
  const int tiles_m = static_cast<int>((p.outputs + C::kBlockM - 1) / C::kBlockM);
  const int k_begin = rank * all_k_blocks / splits, k_end = (rank + 1) * all_k_blocks / splits;
  // Each block adds some of a tile's outputs, in the order of the terms: four neighbours per
  // thread.
  const auto add_and_store = [&](int t, int threads) {
    const std::int64_t first = std::int64_t{t % tiles_m} * C::kBlockM;
    const std::int64_t first_vector = std::int64_t{t / tiles_m} * C::kBlockN;
    const int vectors = static_cast<int>(min(std::int64_t{C::kBlockN}, p.batch - first_vector));
    constexpr int kFours = C::kBlockM / 4;
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = rank * threads + thread; i < kFours * vectors; i += splits * threads) {
      // Neighbouring threads store neighbouring elements.
      const int o = (p.y_step == 1 ? i % kFours : i / vectors) * 4;
      const int vector = p.y_step == 1 ? i / kFours : i % vectors;
      float* mine = smem.sums() + vector * C::kPitch + o;
      floatx4 sum{};
      if constexpr (C::kPersistent) {
        sum = load_vector<floatx4>(mine);
      } else {
#pragma unroll 8  // loads in flight
        for (int r = 0; r < splits; ++r) {
          const floatx4 term = load_vector<floatx4>(map_shared(mine, static_cast<uint32_t>(r)));
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[j] += term[j];
        }
      }
      store_four(sum, p, first + o, first_vector + vector);
    }
  };

  if (warp == kReaders / kWarpSize) {  // the producer: starts loading before the others start
    if (elect_one()) {
      tma_prefetch_descriptor(&map_w);
      tma_prefetch_descriptor(&map_x);
      init_barriers(smem, 4 * C::kConsumers);
    }
    __syncwarp();
    named_barrier_arrive(1, C::kThreads);
    if (elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = first_tile; t < tiles; t += clusters) {
        const TileIndex tile{t % tiles_m, t / tiles_m};
        for (int k_block = k_begin; k_block < k_end; ++k_block) {
          load_next(smem, write, &map_w, &map_x, tile, k_block);
        }
      }
    }
    __syncwarp();
  } else {
    named_barrier_sync(1, C::kThreads);  // the barriers are initialised
    const int row = warp / 4 * 64;       // this warpgroup's first output
    const Descriptors<C> operands(smem.stages[0], row);
    const auto release = [&](int stage) {
      if (lane == 0) mbarrier_arrive(&smem.empty[stage]);
    };
    StageCursor<C::kStages> read;
    for (int t = first_tile; t < tiles; t += clusters) {
      float acc[1][C::kBlockN / 2] = {};
      const int last = mma_tile(acc, smem, operands, read, k_end - k_begin, release);
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      if constexpr (C::kPersistent) {
        release(last);
      } else {
        named_barrier_sync(1, kReaders);  // all warpgroups have read all stages
      }
      float* at = smem.sums() + lane % 4 * 2 * C::kPitch + row + warp % 4 * 16 + lane / 4;
#pragma unroll
      for (int j = 0; j < C::kBlockN / 8; ++j, at += 8 * C::kPitch) {
        at[0] = acc[0][4 * j], at[C::kPitch] = acc[0][4 * j + 1];
        at[8] = acc[0][4 * j + 2], at[C::kPitch + 8] = acc[0][4 * j + 3];
      }
      if constexpr (C::kPersistent) {
        named_barrier_sync(1, kReaders);
        add_and_store(t, kReaders);
        named_barrier_sync(1, kReaders);  // the next tile's sums replace these
      }
    }
  }

  if constexpr (!C::kPersistent) {
    cluster_sync();
    add_and_store(first_tile, C::kThreads);
    cluster_sync();  // no block exits while another reads its sums
  }
}

/// The number of blocks that divide the k-blocks of a tile: at most `blocks` in all, each with
/// k-blocks, and at most eight in a cluster.
inline int skinny_splits(std::int64_t tiles, int k_blocks, std::int64_t blocks) {
  int splits = 1;
  while (splits < 8 && 2 * splits * tiles <= blocks && 2 * splits <= k_blocks) splits *= 2;
  return splits;
}

template <class C>
void launch_skinny(const Plan& plan, Stream stream) {
  launch_padding(plan.a, stream);
  launch_padding(plan.b, stream);
  const int k_blocks = plan.work.k_blocks;
  LaunchConfig config{dim3(static_cast<unsigned>(plan.blocks)), dim3(C::kThreads),
                      SkinnySmem<C>::bytes(k_blocks)};
  config.cluster = plan.splits.count;
  launch(skinny<C>, config, stream, plan.tma.a, plan.tma.b, plan.gemv, k_blocks, plan.work.tiles());
}

/// Fills the plan of a GEMM as W times a few vectors, for tiles of configuration C, except for the
/// blocks: extents, tensor maps, work.
template <class C>
void map_vectors(Plan& plan, const Problem& p, const Buffers& at) {
  plan.gemv = gemv_of(p, at);
  plan.a = padded_matrix(at.a, p.a_rows(), p.a_cols(), p.lda, "padded a");
  plan.b = padded_matrix(at.b, p.b_rows(), p.b_cols(), p.ldb, "padded b");
  using W = typename Stage<C>::A;
  using X = typename Stage<C>::B;
  const bool w_is_a = p.n <= p.m;
  const PaddedMatrix &w = w_is_a ? plan.a : plan.b, &x = w_is_a ? plan.b : plan.a;
  plan.tma.a = W::map(w.base(), w.rows, w.cols, w.base_pitch());
  plan.tma.b = X::map(x.base(), x.rows, x.cols, x.base_pitch());
  plan.work.tiles_m = ceil_div(static_cast<int>(plan.gemv.outputs), C::kBlockM);
  plan.work.tiles_n = ceil_div(static_cast<int>(plan.gemv.batch), C::kBlockN);
  plan.work.k_blocks = ceil_div(static_cast<int>(p.k), C::kBlockK);
}

/// splits: the number of blocks that divide the k-blocks of a tile; 0: as many as read W fastest.
template <class C>
Plan prepare_skinny_in(const Problem& p, const Buffers& at, int splits = 0) {
  Plan plan{TmaPlan{p, at}};
  plan.start = launch_skinny<C>;
  map_vectors<C>(plan, p, at);
  const int tiles = plan.work.tiles(), sms = device_info().sm_count;
  if (C::kPersistent) {
    plan.blocks = std::min(tiles, C::kBlocksPerSm * sms);
    return plan;
  }
  // One block per SM reads W fast enough, or on every other SM if little else is loaded. More
  // splits only add starts and exchanges.
  const int wanted = C::kBlockN == 8 ? sms / 2 : sms;
  plan.splits.count = splits > 0 ? splits : skinny_splits(tiles, plan.work.k_blocks, wanted);
  plan.blocks = tiles * plan.splits.count;
  return plan;
}

/// Whether there are few vectors, and more tiles of outputs than blocks are resident.
inline bool skinny_loops(const Gemv& g, int sm_count) {
  return g.batch <= kFewVectors && g.outputs > std::int64_t{64} * 3 * sm_count;
}

/// The plan of a GEMM with few vectors (splits 0: as many as read W fastest), or of one with few
/// tiles of 64 x 64, each of which a cluster of `splits` blocks computes.
template <Major kW>
Plan prepare_skinny_for(const Problem& p, const Buffers& at, const Gemv& g, int splits) {
  const bool loops = splits == 0 && skinny_loops(g, device_info().sm_count);
  const int width = splits > 0 ? 64 : skinny_width(g);
  if (!x_rows_are_vectors(p)) {
    return loops ? prepare_skinny_in<SkinnyConfig<64, kW, Major::mn, true>>(p, at)
                 : prepare_skinny_in<SkinnyConfig<64, kW, Major::mn>>(p, at, splits);
  }
  if (loops) {
    return width <= 16 ? prepare_skinny_in<SkinnyConfig<16, kW, Major::k, true>>(p, at)
                       : prepare_skinny_in<SkinnyConfig<32, kW, Major::k, true>>(p, at);
  }
  switch (width) {
    case 8: return prepare_skinny_in<SkinnyConfig<8, kW, Major::k>>(p, at);
    case 16: return prepare_skinny_in<SkinnyConfig<16, kW, Major::k>>(p, at);
    case 32: return prepare_skinny_in<SkinnyConfig<32, kW, Major::k>>(p, at);
    default: return prepare_skinny_in<SkinnyConfig<64, kW, Major::k>>(p, at, splits);
  }
}
inline Plan prepare_skinny(const Problem& p, const Buffers& at, int splits = 0) {
  const Gemv g = gemv_of(p, at);
  return g.w_rows_are_outputs ? prepare_skinny_for<Major::k>(p, at, g, splits)
                              : prepare_skinny_for<Major::mn>(p, at, g, splits);
}

}  // namespace cookbook::gemm::any_shape
