// SPDX-License-Identifier: MIT
/// @file
/// Level 6 for 2 to 16 rows or columns of C: W times a batch of vectors. Reading W still takes the
/// time, so W goes from global memory straight into the operands of mma.sync, 16 bytes per lane and
/// load, and through no shared memory. K is divided among the blocks of a cluster, which add their
/// sums through distributed shared memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "chapters/08_persistent/plan.cuh"
#include "chapters/08_persistent/skinny_operands.cuh"
#include "common/device/cluster.cuh"

namespace cookbook::gemm::any_shape {

/// The largest batch: the 16 rows of an MMA. For more, each operand of W would be used by several
/// MMAs, whose sums take the registers of loads in flight; tiles of 64 rows were measured faster.
inline constexpr std::int64_t kMostVectors = 16;

/// A cluster computes splits.wide * kOutputs outputs of all vectors, its blocks one split each.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm) skinny(Gemv p, Splits splits) {
  auto& shared = *dynamic_shared<typename C::Sums>();
  const int g = lane_idx() / 4, t = lane_idx() % 4, warp = warp_idx();
  const int deep = C::kWarps / splits.wide;  // warps that divide the terms of a block
  const int split = static_cast<int>(blockIdx.x % splits.count);
  const int outputs = splits.wide * C::kOutputs;  // of the cluster
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / splits.count) * outputs;
  const std::int64_t begin = split * splits.depth, end = min(begin + splits.depth, p.depth);

  WeightsOfWarp<C> w(p, first + warp % splits.wide * C::kOutputs);
  const bf16* x[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {  // vectors past the last are read as the last
    x[half] = p.x + min(std::int64_t{8 * half + g}, p.batch - 1) * p.x_pitch;
  }

  float acc[C::kColumnTiles][4] = {};
  const auto add = [&](auto masked, std::int64_t k) {  // k: of the warp's next round
    Words terms[C::kBlocks][2];
    w.template load<masked.value>(p.pitch, k + 8 * t, end);
#pragma unroll
    for (int block = 0; block < C::kBlocks; ++block) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        terms[block][half] =
            load_terms<C, masked.value>(x[half], p.x_step, k + 32 * block + 8 * t, end);
      }
    }
#pragma unroll
    for (int block = 0; block < C::kBlocks; ++block) {
      const Words &low = terms[block][0], &high = terms[block][1];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int j = 0; j < C::kColumnTiles; ++j) {
          uint32_t b[2];
          w.operand(b, block, half, j);
          mma_m16n8k16<bf16>(
              acc[j], {low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]}, b);
        }
      }
    }
  };
  std::int64_t k = begin + warp / splits.wide * C::kDepth;
#pragma unroll 1
  for (; k + C::kDepth <= end; k += deep * C::kDepth) add(std::false_type{}, k);
  if (k < end) add(std::true_type{}, k);

  store_accumulators<C>(acc, shared.of_warps[warp]);
  cluster_sync();
  // Each block of the cluster adds some of the outputs, in the order of the terms.
  constexpr int kSumsOfWarp = sizeof shared.of_warps[0] / sizeof(float);
  const int all = outputs * static_cast<int>(p.batch), thread = static_cast<int>(threadIdx.x);
  for (int i = split * C::kThreads + thread; i < all; i += splits.count * C::kThreads) {
    const int o = i % outputs, vector = i / outputs;
    if (first + o >= p.outputs) continue;
    const float* mine = &shared.of_warps[o / C::kOutputs][vector][C::position(o % C::kOutputs)];
    float sum = 0;
    int from = 0, offset = 0;  // block and warps
#pragma unroll 8               // loads in flight
    for (int j = 0; j < splits.count * deep; ++j) {
      sum += map_shared(mine, static_cast<uint32_t>(from))[offset];
      offset += splits.wide * kSumsOfWarp;
      if (offset == C::kWarps * kSumsOfWarp) offset = 0, ++from;
    }
    p.y[(first + o) * p.y_step + vector * p.y_pitch] = __float2bfloat16_rn(sum);
  }
  cluster_sync();  // no block exits while another reads its sums
}

/// How outputs and terms are divided so that all blocks are resident at once. Clusters do not fill
/// every SM, because a cluster lies within one GPC: so at most 0.85 of the blocks that would fit
/// without clusters, and small clusters first. Warps side by side read the same terms of the
/// vectors, so as many as leave 0.6; the other warps of a block divide its terms.
template <class C>
Splits skinny_splits(const Gemv& g, int sm_count) {
  const std::int64_t resident = std::int64_t{C::kBlocksPerSm} * sm_count;
  for (int wide = C::kWarps;; wide /= 2) {
    const std::int64_t tiles = cookbook::ceil_div<std::int64_t>(g.outputs, wide * C::kOutputs);
    const int round = C::kDepth * (C::kWarps / wide), most = wide > 1 ? 4 : 6;
    Splits splits = splits_of(tiles, g.depth, round, resident * 85 / 100, most);
    splits.wide = wide;
    if (wide == 1 || tiles * splits.count >= resident * 60 / 100) return splits;
  }
}

/// Whether `skinny` computes this GEMM: W can be loaded in vectors, and there are enough outputs.
/// With few outputs and long sums a cluster per tile leaves SMs without work, where stream-K has
/// some for all.
inline bool is_skinny(const Gemv& g, int sm_count) {
  if (g.batch > kMostVectors || !loads_vectors_of_w(g)) return false;
  return g.outputs >= 4 * sm_count || g.depth <= 8192;
}

template <class C>
void launch_skinny(const Plan& plan, Stream stream) {
  const std::int64_t tiles =
      cookbook::ceil_div<std::int64_t>(plan.gemv.outputs, plan.splits.wide * C::kOutputs);
  LaunchConfig config{dim3(static_cast<unsigned>(tiles * plan.splits.count)), dim3(C::kThreads),
                      sizeof(typename C::Sums)};
  config.cluster = plan.splits.count;
  launch(skinny<C>, config, stream, plan.gemv, plan.splits);
}

template <bool kRows, bool kVectorX>
Plan prepare_skinny_in(const Problem& p, const Buffers& at) {
  using C = SkinnyConfig<kRows, kVectorX>;
  Plan plan{TmaPlan{p, at}};
  plan.launch_product = launch_skinny<C>;
  plan.gemv = gemv_of(p, at);
  plan.splits = skinny_splits<C>(plan.gemv, device_info().sm_count);
  return plan;
}

/// The plan of a GEMM that is_skinny.
inline Plan prepare_skinny(const Problem& p, const Buffers& at) {
  const Gemv g = gemv_of(p, at);
  if (g.w_rows_are_outputs) {
    return loads_vectors_of_x(g) ? prepare_skinny_in<true, true>(p, at)
                                 : prepare_skinny_in<true, false>(p, at);
  }
  return loads_vectors_of_x(g) ? prepare_skinny_in<false, true>(p, at)
                               : prepare_skinny_in<false, false>(p, at);
}

}  // namespace cookbook::gemm::any_shape
