// SPDX-License-Identifier: MIT
// Decode, level 3: one launch. The block that ends last for a tile of rows merges the tile's
// shares, so there is no second kernel to wait for. It computes the weights of all shares first:
// then no load of an output waits for another.
#pragma once

#include <algorithm>

#include "chapters/10_flash_attention/decode_level_2_gqa_packed.cuh"

namespace cookbook::attention {

/// Adds what all blocks have of query row `row`. One warp.
template <class C>
__device__ __forceinline__ Partial<C::kHeadDim / 32> merged_shares(const Shares& in,
                                                                   const Shape& shape, int64_t row,
                                                                   int64_t rows, int shares) {
  constexpr int kPerLane = C::kHeadDim / 32, kInFlight = 16;
  const int lane = lane_idx();
  Partial<kPerLane> total;
  for (int n = lane; n < shares; n += kWarpSize) {
    total.max = fmaxf(total.max, __ldcg(&in.max[n * rows + row]));
  }
  total.max = warp_max(total.max);
  const float offset = total.max == kMinusInfinity ? 0.0f : total.max * shape.scale_log2;
  for (int first = 0; first < shares; first += kInFlight) {
    float max[kInFlight], sum[kInFlight], o[kInFlight][kPerLane];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (first + i >= shares) break;
      const int64_t at = (first + i) * rows + row;
      max[i] = __ldcg(&in.max[at]);
      sum[i] = __ldcg(&in.sum[at]);
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) {
        o[i][x] = __ldcg(&in.o[at * C::kHeadDim + x * 32 + lane]);
      }
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (first + i >= shares) break;
      const float weight = ex2_approx_ftz(max[i] * shape.scale_log2 - offset);
      total.sum += weight * sum[i];
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) total.o[x] += weight * o[i][x];
    }
  }
  return total;
}

/// Stores `o` and `lse` of row `r` of a KV head. One warp.
template <class C>
__device__ __forceinline__ void store_row(const Partial<C::kHeadDim / 32>& total,
                                          typename C::Element* o, float* lse, const Shape& shape,
                                          const PackedBlock& block, int r) {
  const float inverse = total.sum == 0.0f ? 0.0f : 1.0f / total.sum;
  const int64_t row = block.q_row(shape, r);
#pragma unroll
  for (int x = 0; x < C::kHeadDim / 32; ++x) {
    o[row * shape.pitch + lane_idx() + 32 * x] =
        from_float<typename C::Element>(total.o[x] * inverse);
  }
  if (lane_idx() == 0) {
    const int head = block.kv_head * block.sharing + r % block.sharing;
    lse[shape.lse_index(block.batch, r / block.sharing, head)] =
        total.sum == 0.0f ? kMinusInfinity : total.max * shape.scale_log2 * kLn2 + logf(total.sum);
  }
}

/// counters[tile of rows]: zero before and after.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    one_launch_kernel(const typename C::Element* q, const typename C::Element* k,
                      const typename C::Element* v, typename C::Element* o, float* lse,
                      Shares shares_out, unsigned* counters, Shape shape, int row_tiles,
                      int keys_per_share, int64_t rows, int shares) {
  __shared__ int is_last;
  const PackedBlock block(shape, row_tiles, C::kRows);
  attend_packed<C>(q, k, v, shape, block, keys_per_share, [&](int r, const auto& partial) {
    if (shares == 1) {
      store_row<C>(partial, o, lse, shape, block, r);
    } else {
      store_share<C>(shares_out, partial, block.q_row(shape, r), block.share, rows);
    }
  });
  if (shares == 1) return;

  __threadfence();
  __syncthreads();
  unsigned* counter = &counters[blockIdx.x % (gridDim.x / shares)];  // the share varies slowest
  if (threadIdx.x == 0) {
    is_last = atomicAdd(counter, 1u) == static_cast<unsigned>(shares - 1);
    __threadfence();
  }
  __syncthreads();
  if (is_last == 0) return;
  for (int r = warp_idx(); r < C::kRows && block.first_row + r < block.packed_rows;
       r += C::kWarps) {
    const int packed = block.first_row + r;
    const auto total =
        merged_shares<C>(shares_out, shape, block.q_row(shape, packed), rows, shares);
    store_row<C>(total, o, lse, shape, block, packed);
  }
  if (threadIdx.x == 0) *counter = 0;  // for the next run
}

/// Calls f(Config{}) for blocks of kWarps warps. Blocks of eight need three stages per warp.
template <class CaseT, int kTiles, int kWarps, class F>
void with_warps(const F& f) {
  if constexpr (kWarps == 4) {
    with_stages<CaseT, kTiles>(f);
  } else {
    f(GqaPackedConfig < CaseT, kTiles, CaseT::kHeadDim == 128 ? 3 : 6, kWarps > {});
  }
}

/// The host side of this level and of those that follow. kTiles: tiles of 16 query rows per block;
/// kWarps: per block.
template <int kTiles, int kWarps = 4>
struct OneLaunchPlan {
  Problem problem;
  Buffers buffers;
  int row_tiles;
  int64_t blocks;  // per share
  SharedOut out;
  DeviceMemory counters;

  static OneLaunchPlan make(const Problem& p, const Buffers& buffers) {
    const Shape& s = p.shape;
    const int row_tiles = static_cast<int>(ceil_div(GqaPacked::rows_of(p), 16 * kTiles));
    const int64_t blocks = int64_t{row_tiles} * s.heads_kv * s.batch;
    // As many blocks as run at a time: a second wave would begin with empty pipelines.
    const int64_t resident = 8 / kWarps * device_info().sm_count;
    const int64_t wanted = blocks * std::max<int64_t>(1, resident / std::max<int64_t>(blocks, 1));
    OneLaunchPlan plan{
        p,
        buffers,
        row_tiles,
        blocks,
        SharedOut(p, blocks, wanted, 256),
        DeviceMemory(static_cast<size_t>(std::max<int64_t>(blocks, 1)) * sizeof(unsigned),
                     "counters")};
    plan.counters.fill(0);
    return plan;
  }

  void start(Stream stream) const {
    const Shape& s = problem.shape;
    dispatch<bf16, half>(problem, buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      with_warps<decltype(c), kTiles, kWarps>([&](auto config) {
        using C = decltype(config);
        launch(one_launch_kernel<C>,
               {static_cast<unsigned>(blocks * out.shares), C::kThreads, C::kSmemBytes}, stream, q,
               k, v, o, buffers.lse, out.at(C::kHeadDim), counters.template as<unsigned>(), s,
               row_tiles, out.keys_per_share, out.rows, out.shares);
      });
    });
  }
};

struct OneLaunch : GqaPacked {
  using Plan = OneLaunchPlan<1>;
  static constexpr LevelText text{
      .name = "one_launch",
      .changed = "the last block of a tile of rows merges what all blocks have of it",
      .expect =
          "one sequence: 4 us less, a second launch and its chain of loads; many sequences: no "
          "gain",
      .cost = "a counter per tile of rows, and a block that works on alone",
  };
  static Plan prepare(const Problem& p, const Buffers& buffers) { return Plan::make(p, buffers); }
  static Claims claims(const Problem& p) { return byte_claims(p, 16); }
  static void run(const Plan& plan, Stream stream) { plan.start(stream); }
};

}  // namespace cookbook::attention
