// SPDX-License-Identifier: MIT
// Decode, level 3: one launch. The block that ends last for a tile of rows merges the tile's
// shares, so there is no second kernel to wait for. It computes the weights of all shares first:
// then no load of an output waits for another.
#pragma once

#include <algorithm>

#include "chapters/10_flash_attention/decode_level_2_gqa_packed.cuh"

namespace cookbook::attention {

/// Adds the shares of query row `row`, whose outputs are in `in`, and stores `o` and `lse`. All
/// lanes of a warp must call.
template <class C>
__device__ __forceinline__ void merge_shares(const Shares& in, typename C::Element* o, float* lse,
                                             const Shape& shape, int64_t row, int64_t lse_at,
                                             int64_t rows, int shares) {
  constexpr int kPerLane = C::kHeadDim / 32, kInFlight = 16;
  const int lane = lane_idx();
  float max = kMinusInfinity;
  for (int n = lane; n < shares; n += kWarpSize) max = fmaxf(max, __ldcg(&in.max[n * rows + row]));
  max = warp_max(max);
  const float offset = max == kMinusInfinity ? 0.0f : max * shape.scale_log2;
  float sum = 0, total[kPerLane] = {};
  for (int first = 0; first < shares; first += kInFlight) {
    float weight[kInFlight], part[kInFlight][kPerLane], part_sum[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int64_t at = min(first + i, shares - 1) * rows + row;
      weight[i] = __ldcg(&in.max[at]);
      part_sum[i] = __ldcg(&in.sum[at]);
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) {
        part[i][x] = __ldcg(&in.o[at * C::kHeadDim + x * 32 + lane]);
      }
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      weight[i] = first + i < shares ? ex2_approx_ftz(weight[i] * shape.scale_log2 - offset) : 0.0f;
      sum += weight[i] * part_sum[i];
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) total[x] += weight[i] * part[i][x];
    }
  }
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
  for (int x = 0; x < kPerLane; ++x) {
    o[row * shape.pitch + lane + 32 * x] = from_float<typename C::Element>(total[x] * inverse);
  }
  if (lane == 0) {
    lse[lse_at] = sum == 0.0f ? kMinusInfinity : max * shape.scale_log2 * kLn2 + logf(sum);
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
  attend_packed<C>(q, k, v, shares_out, shape, block, keys_per_share, rows);

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
    const int head = block.kv_head * block.sharing + packed % block.sharing;
    merge_shares<C>(shares_out, o, lse, shape, block.q_row(shape, packed),
                    shape.lse_index(block.batch, packed / block.sharing, head), rows, shares);
  }
  if (threadIdx.x == 0) *counter = 0;  // for the next run
}

/// The host side of levels 3 and 4. kTiles: tiles of 16 query rows per block.
template <int kTiles>
struct OneLaunchPlan {
  Problem problem;
  Buffers buffers;
  int row_tiles;
  int64_t blocks;  // per share
  SharedOut out;
  DeviceMemory counters;

  static OneLaunchPlan make(const Problem& p, const Buffers& buffers) {
    const Shape& s = p.shape;
    const int row_tiles = ceil_div(int64_t{s.seq_q} * (s.heads_q / s.heads_kv), 16 * kTiles);
    const int64_t blocks = int64_t{row_tiles} * s.heads_kv * s.batch;
    OneLaunchPlan plan{
        p,
        buffers,
        row_tiles,
        blocks,
        SharedOut(p, blocks, 4 * device_info().sm_count, 256),
        DeviceMemory(static_cast<size_t>(std::max<int64_t>(blocks, 1)) * sizeof(unsigned),
                     "counters")};
    plan.counters.fill(0);
    return plan;
  }

  void start(Stream stream) const {
    const Shape& s = problem.shape;
    dispatch(problem, buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using C = GqaPackedConfig<decltype(c), kTiles>;
      launch(one_launch_kernel<C>,
             {static_cast<unsigned>(blocks * out.shares), C::kThreads, C::kSmemBytes}, stream, q, k,
             v, o, buffers.lse, out.at(C::kHeadDim), counters.template as<unsigned>(), s, row_tiles,
             out.keys_per_share, out.rows, out.shares);
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
  static Claims claims(const Problem& p) {
    const double once = 2.0 * p.head_dim * static_cast<double>(p.k_rows());
    const int tiles = ceil_div(int64_t{p.shape.seq_q} * (p.shape.heads_q / p.shape.heads_kv), 16);
    return {Accesses("global", "async_load", "k").bytes(once * tiles, Relation::at_most),
            Accesses("global", "async_load", "v").bytes(once * tiles, Relation::at_most),
            Accesses("global", "async_load", "k").sectors_per_request(16)};
  }
  static void run(const Plan& plan, Stream stream) { plan.start(stream); }
};

}  // namespace cookbook::attention
