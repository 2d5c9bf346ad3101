// SPDX-License-Identifier: MIT
// Level 7: MXFP8. Scales follow their operands: from global to shared to tensor memory, where the
// tensor core reads them.
#pragma once

#include "chapters/14_blackwell/level_4_two_accumulators.cuh"
#include "chapters/14_blackwell/problem.hpp"

namespace cookbook::microscaling {

using gemm::ceil_div, gemm::Extents, gemm::Output;

/// What both formats have in common: a k-block is 128 bytes of a row, and 32 bytes are one
/// instruction.
template <class F, Tcgen05Element kElementOf>
struct ScaledConfig : gemm::blackwell_two_accumulators::Config {
  using Format = F;
  static constexpr Tcgen05Element kElement = kElementOf;
  static constexpr int kBlockN = 128, kTileN = 128;
  static constexpr int kRowBytes = 128, kStepBytes = 32;
  static constexpr int kBlockK = kRowBytes * 8 / F::kBits, kStepK = kStepBytes * 8 / F::kBits;
  static constexpr int kAtoms = kBlockK / F::kScaleK / kAtomScales;  // of 128 rows and a k-block
  static constexpr int kStages = 5;
  // Columns of tensor memory: two accumulators, then the scales of A and B of each stage, four
  // columns per atom.
  static constexpr int kFirstScale = kAccumulators * kTileN, kScaleColumns = 2 * 4 * kAtoms;
  static constexpr int kColumns = 512;
  static_assert(kFirstScale + kStages * kScaleColumns <= kColumns, "fits tensor memory");
};

template <class C>
struct ScaledStage {
  unsigned char a[C::kBlockM * C::kRowBytes], b[C::kBlockN * C::kRowBytes];
  unsigned char scale_a[C::kAtoms * kAtomBytes], scale_b[C::kAtoms * kAtomBytes];
};

template <class C>
struct Smem {
  using Config = C;
  ScaledStage<C> stages[C::kStages];
  static_assert(sizeof(ScaledStage<C>) % 1024 == 0, "the swizzle's alignment");
  uint64_t full[C::kStages], empty[C::kStages];
  uint64_t multiplied[C::kAccumulators], stored[C::kAccumulators];
  uint32_t tmem;
};

/// The scales of A and B in global memory.
struct Scales {
  const std::uint8_t *a, *b;
};

namespace scaled {

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
  // [quote scales]
  bulk_load(stage.scale_a, scales.a + atom_offset(tile.m, atoms_k, first), bytes, full);
  bulk_load(stage.scale_b, scales.b + atom_offset(tile.n, atoms_k, first), bytes, full);
  // [end quote]
}

/// Starts the multiplication of a stage: `steps` instructions. scale: the stage's columns of tensor
/// memory.
template <class C>
__device__ __forceinline__ void mma_k_block(uint32_t d, uint32_t scale, const ScaledStage<C>& stage,
                                            int steps, bool accumulate) {
  constexpr uint32_t kInstruction = tcgen05_instruction<C::kElement, C::kTileM, C::kTileN>();
  constexpr int kStepsOfAtom = C::kBlockK / C::kStepK / C::kAtoms;
  const uint64_t a = tcgen05_descriptor<Swizzle::b128>(stage.a, 0, 8 * C::kRowBytes);
  const uint64_t b = tcgen05_descriptor<Swizzle::b128>(stage.b, 0, 8 * C::kRowBytes);
  const uint64_t scale_a = tcgen05_descriptor<Swizzle::none>(stage.scale_a, 0, 128);
  const uint64_t scale_b = tcgen05_descriptor<Swizzle::none>(stage.scale_b, 0, 128);
#pragma unroll
  for (int i = 0; i < C::kBlockK / C::kStepK; ++i) {
    if (i >= steps) break;
    // [quote scaled]
    const int atom = i / kStepsOfAtom, byte = i % kStepsOfAtom;
    const uint32_t of_a = scale + 4 * atom, of_b = of_a + 4 * C::kAtoms;
    if (byte == 0) {
      tcgen05_copy_scales(of_a, tcgen05_descriptor_advance(scale_a, atom * kAtomBytes));
      tcgen05_copy_scales(of_b, tcgen05_descriptor_advance(scale_b, atom * kAtomBytes));
    }
    const uint32_t which = static_cast<uint32_t>(byte) << 4 | static_cast<uint32_t>(byte) << 29;
    const uint64_t a_k = tcgen05_descriptor_advance(a, i * C::kStepBytes);
    const uint64_t b_k = tcgen05_descriptor_advance(b, i * C::kStepBytes);
    tcgen05_mma_scaled<C::kElement>(  // [mma]
        d, a_k, b_k, kInstruction | which, of_a, of_b, accumulate || i > 0);
    // [end quote]
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Scales scales, Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();
  const int atoms_k = ceil_div(e.k, C::Format::kScaleK * kAtomScales);
  const int tiles = gemm::blackwell::tiles_of<C>(e);
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);

  if (warp == C::kMmaWarp) {
    tmem_alloc(&smem.tmem, C::kColumns);
    tmem_relinquish();
  }
  if (threadIdx.x == 0) {
    gemm::blackwell_two_accumulators::init_accumulator_barriers(smem, 4);
    gemm::init_barriers(smem, 1);  // a commit arrives once
  }
  __syncthreads();
  const uint32_t base = smem.tmem;

  StageCursor<C::kAccumulators> half;
  if (warp == C::kLoadWarp) {
    if (elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = first; t < tiles; t += blocks) {
        const TileIndex tile = gemm::blackwell::tile_at<C>(t, e);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);
          load(smem.stages[write.stage], &smem.full[write.stage], &map_a, &map_b, scales, tile,
               k_block, atoms_k);
          write.advance();
        }
      }
    }
  } else if (warp == C::kMmaWarp) {
    if (elect_one()) {
      StageCursor<C::kStages> read;
      for (int t = first; t < tiles; t += blocks, half.advance()) {
        mbarrier_wait(&smem.stored[half.stage], half.phase ^ 1);
        tcgen05_fence_after_thread_sync();
        const uint32_t d = base + static_cast<uint32_t>(half.stage * C::kTileN);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          mbarrier_wait(&smem.full[read.stage], read.phase);
          const int steps = ceil_div(e.k - k_block * C::kBlockK, C::kStepK);
          mma_k_block(d, base + C::kFirstScale + read.stage * C::kScaleColumns,
                      smem.stages[read.stage], steps, k_block > 0);
          tcgen05_commit(&smem.empty[read.stage]);
          read.advance();
        }
        tcgen05_commit(&smem.multiplied[half.stage]);
      }
    }
  } else {
    for (int t = first; t < tiles; t += blocks, half.advance()) {
      const TileIndex tile = gemm::blackwell::tile_at<C>(t, e);
      const uint32_t d = base + static_cast<uint32_t>(half.stage * C::kTileN);
      mbarrier_wait(&smem.multiplied[half.stage], half.phase);
      tcgen05_fence_after_thread_sync();
      const auto release = [&] {
        tcgen05_fence_before_thread_sync();
        __syncwarp();
        if (lane_idx() == 0) mbarrier_arrive(&smem.stored[half.stage]);
      };
      gemm::blackwell::store_accumulator<C::kTileN>(d, out, e, tile.m * C::kTileM,
                                                    tile.n * C::kTileN, release);
    }
  }
  __syncthreads();  // every warp has read its lanes
  if (warp == C::kMmaWarp) tmem_dealloc(base, C::kColumns);
}

