// SPDX-License-Identifier: MIT
// Level 6: MXFP8. The tensor core of an RTX 50 multiplies with a scale per 32 k, which lanes load
// from shared memory.
#pragma once

#include "chapters/14_blackwell/level_7_mxfp8.cuh"
#include "chapters/15_tma_with_mma/level_5_tma_store.cuh"
#include "common/device/mma_scaled.cuh"
#include "common/device/vector.cuh"

namespace cookbook::microscaling {

/// What both formats have in common: a k-block is 128 bytes of a row, and 32 bytes are one
/// instruction. Rows of a stage and atoms of scales are those of chapter 14.
template <class F>
struct MmaScaledConfig {
  using Format = F;
  static constexpr int kTileM = 128, kTileN = 128, kBlockM = kTileM, kBlockN = kTileN;
  static constexpr int kRowBytes = 128, kStepBytes = 32, kSteps = kRowBytes / kStepBytes;
  static constexpr int kBlockK = kRowBytes * 8 / F::kBits, kStepK = kStepBytes * 8 / F::kBits;
  static constexpr int kAtoms = kBlockK / F::kScaleK / kAtomScales;  // of 128 rows and a k-block
  static constexpr int kStepsOfAtom = kSteps / kAtoms;
  static constexpr int kWarpsN = 2;               // by 4: eight warps that multiply
  static constexpr int kWarpM = 32, kWarpN = 64;  // of C, per warp
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static constexpr int kStages = 2;  // 33 KB each, or 36
  static constexpr int kMultiplying = gemm::mma_producer::Config::kMultiplying;
  static constexpr int kThreads = gemm::mma_producer::Config::kThreads;
  static constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
  static constexpr int kGroup = 8;  // rows of tiles per group of the raster order
};

namespace mma_scaled {

template <class C>
struct Smem {
  using Config = C;
  ScaledStage<C> stages[C::kStages];
  unsigned char boxes[C::kMultiplying][gemm::tma_store::kBoxBytes];  // 16 x 64 of C per warp
  uint64_t full[C::kStages], empty[C::kStages];
};

/// Starts the loads of a k-block and its scales. atoms_k: atoms of a row of A. Called by one
/// thread.
template <class C>
__device__ __forceinline__ void load(ScaledStage<C>& stage, uint64_t* full, const TensorMap* map_a,
                                     const TensorMap* map_b, const Scales& scales, TileIndex tile,
                                     int k_block, int atoms_k) {
  // The last k-block may have fewer atoms.
  const int first = k_block * C::kAtoms, atoms = min(C::kAtoms, atoms_k - first);
  const auto bytes = static_cast<uint32_t>(atoms * kAtomBytes);
  mbarrier_arrive_expect_tx(full, sizeof(stage.a) + sizeof(stage.b) + 2 * bytes);
  tma_load_2d(stage.a, map_a, full, k_block * C::kRowBytes, tile.m * C::kTileM);
  tma_load_2d(stage.b, map_b, full, k_block * C::kRowBytes, tile.n * C::kTileN);
  bulk_load_scales(stage.scale_a, scales.a + atom_offset(tile.m, atoms_k, first), bytes, full);
  bulk_load_scales(stage.scale_b, scales.b + atom_offset(tile.n, atoms_k, first), bytes, full);
}

/// A warp's operands of one instruction step: 32 bytes of k.
template <class C>
struct Fragments {
  uint32_t a[C::kMmaM][4], b[C::kMmaN][2];
};

/// Where a lane finds its rows in a stage, and its scales in an atom.
template <class C>
struct Places {
  int a, b, scale_a, scale_b;  // bytes

