// SPDX-License-Identifier: MIT
// Level 1: one kernel. The scores stay in registers, because the online softmax of chapter 9 needs
// no row as a whole. As in level 0 a tile in shared memory serves many queries: a warp computes
// eight queries and a block 64, and the block copies every tile of 32 keys once for all of them.
// For the scores each lane computes one key, so no dot product is reduced across lanes. For the
// output each lane computes a few columns.
#pragma once

#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/softmax.cuh"
#include "common/device/vector.cuh"

namespace cookbook::attention {

template <class CaseT>
struct TiledConfig : CaseT {
  static constexpr int kWarps = 8;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRows = 8;                 // queries per warp
  static constexpr int kBlockM = kRows * kWarps;  // queries per block
  static constexpr int kBlockN = 32;              // keys per tile, one per lane
  // Pitch: four floats more than a row, so 16-byte reads of 32 rows at one column hit all banks
  // evenly.
  static constexpr int kPitch = CaseT::kHeadDim + 4;
  struct Smem {
    float q[kBlockM][CaseT::kHeadDim];  // (queries, d)
    float k[kBlockN][kPitch];           // (keys, d)
    float v[kBlockN][CaseT::kHeadDim];  // (keys, d)
  };
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    tiled_kernel(const typename C::Element* q, const typename C::Element* k,
                 const typename C::Element* v, typename C::Element* o, float* lse, Shape shape,
                 int query_tiles) {
  using V = Pack<float, C::kHeadDim / 32>;
  constexpr int kPerLane = C::kHeadDim / 32;  // a lane holds columns kPerLane * lane ...
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int lane = lane_idx(), warp_row = warp_idx() * C::kRows;
  const int first_query = static_cast<int>(blockIdx.x % query_tiles) * C::kBlockM;
  const int head_index = static_cast<int>(blockIdx.x / query_tiles);
  const int batch = head_index / shape.heads_q, head = head_index % shape.heads_q;

  // Step 1: copy the queries, once per block.
  for (int i = threadIdx.x; i < C::kBlockM * C::kHeadDim; i += C::kThreads) {
    const int row = i / C::kHeadDim, x = i % C::kHeadDim, query = first_query + row;
    smem.q[row][x] =
        query < shape.seq_q ? to_float(q[shape.q_row(batch, query, head) * shape.pitch + x]) : 0;
  }

  float acc[C::kRows][kPerLane] = {};
  float max[C::kRows], sum[C::kRows];
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) max[r] = kMinusInfinity, sum[r] = 0;

  const int last_query = min(first_query + C::kBlockM, shape.seq_q) - 1;
  const int keys = shape.visible_keys(last_query);  // keys that any row of the block sees
  for (int first_key = 0; first_key < keys; first_key += C::kBlockN) {
    // Step 2: copy a key tile and its values, once per block.
    __syncthreads();  // no thread reads the previous tile any more
    for (int i = threadIdx.x; i < C::kBlockN * C::kHeadDim; i += C::kThreads) {
      const int row = i / C::kHeadDim, x = i % C::kHeadDim, key = first_key + row;
      const int64_t at = shape.k_row(batch, key, head) * shape.pitch + x;
      smem.k[row][x] = key < keys ? to_float(k[at]) : 0;  // [k]
      smem.v[row][x] = key < keys ? to_float(v[at]) : 0;  // [v]
    }
    __syncthreads();

    // Step 3: scores; lane = key. One read of a key's four elements serves eight queries.
    float s[C::kRows] = {};
    for (int x = 0; x < C::kHeadDim; x += 4) {
      const auto key = load_vector<floatx4>(&smem.k[lane][x]);  // [key]
#pragma unroll
      for (int r = 0; r < C::kRows; ++r) {
        const auto query = load_vector<floatx4>(&smem.q[warp_row + r][x]);  // [query]
#pragma unroll
        for (int i = 0; i < 4; ++i) s[r] += query[i] * key[i];
      }
    }

    // Step 4: online softmax, one row at a time across the warp.
#pragma unroll
    for (int r = 0; r < C::kRows; ++r) {
      const int visible = shape.visible_keys(first_query + warp_row + r);
      if (first_key + lane >= visible) s[r] = kMinusInfinity;
      // [quote tiled]
      const float new_max = fmaxf(max[r], warp_max(s[r]));
      const float offset = new_max == kMinusInfinity ? 0.0f : new_max * shape.scale_log2;
      const float rescale = ex2_approx_ftz(max[r] * shape.scale_log2 - offset);
      s[r] = ex2_approx_ftz(s[r] * shape.scale_log2 - offset);
      max[r] = new_max;
      sum[r] = sum[r] * rescale + s[r];
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) acc[r][x] *= rescale;
      // [end quote]
    }

