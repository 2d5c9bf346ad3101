// SPDX-License-Identifier: MIT
/// @file
/// GEMMs with few tiles and long K: some blocks, not only those of a cluster, divide
/// the k-blocks of a tile. Their partial sums go through L2 as by stream-K. There one block adds
/// all of them, one block after the other. Here each block adds a slice of the tile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "chapters/06_tma/level_7_one_in_flight.cuh"
#include "library/gemm/skinny.cuh"
#include "common/device/vector.cuh"

namespace cookbook::gemm::any_shape {

/// W times a few vectors as in skinny.cuh, but with larger tiles: 64 outputs per warpgroup times
/// kVectors. kW, kX: the majors of W and of the vectors. A block per SM.
template <int kWarpgroups, int kVectors, Major kW, Major kX>
struct SplitConfig {
  static constexpr Major kMajorA = kW, kMajorB = kX;
  static constexpr Swizzle kSwizzle = Swizzle::b128;
  static constexpr int kConsumers = kWarpgroups, kWarps = 4 * kConsumers;
  static constexpr int kBlockM = 64 * kConsumers;  // outputs
  static constexpr int kBlockN = kVectors, kBlockK = 64;
  static constexpr int kCluster = 1;          // no block loads for another
  static constexpr int kPacks = kBlockN / 8;  // of four accumulators per lane
  static constexpr int kColumns = kX == Major::k ? kBlockN : (kBlockN + 63) / 64 * 64;  // loaded
  static constexpr int kStages =
      std::min(12, (232448 - 1024) / (128 * (kBlockM + kColumns) + 16));  // + barriers
  static constexpr int kThreads = 128 * kConsumers + kWarpSize;           // + the producer's warp
};

/// Stores four accumulators of a lane: two outputs, eight apart, of two neighbouring vectors.
__device__ __forceinline__ void store_pack(const float (&d)[4], const Gemv& p, std::int64_t output,
                                           std::int64_t vector) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (output + 8 * half >= p.outputs) return;
    bf16* y = p.y + (output + 8 * half) * p.y_step + vector * p.y_pitch;
    if (p.y_pitch == 1 && vector + 2 <= p.batch && reinterpret_cast<std::uintptr_t>(y) % 4 == 0) {
      store_vector(y, to_pair<bf16>(d[2 * half], d[2 * half + 1]));
    } else {
      if (vector < p.batch) y[0] = __float2bfloat16_rn(d[2 * half]);
      if (vector + 1 < p.batch) y[p.y_pitch] = __float2bfloat16_rn(d[2 * half + 1]);
    }
  }
}

/// work.share: k-blocks of a block. partial.sums: (block, warp, pack, lane) of float4.
/// partial.flags: (block, warp); all are 0 before one launch and 1 before the next, so none has to
/// be reset.
template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    split_k(const __grid_constant__ TensorMap map_w, const __grid_constant__ TensorMap map_x,
            Gemv p, const __grid_constant__ Work work, int splits, PartialSums partial) {
  auto& smem = *dynamic_shared<pipeline::Smem<C>>();
  const int warp = warp_idx_uniform(), lane = lane_idx();
  const int block = static_cast<int>(blockIdx.x), split = block % splits;
  const TileIndex tile = work.at(block / splits);
  const int k_begin = split * work.share, k_end = min(k_begin + work.share, work.k_blocks);

  if (warp == C::kWarps) {  // the producer: starts loading before the others start
    if (elect_one()) {
      tma_prefetch_descriptor(&map_w);
      tma_prefetch_descriptor(&map_x);
      init_barriers(smem, C::kWarps);
    }
    __syncwarp();
    named_barrier_arrive(1, C::kThreads);
    if (elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = k_begin; k_block < k_end; ++k_block) {
        load_next(smem, write, &map_w, &map_x, tile, k_block);
      }
    }
    return;
  }

  const auto flag_of = [&](int of) { return &partial.flags[of * C::kWarps + warp]; };
  const auto sums_of = [&](int of) {  // this lane's first pack
    return reinterpret_cast<float4*>(partial.sums) + lane +
           std::int64_t{of * C::kWarps + warp} * (C::kPacks * kWarpSize);
  };
  const int ready = 1 - *flag_of(block);  // a flag with sums of this launch
  named_barrier_sync(1, C::kThreads);     // the barriers are initialised
  const int row = warp / 4 * 64;          // this warpgroup's first output
  const Descriptors<C> operands(smem.stages[0], row);
  StageCursor<C::kStages> read;
  float acc[1][C::kBlockN / 2];
  mma_tile(acc, smem, operands, read, k_end - k_begin, [&](int stage) {
    if (lane == 0) mbarrier_arrive(&smem.empty[stage]);
  });
  wgmma_wait<0>();
  wgmma_fence_operand(acc);  // the accumulators are read only from here
  float4* const to = sums_of(block);
