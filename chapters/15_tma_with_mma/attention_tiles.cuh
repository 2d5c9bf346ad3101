// SPDX-License-Identifier: MIT
/// @file
/// Shared by the levels of the ladder `attention`: tiles of 128 queries and 64 keys, and the two
/// matrix multiplications of a warp, with addresses that a lane computes once.
#pragma once

#include "chapters/10_flash_attention/level_2_tensor_cores.cuh"
#include "common/device/registers.cuh"

namespace cookbook::attention::warp_tiles {

/// As level 2 of chapter 10: four warps with 32 queries each. Two blocks per SM have 255 registers
/// per thread, and 64 KB of shared memory each.
template <class CaseT>
struct Config : TensorCoresConfig<CaseT> {
  static constexpr int kBlocks = 2;  // per SM
};

/// Where a lane finds its rows of Q, K and V for ldmatrix: byte offsets in a panel of 64 columns.
/// Rows 16 further, and panels, are a constant further, because the swizzle repeats after eight
/// rows. A step of 16 columns further flips bits: the swizzle flips them too, by the row.
template <class C>
class LaneRows {
  static constexpr int kSteps = C::kHeadDim / 16, kKeys = C::kBlockN / 16;
  static constexpr int kPanelSteps = kPanel / 16, kSixteenRows = 16 * 128;
  uint32_t by_rows_;        // of Q and V: lanes 0 to 15 have rows 0 to 15
  uint32_t by_columns_;     // of K: lanes 0 to 15 have rows 0 to 7, twice
  const unsigned char* q_;  // this warp's queries

 public:
  /// `warp`: in a uniform register.
  __device__ __forceinline__ LaneRows(const unsigned char* q_tile, int warp)
      : q_(q_tile + warp * C::kMTiles * kSixteenRows) {
    const int lane = lane_idx();
    by_rows_ = tile_offset<C::kBlockN>(lane % 16, lane / 16 * 8);
    by_columns_ = tile_offset<C::kBlockN>(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
  }

  static __device__ __forceinline__ uint32_t at_step(uint32_t row, int step) {
    // [quote step]
    return row ^ static_cast<uint32_t>(step % kPanelSteps * 32);
    // [end quote]
  }

  /// s[m] = Q K^T for this warp's queries. Unrolled: the compiler loads fragments ahead of the
  /// multiplications as far as it has registers.
  __device__ __forceinline__ void scores(float (&s)[C::kMTiles][C::kBlockN / 2],
                                         const unsigned char* k_tile) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const unsigned char* q = q_ + step / kPanelSteps * C::kBlockM * 128;
      const unsigned char* k = k_tile + step / kPanelSteps * C::kBlockN * 128;
      // Below sm_90, ptxas would keep this warp's four sums of q_ and q_row, and spill.
      const uint32_t q_row = at_step(not_kept_below<90>(by_rows_), step);
      const uint32_t k_row = at_step(by_columns_, step);
      uint32_t a[C::kMTiles][4];
#pragma unroll
      for (int m = 0; m < C::kMTiles; ++m) {
        ldmatrix_x4(a[m], q + q_row + m * kSixteenRows);  // [fragments]
      }
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        uint32_t b[4];                                 // two groups of 8 keys
        ldmatrix_x4(b, k + k_row + n * kSixteenRows);  // [fragments]
#pragma unroll
        for (int m = 0; m < C::kMTiles; ++m) {
          mma_m16n8k16<typename C::Element>(group(s[m], 2 * n), a[m], {b[0], b[1]});
          mma_m16n8k16<typename C::Element>(group(s[m], 2 * n + 1), a[m], {b[2], b[3]});
        }
      }
    }
  }

  /// o[m] += P V.
  __device__ __forceinline__ void output(float (&o)[C::kMTiles][C::kHeadDim / 2],
                                         const uint32_t (&p)[C::kMTiles][C::kBlockN / 16][4],
                                         const unsigned char* v_tile) const {
#pragma unroll
    for (int n = 0; n < kKeys; ++n) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const unsigned char* v = v_tile + step / kPanelSteps * C::kBlockN * 128;
        uint32_t b[4];  // two groups of 8 columns
        ldmatrix_x4_trans(b, v + at_step(by_rows_, step) + n * kSixteenRows);  // [fragments]
#pragma unroll
        for (int m = 0; m < C::kMTiles; ++m) {
          mma_m16n8k16<typename C::Element>(group(o[m], 2 * step), p[m][n], {b[0], b[1]});
          mma_m16n8k16<typename C::Element>(group(o[m], 2 * step + 1), p[m][n], {b[2], b[3]});
        }
      }
    }
  }
};

