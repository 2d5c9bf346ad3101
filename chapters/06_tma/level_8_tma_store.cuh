// SPDX-License-Identifier: MIT
// Level 8: C is stored by TMA, through shared memory. From here on A and B may have any layout.
#pragma once

#include "chapters/06_tma/level_7_one_in_flight.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace tma_store {

inline constexpr int kBoxRows = 16, kBoxCols = 64, kBoxBytes = kBoxRows * kBoxCols * 2;

/// The tensor map of C for store_tile.
inline TensorMap output_map(const Problem& p, bf16* c) {
  return matrix_map(c, p.m, p.n, p.ldc, kBoxRows, kBoxCols, Swizzle::b128);
}

template <class C>
struct Smem {
  using Config = C;
  Stage<C> stages[C::kStages];
  unsigned char boxes[4 * C::kConsumers][C::kStoreBuffers * kBoxBytes];  // of C, per consumer warp
  uint64_t full[C::kStages], empty[C::kStages];
};

/// Packs 16 x 64 accumulators of a warp to bf16, four 8 x 8 matrices per instruction: columns
/// `first` .. + 63 of the tile. Free of bank conflicts: the swizzle puts eight rows in eight
/// chunks.
template <int kAccumulators>
__device__ __forceinline__ void pack_columns(unsigned char* box, const float (&acc)[kAccumulators],
                                             int first) {
  const int lane = lane_idx();
#pragma unroll
  for (int j = 0; j < 4; ++j) {  // 16 x 16 at a time
    const float* d = &acc[first / 2 + 8 * j];
    const uint32_t r[4] = {to_pair<bf16>(d[0], d[1]),             // rows 0..7,  columns 0..7
                           to_pair<bf16>(d[2], d[3]),             // rows 8..15, columns 0..7
                           to_pair<bf16>(d[4], d[5]),             // rows 0..7,  columns 8..15
                           to_pair<bf16>(d[6], d[7])};            // rows 8..15, columns 8..15
    const int byte = lane % 16 * 128 + (2 * j + lane / 16) * 16;  // this lane's row of eight
    stmatrix_x4(box + swizzle_address<Swizzle::b128>(byte), r);   // [stage]
  }
}

/// The same for columns 64 * across .. + 63.
template <int kAccumulators>
__device__ __forceinline__ void pack_box(unsigned char* box, const float (&acc)[kAccumulators],
                                         int across) {
  pack_columns(box, acc, 64 * across);
}

/// Writes a warp's rows of the accumulators, 16 of every 64, box by box. The warp packs one box
/// while TMA stores the previous ones. row, col: the warp's first element of C; boxes: kBuffers
/// boxes that only this warp uses. Lane 0 issues the stores and waits for them, so __syncwarp is
/// the only barrier.
template <int kBuffers, int kMmaM, int kAccumulators>
__device__ __forceinline__ void store_tile(const float (&acc)[kMmaM][kAccumulators],
                                           const TensorMap* map_c, unsigned char* boxes, int row,
                                           int col) {
  constexpr int kAcross = kAccumulators / 32;
  timeline::begin(timeline::Kind::store);
#pragma unroll
  for (int i = 0; i < kMmaM * kAcross; ++i) {
    unsigned char* box = boxes + i % kBuffers * kBoxBytes;
    if (lane_idx() == 0) {  // the box's previous store must have read it
      if (i == 0) {
        tma_store_wait_read<0>();
      } else {
        tma_store_wait_read<kBuffers - 1>();
      }
    }
    __syncwarp();
    // [quote tma_store]
    pack_box(box, acc[i / kAcross], i % kAcross);
    fence_proxy_async();  // every lane's writes, before TMA reads them
    __syncwarp();
    if (lane_idx() == 0) {
      tma_store_2d(map_c, box, col + 64 * (i % kAcross), row + 64 * (i / kAcross));
      tma_store_commit();
    }
    // [end quote]
  }
  timeline::end(timeline::Kind::store);
}

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : one_in_flight::Config {
  static constexpr Major kMajorA = kA, kMajorB = kB;
  static constexpr int kStoreBuffers = 2;  // boxes of C per warp that TMA may still be storing
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const auto store = [&](auto& acc, int row, int col, int warp) {
    wgmma_fence_operand(acc);  // the accumulators are read only from here
    store_tile<C::kStoreBuffers>(acc, &map_c, smem.boxes[warp - 4], row + warp % 4 * 16, col);
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  };
  one_in_flight::compute_tile<C>(smem, &map_a, &map_b, e, store);
}