  __device__ __forceinline__ explicit Places(int warp) {
    const int lane = lane_idx(), warp_m = warp / C::kWarpsN, warp_n = warp % C::kWarpsN;
    const int row = warp_m * C::kWarpM + lane % 16;
    const int column = warp_n * C::kWarpN + lane / 16 * 8 + lane % 8;
    a = swizzle_address<Swizzle::b128>(row * C::kRowBytes + lane / 16 * 16);
    b = swizzle_address<Swizzle::b128>(column * C::kRowBytes + lane / 8 % 2 * 16);
    // [quote places]
    const int of_lane = (lane / 4 + 8 * (lane % 4)) * 16;  // row of 32; 16 bytes are four rows'
    scale_a = of_lane + 4 * warp_m;
    scale_b = of_lane + 8 * warp_n;
    // [end quote]
  }
  __device__ __forceinline__ void load(Fragments<C>& to, const ScaledStage<C>& stage,
                                       int step) const {
    // Step `step` is two chunks of 16 bytes further: within the swizzle, an exclusive or.
    const int in_row = step * C::kStepBytes;
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
      ldmatrix_x4(to.a[i], stage.a + (a ^ in_row) + 16 * i * C::kRowBytes);  // [fragments]
    }
#pragma unroll
    for (int j = 0; j < C::kMmaN; j += 2) {
      uint32_t two[4];
      ldmatrix_x4(two, stage.b + (b ^ in_row) + 8 * j * C::kRowBytes);  // [fragments]
      to.b[j][0] = two[0], to.b[j][1] = two[1];
      to.b[j + 1][0] = two[2], to.b[j + 1][1] = two[3];
    }
  }
};

/// Adds a stage to `acc`: `steps` instructions deep, which is all of it except at the end of k.
template <class C>
__device__ __forceinline__ void multiply(float (&acc)[C::kMmaM][C::kMmaN][4],
                                         const ScaledStage<C>& stage, const Places<C>& places,
                                         int steps) {
  Fragments<C> fragments[2];  // one is multiplied while the other one is loaded
  uint32_t scales_a = 0;
  Pack<uint32_t, 2> scales_b{};  // of 64 columns
  places.load(fragments[0], stage, 0);
#pragma unroll
  for (int s = 0; s < C::kSteps; ++s) {
    if (s >= steps) break;
    // [quote scaled]
    const int atom = s / C::kStepsOfAtom * kAtomBytes, byte = s % C::kStepsOfAtom;
    if (byte == 0) {
      scales_a = load_vector<uint32_t>(stage.scale_a + atom + places.scale_a);
      scales_b = load_vector<Pack<uint32_t, 2>>(stage.scale_b + atom + places.scale_b);
    }
    if (s + 1 < C::kSteps) places.load(fragments[(s + 1) % 2], stage, s + 1);
    const auto& [a, b] = fragments[s % 2];
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < C::kMmaN; ++j) {
        if constexpr (C::Format::kBits == 8) {
          mma_m16n8k32_mxfp8(acc[i][j], a[i], b[j], scales_a, i, scales_b[j / 4], j % 4, byte);
        } else {
          mma_m16n8k64_nvfp4(acc[i][j], a[i], b[j], scales_a, i, scales_b[j / 4], j % 4);
        }
      }
    }
    // [end quote]
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Scales scales, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int tiles = ceil_div(e.m, C::kTileM) * ceil_div(e.n, C::kTileN);
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (threadIdx.x == 0) gemm::init_barriers(smem, C::kMultiplying);
  __syncthreads();
  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      const int atoms_k = ceil_div(e.k, C::Format::kScaleK * kAtomScales);
      StageCursor<C::kStages> write;
      for (int t = first; t < tiles; t += blocks) {
        const TileIndex tile = gemm::warp_tiles::tile_at<C>(t, e);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);
          load(smem.stages[write.stage], &smem.full[write.stage], &map_a, &map_b, scales, tile,
               k_block, atoms_k);
          write.advance();
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int own = warp - 4;
    const Places<C> places(own);
    StageCursor<C::kStages> read;
    for (int t = first; t < tiles; t += blocks) {
      float acc[C::kMmaM][C::kMmaN][4] = {};
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        mbarrier_wait(&smem.full[read.stage], read.phase);
        multiply<C>(acc, smem.stages[read.stage], places,
                    ceil_div(e.k - k_block * C::kBlockK, C::kStepK));
        __syncwarp();  // every lane has read this stage
        if (lane_idx() == 0) mbarrier_arrive(&smem.empty[read.stage]);
        __syncwarp();  // mma.sync needs all lanes together
        read.advance();
      }
      const TileIndex tile = gemm::warp_tiles::tile_at<C>(t, e);
      gemm::mma_tma_store::store_boxes<C>(acc, &map_c, smem.boxes[own],
                                          tile.m * C::kTileM + own / C::kWarpsN * C::kWarpM,
                                          tile.n * C::kTileN + own % C::kWarpsN * C::kWarpN);
    }
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
}

/// Everything but the level's name: level 7 runs this kernel with another format.
template <class C>
struct LevelOn : scaled::LevelOn<C> {
  using Base = scaled::LevelOn<C>;
  using Problem = typename Base::Problem;
  struct Plan : Base::Plan {
    TensorMap c{};
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    static_assert(sizeof(Smem<C>) <= 99 * 1024, "fits an RTX 50");
    if (device.cc_major != 12) return Support::no("needs sm_120a (mma.sync with block scales)");
    if (auto why = gemm::tma_pitch_problem("ldc", p.ldc); !why.empty()) return Support::no(why);
    if (!gemm::tma_stores_rows_of(p.n)) {
      return Support::no("TMA stores whole units of 16 bytes: n = " + std::to_string(p.n) +
                         " is no multiple of 8");
    }
    if (p.k == 0) return Support::no("K = 0: there is nothing to multiply");
    if (p.lda % 16 != 0 || p.ldb % 16 != 0) {
      return Support::no("TMA steps in 16 bytes: rows of A and B must be multiples of that");
    }
    return Support::yes();
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{Base::prepare(p, at)};
    if (Base::tiles(p) > 0) {
      plan.c = gemm::matrix_map(at.c, p.m, p.n, p.ldc, gemm::tma_store::kBoxRows,
                                gemm::tma_store::kBoxCols, Swizzle::b128);
    }
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    const Problem& p = plan.problem;
    if (Base::tiles(p) == 0) return;
    launch(kernel<C>, {dim3(Base::blocks(p)), dim3(C::kThreads), sizeof(Smem<C>)}, stream, plan.a,
           plan.b, plan.c, Scales{plan.buffers.scale_a, plan.buffers.scale_b},
           Extents{static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k)});
  }
  static Claims claims(const Problem& p) {
    const double tiles = Base::tiles(p);
    return {tma_loads("a").requests(tiles * ceil_div(static_cast<int>(p.k), C::kBlockK)),
            tma_loads("scale_a").bytes(tiles * static_cast<double>(p.atoms_k() * kAtomBytes)),
            shared_loads().on("fragments").conflict_free(),
            shared_stores().on("stage").conflict_free()};
  }
};

}  // namespace mma_scaled

struct MmaMxfp8 : mma_scaled::LevelOn<MmaScaledConfig<Mxfp8>> {
  static constexpr LevelText text{
      .name = "mxfp8",
      .changed = "e4m3 with a scale per 32 k, which mma.sync itself applies",
      .expect = "half the bytes of bf16, and half as many instructions",
      .cost = "lanes load the scales: three registers per 128 k",
  };
};

}  // namespace cookbook::microscaling
