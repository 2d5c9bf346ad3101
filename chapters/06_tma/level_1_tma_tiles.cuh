// SPDX-License-Identifier: MIT
// Level 1: one thread tells TMA to load whole tiles; an mbarrier says when they have arrived.
#pragma once

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace tma_tiles {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr int kWarpM = 64, kWarpN = 32;  // of C, per warp; 2 x 4 warps
  static constexpr int kStages = 3;
  static constexpr Swizzle kSwizzle = Swizzle::b128;
};

/// A tile in shared memory: panels of kRows rows, as wide as the swizzle's span. Without a swizzle
/// TMA supports any box width; here it is 128 bytes.
template <Swizzle kSwizzle, int kRows, int kCols>
struct PanelTile {
  static constexpr int kSpanBytes =
      kSwizzle == Swizzle::none ? 128 : static_cast<int>(swizzle_span_bytes(kSwizzle));
  static constexpr int kPanelCols = kSpanBytes / 2;  // elements
  static constexpr int kPanels = kCols / kPanelCols;
  static constexpr int kPanelBytes = kRows * kSpanBytes;
  static constexpr int kBytes = kPanels * kPanelBytes;

  /// Tensor map of the whole operand.
  static TensorMap map(const bf16* base, std::int64_t rows, std::int64_t cols, std::int64_t pitch) {
    return matrix_map(base, rows, cols, pitch, kRows, kPanelCols, kSwizzle);
  }
  /// Starts the loads of the tile whose first element is matrix[row][col].
  static __device__ __forceinline__ void load(unsigned char* tile, const TensorMap* map,
                                              uint64_t* bar, int row, int col) {
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      tma_load_2d(tile + panel * kPanelBytes, map, bar, col + panel * kPanelCols, row);
    }
  }
  /// Where TMA put the 16 bytes that begin with element (row, col).
  static __device__ __forceinline__ const unsigned char* at(const unsigned char* tile, int row,
                                                            int col) {
    const int panel = col / kPanelCols, byte = row * kSpanBytes + col % kPanelCols * 2;
    return tile + panel * kPanelBytes + swizzle_address<kSwizzle>(byte);
  }
};

template <class C>
struct Traits {
  using A = PanelTile<C::kSwizzle, C::kBlockM, C::kBlockK>;
  using B = PanelTile<C::kSwizzle, C::kBlockK, C::kBlockN>;
  struct Stage {
    unsigned char a[A::kBytes], b[B::kBytes];
  };
  struct Smem {
    Stage stages[C::kStages];
    uint64_t full[C::kStages];
  };
  static constexpr int kWarpsN = C::kBlockN / C::kWarpN;
  static constexpr int kThreads = C::kBlockM / C::kWarpM * kWarpsN * kWarpSize;
};

template <class C>
__global__ void __launch_bounds__(Traits<C>::kThreads)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  using T = Traits<C>;
  auto& smem = *dynamic_shared<typename T::Smem>();

  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);

  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) mbarrier_init(&smem.full[s], 1);
    fence_mbarrier_init();
  }
  __syncthreads();  // no thread may wait on an uninitialised barrier

  const auto load = [&](int k_block) {  // called by one thread; no other computes addresses
    const int stage = k_block % C::kStages;
    auto& to = smem.stages[stage];
    uint64_t* bar = &smem.full[stage];
    // [quote tma_tiles]
    mbarrier_arrive_expect_tx(bar, sizeof(typename T::Stage));
    T::A::load(to.a, &map_a, bar, tile.m * C::kBlockM, k_block * C::kBlockK);
    T::B::load(to.b, &map_b, bar, k_block * C::kBlockK, tile.n * C::kBlockN);
    // [end quote]
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages - 1 && i < k_blocks; ++i) load(i);
  }

  const int lane = lane_idx();
  const int warp_row = warp_idx() / T::kWarpsN * C::kWarpM;
  const int warp_col = warp_idx() % T::kWarpsN * C::kWarpN;
  float acc[C::kWarpM / 16][C::kWarpN / 8][4] = {};  // of 16 x 8 each

  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    const int stage = k_block % C::kStages;
    mbarrier_wait(&smem.full[stage], k_block / C::kStages & 1);
    // All threads have read the previous round's stage: load into it again.
    if (threadIdx.x == 0 && k_block + C::kStages - 1 < k_blocks) load(k_block + C::kStages - 1);
    __syncwarp();  // ldmatrix and mma need all lanes of the warp

    const unsigned char* a = smem.stages[stage].a;
    const unsigned char* b = smem.stages[stage].b;
    timeline::begin(timeline::Kind::multiply);
