// SPDX-License-Identifier: MIT
// Level 2: cp.async writes shared memory directly, so the next tile needs no registers in flight.
// Two stages: one is multiplied while the other is filled.
#pragma once

#include "chapters/02_tiling/level_5_vectorised.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/timeline.cuh"

namespace cookbook::sgemm {

/// The position of a thread's elements of C in the tile of its block, as in chapter 2: groups of
/// 4 x 4 elements, from one group to the next half a tile.
template <class C>
struct HalvesLayout {
  static constexpr int kStepM = C::kM / 2, kStepN = C::kN / 2;
  int ty, tx;

  __device__ __forceinline__ HalvesLayout() {
    const int tid = static_cast<int>(threadIdx.x);
    ty = tid / (C::kN / C::kThreadN), tx = tid % (C::kN / C::kThreadN);
  }
  /// The row of the thread's row `i`, which begins a group, and the column of its column `j`.
  __device__ __forceinline__ int row_of(int i) const { return i / 4 * kStepM + 4 * ty; }
  __device__ __forceinline__ int col_of(int j) const { return j / 4 * kStepN + 4 * tx; }
};

struct AsyncCopyConfig {
  static constexpr int kM = 128, kN = 128, kK = 8;  // tile of C per block, and steps of k per tile
  static constexpr int kThreadM = 8, kThreadN = 8;  // elements of C per thread
  static constexpr int kThreads = kM * kN / (kThreadM * kThreadN);
  static constexpr int kBlocks = 2;  // per SM: caps a thread at 128 registers
  static constexpr int kStages = 2;
  static constexpr int kPitchA = kM + 4;  // leading dimension of a stage of A
  template <class C>
  using Layout = HalvesLayout<C>;
};

/// One thread's part of copying tiles of A and B to shared memory.
///
/// cp.async moves 4, 8 or 16 bytes and cannot transpose, so A is copied in pieces of 4 bytes. Lanes
/// 8r .. 8r + 7 copy 8 neighbouring k of row r (one whole 32-byte sector), and each writes its word
/// to its own row of a_stage. With kPitchA = 4 (mod 32) lane (r, k) writes bank 4k + r: all 32
/// differ. B keeps its orientation: 16 bytes per copy where alignment allows (kAligned).
///
/// Rows of A and columns of B out of bounds only affect elements of C out of bounds, so any valid
/// address will do for them. Out-of-bounds k must be zero-filled, since they enter every sum.
template <class C, bool kAligned>
struct TileCopy {
  static constexpr int kPieceB = kAligned ? 4 : 1;                // floats per copy
  static constexpr int kRowsA = C::kThreads / 8;                  // rows of A per pass
  static constexpr int kRowsB = C::kThreads / (C::kN / kPieceB);  // k of B per pass
  static constexpr int kPassesA = C::kM / kRowsA, kPassesB = C::kK / kRowsB;
  static_assert(C::kM % kRowsA == 0 && C::kK % kRowsB == 0 && C::kK % 8 == 0 && kRowsB > 0);
  static_assert(C::kPitchA % 32 == 4, "lane (r, k) writes bank 4k + r");

  const float* a_from[kPassesA];  // in this thread's rows, at the next k to be copied
  const float* b_from;            // in this thread's column, at the next k to be copied
  int64_t b_step;                 // stride from one pass to the next
  int k, a_row, a_k, b_k, b_col;

  __device__ __forceinline__ TileCopy(int tile_row, int tile_col, int m, int n, int k_,
                                      const float* a, int64_t lda, const float* b, int64_t ldb)
      : b_step(kRowsB * ldb), k(k_) {
    const int tid = static_cast<int>(threadIdx.x);
    a_row = tid / 8, a_k = tid % 8;
    b_k = tid / (C::kN / kPieceB), b_col = tid % (C::kN / kPieceB) * kPieceB;
#pragma unroll
    for (int i = 0; i < kPassesA; ++i) {
      a_from[i] = a + min(tile_row + a_row + i * kRowsA, m - 1) * lda + a_k;
    }
    b_from = b + b_k * ldb + (tile_col + b_col < n ? tile_col + b_col : 0);
  }