/// A thread's part of the copies of K and V: every eighth (d = 64: sixteenth) row, the same 16
/// bytes of each.
template <class C>
class ThreadCopies {
  static constexpr int kChunks = C::kHeadDim / 8;  // of 16 bytes, per row
  static constexpr int kRows = C::kThreads / kChunks;
  static_assert(kRows % 8 == 0, "the swizzle repeats after eight rows");
  int64_t from_;  // elements from the tensor's beginning to this thread's chunk, of tile 0
  uint32_t to_;

 public:
  /// `head`: elements from the tensor's beginning to the head's row 0. `step`: elements between
  /// rows; a kernel parameter, which needs no register.
  __device__ __forceinline__ ThreadCopies(int64_t head, int64_t step) {
    const int column = static_cast<int>(threadIdx.x) % kChunks * 8;
    from_ = head + row() * step + column;
    to_ = tile_offset<C::kBlockN>(row(), column);
  }
  /// Starts the copies of kBlockN rows from first_row on; rows from `rows` on become zero.
  template <class T>
  __device__ __forceinline__ void start(unsigned char* tile, const T* tensor, int64_t step,
                                        int first_row, int rows) const {
    const T* from = tensor + (from_ + first_row * step);
    unsigned char* to = tile + to_;
    if (first_row + C::kBlockN <= rows) {
#pragma unroll
      for (int i = 0; i < C::kBlockN / kRows; ++i, from += kRows * step) {
        cp_async<16>(to + i * kRows * 128, from);  // [copy]
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < C::kBlockN / kRows; ++i, from += kRows * step) {
        const bool exists = first_row + row() + i * kRows < rows;
        cp_async_zfill<16>(to + i * kRows * 128, exists ? from : tensor, exists ? 16 : 0);
      }
    }
  }

 private:
  static __device__ __forceinline__ int row() { return static_cast<int>(threadIdx.x) / kChunks; }
};

/// Divides a warp's rows by their sums and stores them.
template <class C>
__device__ __forceinline__ void finish(typename C::Element* o, float* lse, const Shape& shape,
                                       int batch, int head, int warp_query,
                                       const float (&acc)[C::kMTiles][C::kHeadDim / 2],
                                       const RowStates (&rows)[C::kMTiles]) {
#pragma unroll
  for (int m = 0; m < C::kMTiles; ++m) {
    float inverse[2], row_lse[2];
    finish_rows(rows[m], shape.scale_log2, inverse, row_lse);
    store_rows(o, lse, shape, batch, head, warp_query + 16 * m, acc[m], inverse, row_lse);
  }
}