    // Step 5: add P V to the output; lane = columns. One read of a value serves eight queries.
    for (int j = 0; j < C::kBlockN; ++j) {
      const auto value = load_vector<V>(&smem.v[j][kPerLane * lane]);  // [value]
#pragma unroll
      for (int r = 0; r < C::kRows; ++r) {
        const float p = __shfl_sync(kFullWarp, s[r], j);
#pragma unroll
        for (int x = 0; x < kPerLane; ++x) acc[r][x] += p * value[x];
      }
    }
  }

#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    const int query = first_query + warp_row + r;
    const float total = warp_sum(sum[r]);
    if (query >= shape.seq_q) break;
    const float inverse = total == 0.0f ? 0.0f : 1.0f / total;
    typename C::Element* row = o + shape.q_row(batch, query, head) * shape.pitch + kPerLane * lane;
#pragma unroll
    for (int x = 0; x < kPerLane; ++x)
      row[x] = from_float<typename C::Element>(acc[r][x] * inverse);
    if (lane == 0) {
      lse[shape.lse_index(batch, query, head)] =
          total == 0.0f ? kMinusInfinity : max[r] * shape.scale_log2 * kLn2 + logf(total);
    }
  }
}

struct Tiled : Level {
  static constexpr LevelText text{
      .name = "tiled",
      .changed = "one kernel: 64 queries share each tile of 32 keys, and no score is stored",
      .expect =
          "28 bytes of traffic per score are gone; now the FMA units and shared memory are the "
          "limit",
      .cost = "two barriers per tile; fp32 copies of the tiles, 80 KB",
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    const size_t bytes = p.head_dim == 64 ? sizeof(TiledConfig<Case<half, 64>>::Smem)
                                          : sizeof(TiledConfig<Case<half, 128>>::Smem);
    if (bytes <= device.smem_per_block_bytes) return Support::yes();
    return Support::no("needs " + std::to_string(bytes) + " bytes of shared memory per block");
  }
  static Claims claims(const Problem& p) {
    // A block reads the keys that its last query sees, once.
    double keys = 0;
    for (int i = 0; i < p.shape.seq_q; i += 64) {
      keys += std::max(0, p.shape.visible_keys(std::min(i + 64, p.shape.seq_q) - 1));
    }
    const double bytes = 2.0 * p.head_dim * keys * p.shape.batch * p.shape.heads_q;
    return {global_loads("k").bytes(bytes), shared_loads().on("key").conflict_free(),
            shared_loads().on("query").conflict_free(), shared_loads().on("value").conflict_free()};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch<bf16, half>(
        plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
          using C = TiledConfig<decltype(c)>;
          const int query_tiles = ceil_div(s.seq_q, C::kBlockM);
          const dim3 grid(static_cast<unsigned>(int64_t{query_tiles} * s.heads_q * s.batch));
          launch(tiled_kernel<C>, {grid, C::kThreads, sizeof(typename C::Smem)}, stream, q, k, v, o,
                 plan.buffers.lse, s, query_tiles);
        });
  }
};

}  // namespace cookbook::attention