#pragma unroll
  for (int i = 0; i < C::kPacks; ++i) {
    const float* d = &acc[0][4 * i];
    to[i * kWarpSize] = make_float4(d[0], d[1], d[2], d[3]);
  }
  __syncwarp();  // all lanes have written before lane 0 releases
  if (lane == 0) store_release(flag_of(block), ready);

  // A slice of the tile, from the same warp of all its blocks.
  const int first_block = block - split;
  for (int i = lane; i < splits; i += kWarpSize) {
    spin_wait_until_equal(flag_of(first_block + i), ready);
  }
  __syncwarp();
  const std::int64_t output = std::int64_t{tile.m} * C::kBlockM + row + warp % 4 * 16 + lane / 4;
  const std::int64_t vector = std::int64_t{tile.n} * C::kBlockN + lane % 4 * 2;
  const int begin = split * C::kPacks / splits, end = (split + 1) * C::kPacks / splits;
  // The latency of these loads is the time, so 16 are in flight. They are added in the order of
  // k, whichever block adds: the same bits in every run.
  const auto add_and_store = [&](auto packs, auto loads) {
    for (int pack = begin; pack < end; pack += packs.value) {
      float sums[packs.value][4] = {};
      for (int first = 0; first < splits; first += loads.value) {
        float4 terms[loads.value][packs.value];
#pragma unroll
        for (int i = 0; i < loads.value; ++i) {
          const float4* from = sums_of(first_block + first + i) + pack * kWarpSize;
#pragma unroll
          for (int j = 0; j < packs.value; ++j) {
            const bool exists = first + i < splits && pack + j < end;
            terms[i][j] = exists ? __ldcg(&from[j * kWarpSize]) : make_float4(0, 0, 0, 0);
          }
        }
#pragma unroll
        for (int i = 0; i < loads.value; ++i) {
#pragma unroll
          for (int j = 0; j < packs.value; ++j) {
            sums[j][0] += terms[i][j].x, sums[j][1] += terms[i][j].y;
            sums[j][2] += terms[i][j].z, sums[j][3] += terms[i][j].w;
          }
        }
      }
#pragma unroll
      for (int j = 0; j < packs.value; ++j) {
        if (pack + j < end) store_pack(sums[j], p, output, vector + 8 * (pack + j));
      }
    }
  };
  if (splits <= 4) {
    add_and_store(std::integral_constant<int, 4>{}, std::integral_constant<int, 4>{});
  } else if (splits <= 8) {
    add_and_store(std::integral_constant<int, 2>{}, std::integral_constant<int, 8>{});
  } else {
    add_and_store(std::integral_constant<int, 1>{}, std::integral_constant<int, 16>{});
  }
}

template <class C>
void launch_split_k(const Plan& plan, Stream stream) {
  launch_padding(plan.a, stream);
  launch_padding(plan.b, stream);
  LaunchConfig config{dim3(static_cast<unsigned>(plan.blocks)), dim3(C::kThreads),
                      sizeof(pipeline::Smem<C>)};
  config.cooperative = true;  // blocks wait for each other
  launch(split_k<C>, config, stream, plan.tma.a, plan.tma.b, plan.gemv, plan.work,
         plan.splits.count, PartialSums{plan.sums.as<float>(), plan.flags.as<int>()});
}

template <class C>
Plan prepare_split_k_in(const Problem& p, const Buffers& at, int splits) {
  Plan plan{TmaPlan{p, at}};
  plan.start = launch_split_k<C>;
  map_vectors<C>(plan, p, at);
  plan.work.group = 8;
  plan.work.share = ceil_div(plan.work.k_blocks, splits);
  plan.splits.count = ceil_div(plan.work.k_blocks, plan.work.share);  // none is without k-blocks
  plan.blocks = plan.work.tiles() * plan.splits.count;
  const auto blocks = static_cast<size_t>(plan.blocks);
  plan.sums = DeviceMemory(blocks * C::kBlockM * C::kBlockN * sizeof(float), "partial sums");
  plan.flags = DeviceMemory(blocks * C::kWarps * sizeof(int), "partial flags");
  plan.flags.fill(0);
  return plan;
}

/// The plan of a GEMM in tiles of 64 * kWarpgroups outputs x kVectors vectors, each of which
/// `splits` blocks compute: at most as many blocks as SMs.
template <int kWarpgroups, int kVectors>
Plan prepare_split_k(const Problem& p, const Buffers& at, int splits) {
  return with_majors(p, [&](auto a, auto b) {
    if (p.n <= p.m) {
      return prepare_split_k_in<SplitConfig<kWarpgroups, kVectors, a.value, b.value>>(p, at,
                                                                                      splits);
    }
    return prepare_split_k_in<SplitConfig<kWarpgroups, kVectors, b.value, a.value>>(p, at, splits);
  });
}

}  // namespace cookbook::gemm::any_shape
