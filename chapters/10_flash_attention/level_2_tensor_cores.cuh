// SPDX-License-Identifier: MIT
// Level 2: both matrix multiplications on tensor cores (mma.sync), as in FlashAttention-2. The
// tiles are 16-bit and loaded by cp.async. The weights go directly from the accumulators of the
// first multiplication to the A operand of the second. Key tiles are visited from right to left:
// only the first ones need masks.
#pragma once

#include "chapters/10_flash_attention/mma_tile.cuh"
#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/softmax.cuh"
#include "chapters/10_flash_attention/tile.cuh"

namespace cookbook::attention {

template <class CaseT>
struct TensorCoresConfig : CaseT {
  static constexpr int kWarps = 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kMTiles = 2;  // tiles of 16 queries per warp: each B fragment is used twice
  static constexpr int kBlockM = 16 * kMTiles * kWarps;  // queries per block
  static constexpr int kBlockN = 64;                     // keys per tile
  struct Smem {
    alignas(1024) unsigned char q[kBlockM * CaseT::kHeadDim * 2];
    alignas(1024) unsigned char k[kBlockN * CaseT::kHeadDim * 2];
    alignas(1024) unsigned char v[kBlockN * CaseT::kHeadDim * 2];
  };
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    tensor_cores_kernel(const typename C::Element* q, const typename C::Element* k,
                        const typename C::Element* v, typename C::Element* o, float* lse,
                        Shape shape, int query_tiles) {
  using T = typename C::Element;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp_row = warp_idx() * 16 * C::kMTiles;
  const auto [first_query, head, batch] =
      tile_index(blockIdx.x, query_tiles, C::kBlockM, shape.heads_q);
  const T* q_head = q + shape.q_row(batch, 0, head) * shape.pitch;
  const T* k_head = k + shape.k_row(batch, 0, head) * shape.pitch;
  const T* v_head = v + shape.k_row(batch, 0, head) * shape.pitch;
  const int64_t q_stride = shape.heads_q * shape.pitch, k_stride = shape.heads_kv * shape.pitch;

  float acc[C::kMTiles][C::kHeadDim / 2] = {};  // (16 queries, d) per warp and tile
  RowStates rows[C::kMTiles];

  // Step 1: start copying the queries and the last key tile.
  const int tiles = key_tiles<C::kBlockM, C::kBlockN>(shape, first_query);
  if (tiles > 0) {
    copy_tile_async<C::kBlockM, C::kHeadDim, C::kThreads>(smem.q, q_head, q_stride, first_query,
                                                          shape.seq_q);
    copy_tile_async<C::kBlockN, C::kHeadDim, C::kThreads>(smem.k, k_head, k_stride,
                                                          (tiles - 1) * C::kBlockN, shape.seq_k);
    cp_async_commit();
  }
  for (int n = tiles - 1; n >= 0; --n) {
    // Step 2: scores, while V is being copied.
    cp_async_wait<0>();
    __syncthreads();  // all threads see K, and none reads V any more
    copy_tile_async<C::kBlockN, C::kHeadDim, C::kThreads>(smem.v, v_head, k_stride, n * C::kBlockN,
                                                          shape.seq_k);
    cp_async_commit();
    float s[C::kMTiles][C::kBlockN / 2] = {};  // (16 queries, keys) per warp and tile
    mma_scores<C>(s, smem.q, smem.k, warp_row);

    // Step 3: online softmax in registers, while the next K is being copied.
    cp_async_wait<0>();
    __syncthreads();  // all threads see V, and none reads K any more
    if (n > 0) {
      copy_tile_async<C::kBlockN, C::kHeadDim, C::kThreads>(smem.k, k_head, k_stride,
                                                            (n - 1) * C::kBlockN, shape.seq_k);
      cp_async_commit();
    }
    uint32_t p[C::kMTiles][C::kBlockN / 16][4];
#pragma unroll
    for (int m = 0; m < C::kMTiles; ++m) {
      mask_tile<C::kBlockN>(s[m], shape, first_query + warp_row + 16 * m, n * C::kBlockN);
      float rescale[2];
      // [quote tensor_cores]
      online_softmax(s[m], rows[m], rescale, shape.scale_log2);
      scale_rows(acc[m], rescale);
      pack_weights<T>(p[m], s[m]);
      // [end quote]
    }

    // Step 4: add P V to the output.
    mma_output<C>(acc, p, smem.v);
  }

  // Step 5: divide by the sums, round, store.
#pragma unroll
  for (int m = 0; m < C::kMTiles; ++m) {
    float inverse[2], row_lse[2];
    finish_rows(rows[m], shape.scale_log2, inverse, row_lse);
    store_rows(o, lse, shape, batch, head, first_query + warp_row + 16 * m, acc[m], inverse,
               row_lse);
  }
}

struct TensorCores : Level {
  static constexpr LevelText text{
      .name = "tensor_cores",
      .changed = "mma.sync for both matrix multiplications, 16-bit tiles by cp.async",
      .expect =
          "compute-bound on mma.sync at about half of its roof: between two matrix multiplications "
          "the tensor cores wait for a warp's softmax",
      .cost = "all 255 registers; head dimension 64 or 128, 16-byte rows",
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc() < 80) return Support::no("needs mma.sync m16n8k16: compute capability 8.0");
    return supports_aligned_rows(p);
  }
  static Claims claims(const Problem&) {
    return {shared_loads().on("fragments").conflict_free(),
            Accesses("global", "async_load", "k").sectors_per_request(16),  // 16 bytes per lane
            Accesses("global", "async_load", "v").sectors_per_request(16),
            global_stores("o").requests(1, Relation::at_least)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch<bf16, half>(
        plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
          using C = TensorCoresConfig<decltype(c)>;
          const int query_tiles = ceil_div(s.seq_q, C::kBlockM);
          const dim3 grid(static_cast<unsigned>(int64_t{query_tiles} * s.heads_q * s.batch));
          launch(tensor_cores_kernel<C>, {grid, C::kThreads, sizeof(typename C::Smem)}, stream, q,
                 k, v, o, plan.buffers.lse, s, query_tiles);
        });
  }
};

}  // namespace cookbook::attention