  /// Starts the copies of steps k0 .. k0 + kK - 1, zero-filled from step k on. Tiles must come in
  /// order.
  __device__ __forceinline__ void operator()(float (*a_stage)[C::kPitchA], float (*b_stage)[C::kN],
                                             int k0) {
#pragma unroll
    for (int i = 0; i < kPassesA; ++i) {
#pragma unroll
      for (int h = 0; h < C::kK; h += 8) {
        const int bytes = k0 + a_k + h < k ? 4 : 0;
        cp_async_zfill<4>(&a_stage[a_k + h][a_row + i * kRowsA], a_from[i] + h, bytes);
      }
      a_from[i] += C::kK;
    }
#pragma unroll
    for (int i = 0; i < kPassesB; ++i) {
      const int bytes = k0 + b_k + i * kRowsB < k ? 4 * kPieceB : 0;
      cp_async_zfill<4 * kPieceB>(&b_stage[b_k + i * kRowsB][b_col], b_from, bytes);
      b_from += b_step;
    }
  }
};

/// Claims of a level with TileCopy: whole sectors, no bank conflict although A is transposed, and
/// what else the level claims.
inline Claims copy_claims(const Claims& others) {
  Claims claims = {Accesses("global", "async_load", "a").coalesced(),
                   Accesses("global", "async_load", "b").coalesced(),
                   Accesses("shared", "async_store", "").conflict_free(),
                   Accesses("global", "async_load", "b").sectors_per_request(16),
                   global_stores("c").sectors_per_request(16)};
  claims[0].text = "cp.async of `a`: sectors = ideal";
  claims[1].text = "cp.async of `b`: sectors = ideal";
  claims[2].text = "cp.async into shared memory: wavefronts = ideal";
  claims[3].text = "cp.async of `b`: 16 bytes per lane, 16 sectors per request";
  claims.insert(claims.end(), others.begin(), others.end());
  return claims;
}

/// 16-byte loads of fragments from shared memory: per step of k, those of a column of A and of a
/// row of B. The last tile of k is multiplied whole.
template <class C>
Claim fragment_loads(const Problem& p) {
  const std::int64_t tiles = ceil_div(p.m, C::kM) * ceil_div(p.n, C::kN);
  const std::int64_t steps = ceil_div(p.k, C::kK) * C::kK;
  const std::int64_t per_warp = (C::kThreadM + C::kThreadN) / 4;
  return shared_loads().requests(static_cast<double>(tiles * steps * C::kThreads / 32 * per_warp));
}

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    async_copy_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                      const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                      int64_t ldc) {
  __shared__ __align__(16) float a_tile[C::kStages][C::kK][C::kPitchA];  // (stage, k, rows of A)
  __shared__ __align__(16) float b_tile[C::kStages][C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;

  using Layout = typename C::template Layout<C>;
  const Layout at;
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  TileCopy<C, kAligned> copy(tile_row, tile_col, m, n, k, a, lda, b, ldb);
  int stage = 0;
  copy(a_tile[stage], b_tile[stage], 0);
  cp_async_commit();
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    // [quote async_copy]
    // Fill the other stage, then wait until only that group is in flight: this tile has arrived.
    copy(a_tile[1 - stage], b_tile[1 - stage], k0 + C::kK);
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();  // the other threads' pieces have arrived too
    // [end quote]

    timeline::begin(timeline::Kind::multiply);
#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      float a_fragment[C::kThreadM], b_fragment[C::kThreadN];
#pragma unroll
      for (int i = 0; i < C::kThreadM; i += 4) {
        load_fragment4(&a_fragment[i], &a_tile[stage][p][at.row_of(i)]);
      }
#pragma unroll
      for (int j = 0; j < C::kThreadN; j += 4) {
        load_fragment4(&b_fragment[j], &b_tile[stage][p][at.col_of(j)]);
      }
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kThreadN; ++j) acc[i][j] += a_fragment[i] * b_fragment[j];
      }
    }
    timeline::end(timeline::Kind::multiply);
    __syncthreads();  // all threads have read this stage before the next copies overwrite it
    stage = 1 - stage;
  }
  store_groups<Layout::kStepM, Layout::kStepN, kAligned>(acc, c, ldc, tile_row + at.row_of(0),
                                                         tile_col + at.col_of(0), m, n);
}

/// B and C in 16-byte pieces: rows are aligned and a whole number of pieces long. A needs no
/// alignment.
inline bool in_16_byte_pieces(const Problem& p, const Buffers& at) {
  return p.n % 4 == 0 && rows_are_16_byte_aligned(at.b, p.ldb) &&
         rows_are_16_byte_aligned(at.c, p.ldc);
}

/// A kernel with the arguments of C = A B, and `Alpha` after them: nothing before level 8.
template <class... Alpha>
using Kernel = void (*)(int m, int n, int k, const float* a, int64_t lda, const float* b,
                        int64_t ldb, float* c, int64_t ldc, Alpha... alpha);

/// Launches a block per tile of C: of `in_pieces` where in_16_byte_pieces(), else of `singly`.
template <class C, class... Alpha>
void launch_tiles(Kernel<Alpha...> in_pieces, Kernel<Alpha...> singly, const Level::Plan& plan,
                  Stream stream, std::size_t smem_bytes = 0, Alpha... alpha) {
  const Problem& p = plan.problem;
  const Buffers& at = plan.buffers;
  launch(in_16_byte_pieces(p, at) ? in_pieces : singly,
         {grid_of_tiles<C>(p), dim3(C::kThreads), smem_bytes}, stream, p.m, p.n, p.k, at.a, p.lda,
         at.b, p.ldb, at.c, p.ldc, alpha...);
}

struct AsyncCopy : Level {
  static constexpr LevelText text{
      .name = "async_copy",
      .changed = "cp.async straight to shared memory, two stages; A transposed by 4-byte copies",
      .expect =
          "the prefetch of level 1 without its registers: two blocks per SM again, so faster than "
          "both",
      .cost = "cp.async for A moves 4 bytes per lane; two barriers per tile again",
  };

  static Claims claims(const Problem& p) {
    return copy_claims({shared_loads().conflict_free(), fragment_loads<AsyncCopyConfig>(p),
                        faster_than_previous(1.0)});
  }

  static void run(const Plan& plan, Stream stream) {
    using C = AsyncCopyConfig;
    launch_tiles<C>(async_copy_kernel<C, true>, async_copy_kernel<C, false>, plan, stream);
  }
};

}  // namespace cookbook::sgemm
