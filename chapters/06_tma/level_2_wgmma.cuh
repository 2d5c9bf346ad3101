// SPDX-License-Identifier: MIT
// Level 2: the tensor core reads both tiles from shared memory itself: wgmma, on plain tiles.
#pragma once

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::gemm {

namespace wgmma_tiles {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr Swizzle kSwizzle = Swizzle::none;
};

template <class C>
struct Traits {
  using A = OperandTile<Major::k, C::kSwizzle, C::kBlockM, C::kBlockK>;
  using B = OperandTile<Major::mn, C::kSwizzle, C::kBlockN, C::kBlockK>;
  static constexpr int kStageBytes = A::kBytes + B::kBytes;
  static constexpr int kThreads = 128;                // one warpgroup
  static constexpr int kMmaM = C::kBlockM / 64;       // products of 64 rows
  static constexpr int kSmemBytes = kStageBytes + 8;  // the tiles and their barrier
};

template <class C>
__global__ void __launch_bounds__(Traits<C>::kThreads)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();
  uint64_t* full = reinterpret_cast<uint64_t*>(smem + T::kStageBytes);

  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);

  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  const uint64_t desc_a = T::A::descriptor(smem);
  const uint64_t desc_b = T::B::descriptor(smem + T::A::kBytes);
  float acc[T::kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(full, T::kStageBytes);
      T::A::load(smem, &map_a, full, tile.m * C::kBlockM, k_block * C::kBlockK);
      T::B::load(smem + T::A::kBytes, &map_b, full, tile.n * C::kBlockN, k_block * C::kBlockK);
    }
    mbarrier_wait(full, k_block & 1);

    wgmma_fence();
#pragma unroll
    for (int k = 0; k < C::kBlockK; k += 16) {
#pragma unroll
      for (int i = 0; i < T::kMmaM; ++i) {
        wgmma_m64k16<C::kBlockN, bf16, Major::k, Major::mn>(
            acc[i], wgmma_descriptor_advance(desc_a, T::A::offset_bytes(64 * i, k)),
            wgmma_descriptor_advance(desc_b, T::B::offset_bytes(0, k)), k_block > 0 || k > 0);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();  // the products have read the tiles and written acc
    __syncthreads();  // of all four warps: the tiles may be overwritten
  }

#pragma unroll
  for (int i = 0; i < T::kMmaM; ++i) {
    wgmma_fence_operand(acc[i]);  // sums are read only from here
    store_accumulators(acc[i], out, e, tile.m * C::kBlockM + 64 * i, tile.n * C::kBlockN);
  }
}

/// Everything but the name: level 3 and chapter 7 run this kernel with other swizzles.
template <class C>
struct LevelOn : LevelT<bf16> {
  using Plan = TmaPlan;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_wgmma(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    return plan_operands<typename Traits<C>::A, typename Traits<C>::B>(p, at);
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan, stream)) return;
    const Problem& p = plan.problem;
    launch(kernel<C>,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(Traits<C>::kThreads),
            Traits<C>::kSmemBytes},
           stream, plan.a, plan.b, Output{plan.buffers.c, p.ldc}, extents_of(p));
  }
  /// Boxes of A that all tiles and k-blocks of the problem take together.
  static double boxes_of_a(const Problem& p) {
    return static_cast<double>(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)) *
           ceil_div(static_cast<int>(p.k), C::kBlockK) * Traits<C>::A::kPanels;
  }
};

}  // namespace wgmma_tiles

struct WgmmaTiles : wgmma_tiles::LevelOn<wgmma_tiles::Config> {
  using Config = wgmma_tiles::Config;
  static constexpr const char* name = "wgmma";
  static constexpr const char* changed =
      "wgmma: one instruction multiplies 64 x 128 x 16 from shared memory";
  static constexpr const char* expect =
      "slower: the tensor cores are faster, but a plain tile takes 24 boxes of 16-byte rows";
  static constexpr const char* cost = "128 accumulators a thread; sm_90a only";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            slower_than_previous(0.2,
                                 "unswizzled tiles are made of 16-byte rows, the worst shape "
                                 "for TMA: see level 3")};
  }
};

}  // namespace cookbook::gemm
