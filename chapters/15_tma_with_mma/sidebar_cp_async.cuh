// SPDX-License-Identifier: MIT
// Sidebar: level 2's pipeline for a GPU without TMA, sm_80 to sm_89. All threads copy, by cp.async,
// and a thread's copies arrive at `full` by themselves.
#pragma once

#include "chapters/15_tma_with_mma/warp_tiles.cuh"
#include "common/device/cp_async.cuh"

namespace cookbook::gemm {

namespace cp_async_barriers {

using warp_tiles::Config, warp_tiles::Smem, warp_tiles::Stage;

struct Operands {
  const bf16 *a, *b;
  std::int64_t lda, ldb;  // elements
};

/// What a thread copies of each k-block: two chunks of 16 bytes of A, four of B, to where TMA would
/// put them. Its rows are 64 apart in A and 8 in B, so they have the same swizzle.
template <class C>
struct Copies {
  static constexpr int kChunksA = C::kBlockK / 8, kRowsA = C::kThreads / kChunksA;
  static constexpr int kChunksB = C::kBlockN / 8, kRowsB = C::kThreads / kChunksB;
  static_assert(kRowsA % 8 == 0 && kRowsB % 8 == 0, "the same swizzle in every pass");

  Operands matrices;
  const bf16 *a, *b;   // the first chunks of the next k-block
  int to_a, to_b;      // their bytes in a stage
  int rows_a, k_left;  // elements of A from that chunk on
  int rows_left, columns_of_b;

  __device__ __forceinline__ Copies(const Operands& matrices, const Extents& e, TileIndex tile)
      : matrices(matrices) {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / kChunksA, chunk = thread % kChunksA;
    const int first_row = tile.m * C::kBlockM + row;
    a = matrices.a + first_row * matrices.lda + chunk * 8;
    to_a = swizzle_address<Swizzle::b64>(row * Stage<C>::A::kSpanBytes + chunk * 16);
    rows_a = e.m - first_row, k_left = e.k - chunk * 8;

    const int k = thread / kChunksB, column = thread % kChunksB * 8;
    constexpr int kPanelCols = Stage<C>::B::kPanelCols;
    b = matrices.b + k * matrices.ldb + tile.n * C::kBlockN + column;
    to_b = column / kPanelCols * Stage<C>::B::kPanelBytes +
           swizzle_address<Swizzle::b128>(k * Stage<C>::B::kSpanBytes + column % kPanelCols * 2);
    rows_left = e.k - k, columns_of_b = e.n - tile.n * C::kBlockN - column;
  }
  /// Starts the copies of the next k-block, which arrive at `full` when they are complete.
  __device__ __forceinline__ void load(Stage<C>& stage, uint64_t* full) {
#pragma unroll
    for (int i = 0; i < C::kBlockM / kRowsA; ++i) {
      copy(stage.a + to_a + i * kRowsA * Stage<C>::A::kSpanBytes, a + i * kRowsA * matrices.lda,
           i * kRowsA < rows_a ? k_left : 0, matrices.a);
    }
#pragma unroll
    for (int i = 0; i < C::kBlockK / kRowsB; ++i) {
      copy(stage.b + to_b + i * kRowsB * Stage<C>::B::kSpanBytes, b + i * kRowsB * matrices.ldb,
           i * kRowsB < rows_left ? columns_of_b : 0, matrices.b);
    }
    cp_async_mbarrier_arrive_noinc(full);
    a += C::kBlockK, k_left -= C::kBlockK;
    b += C::kBlockK * matrices.ldb, rows_left -= C::kBlockK;
  }

 private:
  /// Copies 8 elements, of which `valid` are inside the matrix; the others become zeros.
  static __device__ __forceinline__ void copy(unsigned char* to, const bf16* from, int valid,
                                              const bf16* anywhere) {
    cp_async_zfill<16>(to, valid > 0 ? from : anywhere, 2 * min(max(valid, 0), 8));  // [copy]
  }
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1) kernel(Operands matrices, Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = warp_tiles::tile_at<C>(static_cast<int>(blockIdx.x), e);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages; ++i) {
      mbarrier_init(&smem.full[i], C::kThreads);        // every thread's copies
      mbarrier_init(&smem.empty[i], C::kThreads / 32);  // every warp
    }
  }
  __syncthreads();
  Copies<C> copies(matrices, e, tile);
  StageCursor<C::kStages> write;
  const auto load_next = [&] {
    mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);  // at once if it was never used
    copies.load(smem.stages[write.stage], &smem.full[write.stage]);
    write.advance();
  };
  for (int i = 0; i < C::kStages - 1 && i < k_blocks; ++i) load_next();

  float acc[C::kMmaM][C::kMmaN][4] = {};
  warp_tiles::Fragments<C> fragments(smem.stages[0], warp);
  StageCursor<C::kStages> read;
  mbarrier_wait(&smem.full[0], 0);
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) fragments.load_piece(0, 0, 0, i);

  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    const int stage = read.stage;
    const bool more = k_block + 1 < k_blocks;
    read.advance();
    // Into the stage of the k-block before, which the other warps have left, or soon will have.
    if (k_block + C::kStages - 1 < k_blocks) load_next();
    fragments.multiply(acc, 0, true, stage, 1);
    __syncwarp();  // every lane has read its fragments of this stage
    if (lane_idx() == 0) mbarrier_arrive(&smem.empty[stage]);
    __syncwarp();  // mma.sync needs all lanes together
    if (more) mbarrier_wait(&smem.full[read.stage], read.phase);
    fragments.multiply(acc, 1, more, read.stage, 0);
  }
  warp_tiles::store_registers<C>(acc, out, e, tile, warp);
}

}  // namespace cp_async_barriers

struct CpAsyncBarriers : LevelT<bf16> {
  using Config = cp_async_barriers::Config;
  using Plan = TmaPlan;  // without its maps

  static constexpr LevelText text{
      .name = "cp_async_barriers",
      .changed = "level 2 without TMA: cp.async by all threads, cp.async.mbarrier.arrive.noinc",
      .expect = "faster than level 2: every warp issues an eighth of the copies",
      .cost = "six copies per thread and k-block, with their addresses in registers",
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc() < 80) return Support::no("needs sm_80 (mma.sync of bf16, mbarriers)");
    if (p.lda % 8 != 0 || p.ldb % 8 != 0) {
      return Support::no("copies 16 bytes: rows of A and B must be multiples of that");
    }
    return Support::yes();
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{p, at};
    plan.fallback = p.k == 0 || !is_16_byte_aligned(at.a) || !is_16_byte_aligned(at.b);
    return plan;
  }
  static Claims claims(const Problem&) {
    return {Accesses("global", "async_load", "").sectors_per_request(16),
            Accesses("shared", "async_store", "").on("copy").conflict_free(),
            shared_loads().conflict_free()};
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    const Problem& p = plan.problem;
    launch(cp_async_barriers::kernel<Config>,
           {dim3(blocks_for(p.m, p.n, Config::kBlockM, Config::kBlockN)), dim3(Config::kThreads),
            sizeof(cp_async_barriers::Smem<Config>)},
           stream, cp_async_barriers::Operands{plan.buffers.a, plan.buffers.b, p.lda, p.ldb},
           Output{plan.buffers.c, p.ldc}, extents_of(p));
  }
};

}  // namespace cookbook::gemm