#pragma unroll
    for (int k = 0; k < C::kBlockK; k += 16) {
      uint32_t a_frag[C::kWarpM / 16][4];
      uint32_t b_frag[C::kWarpN / 16][4];  // two 16 x 8 fragments each
#pragma unroll
      for (int i = 0; i < C::kWarpM / 16; ++i) {
        const int row = warp_row + 16 * i + lane % 16;
        ldmatrix_x4(a_frag[i], T::A::at(a, row, k + lane / 16 * 8));  // [a]
      }
#pragma unroll
      for (int j = 0; j < C::kWarpN / 16; ++j) {
        const int col = warp_col + 16 * j + lane / 16 * 8;
        ldmatrix_x4_trans(b_frag[j], T::B::at(b, k + lane % 16, col));  // [b]
      }
#pragma unroll
      for (int i = 0; i < C::kWarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < C::kWarpN / 8; ++j) {
          const uint32_t pair[2] = {b_frag[j / 2][j % 2 * 2], b_frag[j / 2][j % 2 * 2 + 1]};
          mma_m16n8k16<bf16>(acc[i][j], a_frag[i], pair);
        }
      }
    }
    timeline::end(timeline::Kind::multiply);
    __syncthreads();  // all threads have read the stage: it may be overwritten
  }

#pragma unroll
  for (int i = 0; i < C::kWarpM / 16; ++i) {
#pragma unroll
    for (int j = 0; j < C::kWarpN / 8; ++j) {
      const int row = tile.m * C::kBlockM + warp_row + 16 * i + lane / 4;
      const int col = tile.n * C::kBlockN + warp_col + 8 * j + lane % 4 * 2;
      store_two(out, e, row, col, acc[i][j][0], acc[i][j][1]);
      store_two(out, e, row + 8, col, acc[i][j][2], acc[i][j][3]);
    }
  }
}

/// Everything but the level's name: chapter 7 runs this kernel with four swizzles.
template <class C>
struct LevelOn : LevelT<bf16> {
  using Config = C;
  using Plan = TmaPlan;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_tma(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    return plan_operands<typename Traits<C>::A, typename Traits<C>::B>(p, at);
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    const Problem& p = plan.problem;
    launch(kernel<C>,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(Traits<C>::kThreads),
            sizeof(typename Traits<C>::Smem)},
           stream, plan.a, plan.b, Output{plan.buffers.c, p.ldc}, extents_of(p));
  }
  /// TMA instructions that fetch A in one launch: one per tile, k-block and panel.
  static double boxes_of_a(const Problem& p) {
    return static_cast<double>(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)) *
           ceil_div(static_cast<int>(p.k), C::kBlockK) * Traits<C>::A::kPanels;
  }
};

}  // namespace tma_tiles

struct TmaTiles : tma_tiles::LevelOn<tma_tiles::Config> {
  static constexpr LevelText text{
      .name = "tma_tiles",
      .changed = "TMA loads whole tiles, mbarriers say when they have arrived",
      .expect =
          "somewhat slower than level 0, because its tiles are smaller: the same tensor-core "
          "instructions, without address arithmetic",
      .cost = "one tensor map per operand; sm_90; pitches that are multiples of 16 bytes",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),  // one instruction per 16 KB
            shared_loads().on("a").conflict_free(), shared_loads().on("b").conflict_free(),
            at_least_previous(0.85, "tiles half as wide as chapter 5's; TMA saves only addresses")};
  }
};

}  // namespace cookbook::gemm