/// Launches `kernel` with one block per tile of the order.
template <class C>
void launch_tiles(const TmaPlan& plan, Stream stream) {
  const Extents e = extents_of(plan.problem);
  launch(kernel<C>,
         {dim3(C::Order::blocks(ceil_div(e.m, C::kBlockM), ceil_div(e.n, C::kBlockN))),
          dim3(C::kThreads), sizeof(Smem<C>)},
         stream, plan.a, plan.b, plan.c, e);
}

/// Host side of the levels that store C by TMA, for operands in any layout. ConfigOf: maps the
/// majors of A and B to the level's Config.
template <template <Major, Major> class ConfigOf>
struct LayoutLevel : LevelT<bf16> {
  using Config = ConfigOf<Major::k, Major::mn>;
  using Plan = TmaPlan;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_tma_store(p, device, true);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan = with_majors(p, [&](auto a, auto b) {
      using Tiles = Stage<ConfigOf<a.value, b.value>>;
      return plan_operands<typename Tiles::A, typename Tiles::B>(p, at);
    });
    plan.fallback = plan.fallback || !is_16_byte_aligned(at.c);
    if (!plan.fallback && !plan.is_empty()) plan.c = output_map(p, at.c);
    return plan;
  }
  /// Calls launch_kernel(Config{}) with the Config of the plan's layout, unless fallback_gemm does
  /// the work.
  template <class F>
  static void in_layout(const Plan& plan, Stream stream, F&& launch_kernel) {
    if (launched_fallback(plan, stream)) return;
    with_majors(plan.problem, [&](auto a, auto b) { launch_kernel(ConfigOf<a.value, b.value>{}); });
  }
  /// Boxes of A of all tiles.
  static double boxes_of_a(const Problem& p) { return gemm::boxes_of_a<Config>(p); }
};

/// Everything but the level's name: chapter 7 runs this kernel in other orders. A template, so that
/// a file that includes this level for something else compiles no kernel.
template <template <Major, Major> class ConfigOf>
struct LevelOn : LayoutLevel<ConfigOf> {
  static void run(const TmaPlan& plan, Stream stream) {
    LayoutLevel<ConfigOf>::in_layout(
        plan, stream, [&](auto config) { launch_tiles<decltype(config)>(plan, stream); });
  }
};

}  // namespace tma_store

struct TmaStore : tma_store::LevelOn<tma_store::Config> {
  static constexpr LevelText text{
      .name = "tma_store",
      .changed = "C: stmatrix to shared memory, then one TMA store per warp and box; any layout",
      .expect =
          "1.03x: whole 128-byte lines of C instead of 16-byte pieces, and no address arithmetic",
      .cost = "32 KB for the boxes; C's pitch must be a multiple of 16 bytes as well",
  };

  static Claims claims(const Problem& p) {
    const double tiles = blocks_for(p.m, p.n, Config::kBlockM, Config::kBlockN);
    const double boxes =
        Config::kBlockM / tma_store::kBoxRows * (Config::kBlockN / tma_store::kBoxCols);
    return {tma_stores("c").requests(tiles * boxes), shared_stores().on("stage").conflict_free(),
            faster_than_previous(1.0)};
  }
};

}  // namespace cookbook::gemm