/// The kernel of levels 1 and 2. `C::softmax(s, rows, acc, scale_log2)` replaces a tile's scores by
/// weights, and rescales the outputs.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    kernel(const typename C::Element* q, const typename C::Element* k, const typename C::Element* v,
           typename C::Element* o, float* lse, Shape shape, int64_t query_step, int64_t key_step,
           int query_tiles) {
  using T = typename C::Element;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();
  const auto [first_query, head, batch] =
      tile_index(blockIdx.x, query_tiles, C::kBlockM, shape.heads_q);
  const int warp_query = first_query + warp * 16 * C::kMTiles;
  const LaneRows<C> lane_rows(smem.q, warp);
  const ThreadCopies<C> copies(shape.k_row(batch, 0, head) * shape.pitch, key_step);

  float acc[C::kMTiles][C::kHeadDim / 2] = {};  // (16 queries, d) per warp and tile
  RowStates rows[C::kMTiles];

  // Step 1: start copying the queries and the last key tile.
  const int tiles = key_tiles<C::kBlockM, C::kBlockN>(shape, first_query);
  const int clear = max(0, shape.visible_keys(warp_query)) / C::kBlockN;  // tiles without a mask
  if (tiles > 0) {
    copy_tile_async<C::kBlockM, C::kHeadDim, C::kThreads>(
        smem.q, q + (batch * query_step * shape.seq_q + head * shape.pitch), query_step,
        first_query, shape.seq_q);
    copies.start(smem.k, k, key_step, (tiles - 1) * C::kBlockN, shape.seq_k);
    cp_async_commit();
  }
  for (int n = tiles - 1; n >= 0; --n) {
    // Step 2: scores, while V is being copied.
    cp_async_wait<0>();
    __syncthreads();  // all threads see K, and none reads V any more
    copies.start(smem.v, v, key_step, n * C::kBlockN, shape.seq_k);
    cp_async_commit();
    float s[C::kMTiles][C::kBlockN / 2] = {};  // (16 queries, keys) per warp and tile
    lane_rows.scores(s, smem.k);

    // Step 3: online softmax in registers.
    if (n >= clear) {
#pragma unroll
      for (int m = 0; m < C::kMTiles; ++m) {
        mask_tile<C::kBlockN>(s[m], shape, warp_query + 16 * m, n * C::kBlockN);
      }
    }
    C::softmax(s, rows, acc, shape.scale_log2);
    uint32_t p[C::kMTiles][C::kBlockN / 16][4];
#pragma unroll
    for (int m = 0; m < C::kMTiles; ++m) pack_weights<T>(p[m], s[m]);

    // Step 4: add P V to the output, while the next K is being copied.
    cp_async_wait<0>();
    __syncthreads();  // all threads see V, and none reads K any more
    if (n > 0) {
      copies.start(smem.k, k, key_step, (n - 1) * C::kBlockN, shape.seq_k);
      cp_async_commit();
    }
    lane_rows.output(acc, p, smem.v);
  }
  finish<C>(o, lse, shape, batch, head, warp_query, acc, rows);
}

/// Host side of levels 1 and 2. ConfigOf: the level's configuration by element type and head
/// dimension.
template <template <class> class ConfigOf>
struct LevelOfRows : Level {
  using Config = ConfigOf<Case<bf16, 128>>;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    static_assert(sizeof(typename Config::Smem) <= 99 * 1024, "fits an RTX 50");
    return TensorCores::supports(p, device);
  }
  /// Claims of both levels: no bank conflict, and 16 bytes per lane and copy. And the claims
  /// `more`.
  static Claims claims_and(const auto&... more) {
    return {shared_loads().on("fragments").conflict_free(),
            Accesses("shared", "async_store", "").on("copy").conflict_free(),
            Accesses("global", "async_load", "k").sectors_per_request(16),
            Accesses("global", "async_load", "v").sectors_per_request(16), more...};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch<bf16>(plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using C = ConfigOf<decltype(c)>;
      const int query_tiles = ceil_div(s.seq_q, C::kBlockM);
      const dim3 grid(static_cast<unsigned>(int64_t{query_tiles} * s.heads_q * s.batch));
      launch(kernel<C>, {grid, C::kThreads, sizeof(typename C::Smem)}, stream, q, k, v, o,
             plan.buffers.lse, s, s.heads_q * s.pitch, s.heads_kv * s.pitch, query_tiles);
    });
  }
};

}  // namespace cookbook::attention::warp_tiles
