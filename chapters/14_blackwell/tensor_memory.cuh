// SPDX-License-Identifier: MIT
/// @file
/// Shared by the bf16 levels of this chapter: what a stage looks like to tcgen05, how an
/// accumulator leaves tensor memory, and the host side.
#pragma once

#include <cstdint>

#include "chapters/06_tma/level_4_pipeline.cuh"
#include "common/device/tcgen05.cuh"

namespace cookbook::gemm::blackwell {

/// What all levels have in common. kBlockM x kBlockK of A and kBlockK x kBlockN of B are what a
/// block loads for one k-block.
struct Config : DefaultOperands {
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 64;
  static constexpr int kPair = 1;                   // blocks that multiply together
  static constexpr int kTileM = 128, kTileN = 256;  // of C: kPair times kBlockM, kBlockN
  static constexpr int kAccumulators = 1;           // of kTileN columns of tensor memory each
  static constexpr int kThreads = 128;
  static constexpr int kGroup = 8;  // rows of tiles per group of the raster order
};

/// Columns of tensor memory that a block allocates.
template <class C>
inline constexpr int kTmemColumns = C::kAccumulators* C::kTileN;

/// Allocates them and writes their address to shared memory. No other allocation follows, so
/// another block on this SM may have its own. Called by a whole warp.
template <class C>
__device__ __forceinline__ void allocate(uint32_t* address) {
  tmem_alloc<C::kPair>(address, kTmemColumns<C>);
  tmem_relinquish<C::kPair>();
}

template <class C>
__device__ __forceinline__ int tiles_of(const Extents& e) {
  return ceil_div(e.m, C::kTileM) * ceil_div(e.n, C::kTileN);
}

template <class C>
__device__ __forceinline__ TileIndex tile_at(int t, const Extents& e) {
  return grouped_tile(t, ceil_div(e.m, C::kTileM), ceil_div(e.n, C::kTileN), C::kGroup);
}

/// The descriptor of an operand's tile.
template <class Tile>
__device__ __forceinline__ uint64_t descriptor_of(const unsigned char* tile) {
  return tcgen05_descriptor<Swizzle::b128>(tile, Tile::kPanelBytes, 8 * Tile::kSpanBytes);
}

/// Starts the multiplication of a stage: d = A B (+ d if `accumulate`). Called by one thread.
template <class C>
__device__ __forceinline__ void mma_k_block(uint32_t d, const Stage<C>& stage, bool accumulate) {
  using A = typename Stage<C>::A;
  using B = typename Stage<C>::B;
  constexpr auto kType = Tcgen05Element::bf16;
  constexpr uint32_t kInstruction =
      tcgen05_instruction<kType, C::kTileM, C::kTileN, C::kMajorA, C::kMajorB>();
  const uint64_t a = descriptor_of<A>(stage.a), b = descriptor_of<B>(stage.b);
  // [quote mma]
#pragma unroll
  for (int k = 0; k < C::kBlockK; k += 16) {
    const uint64_t a_k = tcgen05_descriptor_advance(a, A::offset_bytes(0, k));
    const uint64_t b_k = tcgen05_descriptor_advance(b, B::offset_bytes(0, k));
    tcgen05_mma<kType, C::kPair>(d, a_k, b_k, kInstruction, accumulate || k > 0);  // [mma]
  }
  // [end quote]
}

/// C[row][col] .. C[row][col + 31] = values, where they are inside C.
__device__ __forceinline__ void store_row(const float (&values)[32], const Output& out,
                                          const Extents& e, int row, int col) {
  if (row >= e.m) return;
  bf16* to = out.c + row * out.ldc + col;
  if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0 && col + 32 <= e.n) {
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
      const uint4 eight{
          to_pair<bf16>(values[i], values[i + 1]), to_pair<bf16>(values[i + 2], values[i + 3]),
          to_pair<bf16>(values[i + 4], values[i + 5]), to_pair<bf16>(values[i + 6], values[i + 7])};
      store_vector(to + i, eight);  // [row]
    }
  } else {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (col + i < e.n) to[i] = __float2bfloat16_rn(values[i]);
    }
  }
}

/// Writes this warp's 32 rows of an accumulator of kColumns columns, whose row 0, column 0 is
/// (row, col) of C. release(): called when the accumulator has been read. Called by warps 0 to 3.
template <int kColumns, class Release>
__device__ __forceinline__ void store_accumulator(uint32_t d, const Output& out, const Extents& e,
                                                  int row, int col, Release release) {
  timeline::begin(timeline::Kind::store);
  const uint32_t first_lane = static_cast<uint32_t>(warp_idx() % 4 * 32);
#pragma unroll 1
  for (int c = 0; c < kColumns; c += 32) {
    float values[32];
    // [quote load]
    __syncwarp();
    tmem_load(values, d + (first_lane << 16) + static_cast<uint32_t>(c));
    tmem_wait_load(values);  // before it, the registers hold nothing
    if (c + 32 == kColumns) release();
    store_row(values, out, e, row + static_cast<int>(first_lane) + lane_idx(), col + c);
    // [end quote]
  }
  timeline::end(timeline::Kind::store);
}

/// Host side: row-major A and B.
template <class C>
struct Level : LevelT<bf16> {
  using Config = C;
  using Plan = TmaPlan;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc_major != 10) return Support::no("needs sm_100a (tcgen05)");
    return supports_tma(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    return plan_operands<typename Stage<C>::A, typename Stage<C>::B>(p, at);
  }
  static unsigned tiles(const Problem& p) { return blocks_for(p.m, p.n, C::kTileM, C::kTileN); }
  /// Launches `kernel` with `blocks` blocks and `smem_bytes` of shared memory each.
  static void launch_blocks(void (*kernel)(TensorMap, TensorMap, Output, Extents), unsigned blocks,
                            size_t smem_bytes, const Plan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    launch(kernel, {dim3(blocks), dim3(C::kThreads), smem_bytes, C::kPair}, stream, plan.a, plan.b,
           Output{plan.buffers.c, plan.problem.ldc}, extents_of(plan.problem));
  }
  /// What every level claims: TMA loads a tile's rows of A and columns of B once, the tensor core
  /// reads them once, 16 k per instruction, and each of `blocks` blocks allocates `columns`.
  static Claims counted(const Problem& p, unsigned blocks, int columns,
                        Relation relation = Relation::equal) {
    const double k_blocks = tiles(p) * ceil_div(static_cast<int>(p.k), C::kBlockK);
    const double loads = k_blocks * C::kPair;
    return {tma_loads("a").requests(loads * Stage<C>::A::kPanels),
            tma_loads("b").requests(loads * Stage<C>::B::kPanels),
            tma_loads("b").bytes(loads * Stage<C>::B::kBytes),
            tensor_core_reads().on("mma").requests(k_blocks * (C::kBlockK / 16)),
            tensor_core_reads().on("mma").bytes(loads * sizeof(Stage<C>)),
            tensor_memory_allocations().requests(blocks, relation),
            tensor_memory_allocations().columns(columns)};
  }
};

}  // namespace cookbook::gemm::blackwell