/// Tensor map of `rows` rows of `row_bytes` bytes, loaded in boxes of 128 x 128.
inline TensorMap operand_map(const std::uint8_t* base, std::int64_t rows, std::int64_t row_bytes,
                             std::int64_t pitch) {
  TensorMapSpec spec;
  spec.dtype = TensorType::u8;
  spec.base = base;
  spec.extents = {static_cast<std::uint64_t>(row_bytes), static_cast<std::uint64_t>(rows)};
  spec.strides_bytes = {static_cast<std::uint64_t>(pitch)};
  spec.box = {128, 128};
  spec.swizzle = Swizzle::b128;
  spec.l2_promotion = L2Promotion::b256;
  return make_tensor_map(spec);
}

/// Everything but the level's name: level 8 runs this kernel with another format.
template <class C>
struct LevelOn : LevelOf<Problem<typename C::Format>, Buffers> {
  using Config = C;
  using Problem = microscaling::Problem<typename C::Format>;
  struct Plan {
    Problem problem;
    Buffers buffers;
    TensorMap a{}, b{};
  };

  static unsigned tiles(const Problem& p) {
    return gemm::blocks_for(p.m, p.n, C::kTileM, C::kTileN);
  }
  static unsigned blocks(const Problem& p) {
    return std::min(tiles(p), static_cast<unsigned>(device_info().sm_count));
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc_major != 10) return Support::no("needs sm_100a (tcgen05)");
    if (p.k == 0) return Support::no("K = 0: there is nothing to multiply");
    if (p.lda % 16 != 0 || p.ldb % 16 != 0) {
      return Support::no("TMA steps in 16 bytes: rows of A and B must be multiples of that");
    }
    return Support::yes();
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{p, at};
    if (tiles(p) == 0) return plan;
    if (!gemm::is_16_byte_aligned(at.scale_a) || !gemm::is_16_byte_aligned(at.scale_b)) {
      throw std::invalid_argument("bulk copies of scales need addresses that are multiples of 16");
    }
    plan.a = operand_map(at.a, p.m, p.row_bytes(), p.lda);
    plan.b = operand_map(at.b, p.n, p.row_bytes(), p.ldb);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    const Problem& p = plan.problem;
    if (tiles(p) == 0) return;
    launch(kernel<C>, {dim3(blocks(p)), dim3(C::kThreads), sizeof(Smem<C>)}, stream, plan.a, plan.b,
           Scales{plan.buffers.scale_a, plan.buffers.scale_b}, Output{plan.buffers.c, p.ldc},
           Extents{static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k)});
  }
  static Claims claims(const Problem& p) {
    const int k = static_cast<int>(p.k);
    const double k_blocks = tiles(p) * ceil_div(k, C::kBlockK);
    return {tma_loads("a").requests(k_blocks),
            tma_loads("a").bytes(static_cast<double>(p.m * p.row_bytes()) *
                                 ceil_div(static_cast<int>(p.n), C::kTileN)),
            tma_loads("scale_a").bytes(static_cast<double>(tiles(p) * p.atoms_k() * kAtomBytes)),
            tensor_core_reads().on("mma").requests(tiles(p) * ceil_div(k, C::kStepK)),
            tensor_memory_allocations().requests(tiles(p), Relation::at_most),
            tensor_memory_allocations().columns(512)};
  }
};

}  // namespace scaled

struct BlackwellMxfp8 : scaled::LevelOn<ScaledConfig<Mxfp8, Tcgen05Element::e4m3>> {
  static constexpr LevelText text{
      .name = "mxfp8",
      .changed = "e4m3 with a scale per 32 k, which the tensor core itself applies",
      .expect =
          "half the bytes of bf16 and twice the documented rate; chapter 12's multiplications of "
          "the "
          "accumulators by the scales are gone",
      .cost = "40 of 512 columns of tensor memory hold scales, so that tiles are 128 wide",
  };
};

}  // namespace cookbook::microscaling
