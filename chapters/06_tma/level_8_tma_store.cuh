// SPDX-License-Identifier: MIT
// Level 8: C leaves through shared memory and TMA. From here on A and B may have any layout.
#pragma once

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/mma.cuh"
#include "common/device/sync.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::gemm {

namespace tma_store {

template <Major kA = Major::k, Major kB = Major::mn>
struct Config {
  static constexpr Major kMajorA = kA, kMajorB = kB;
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 64;
  static constexpr int kStages = 4;
  static constexpr int kBlocksPerSm = 1;
  static constexpr int kStoreBuffers = 2;  // boxes of C that a warp may have on the way
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;  // 40 + 2 x 232 = 3 x 168
};

inline constexpr int kBoxRows = 16, kBoxCols = 64, kBoxBytes = kBoxRows * kBoxCols * 2;

/// Map of C for store_tile.
inline TensorMap output_map(const Problem& p, bf16* c) {
  return matrix_map(c, p.m, p.n, p.ldc, kBoxRows, kBoxCols, Swizzle::b128);
}

template <class C>
struct Traits {
  using A = OperandTile<C::kMajorA, Swizzle::b128, C::kBlockM, C::kBlockK>;
  using B = OperandTile<C::kMajorB, Swizzle::b128, C::kBlockN, C::kBlockK>;
  static constexpr int kStageBytes = A::kBytes + B::kBytes;
  static constexpr int kConsumers = 2;                     // warpgroups, half of the rows each
  static constexpr int kThreads = 128 * (1 + kConsumers);  // and the producer's
  static constexpr int kMmaM = C::kBlockM / kConsumers / 64;
  static constexpr int kStoreBytes = 4 * kConsumers * C::kStoreBuffers * kBoxBytes;
  static constexpr int kSmemBytes = C::kStages * (kStageBytes + 16) + kStoreBytes;
};

/// Packs 16 x 64 accumulators of a warp to bf16, four 8 x 8 matrices an instruction: columns
/// 64 * across .. + 63 of the tile. Conflict-free: the swizzle puts eight rows in eight chunks.
template <int kAccumulators>
__device__ __forceinline__ void pack_box(unsigned char* box, const float (&acc)[kAccumulators],
                                         int across) {
  const int lane = lane_idx();
#pragma unroll
  for (int j = 0; j < 4; ++j) {  // 16 x 16 at a time
    const float* d = &acc[32 * across + 8 * j];
    const uint32_t r[4] = {to_pair<bf16>(d[0], d[1]),             // rows 0..7,  columns 0..7
                           to_pair<bf16>(d[2], d[3]),             // rows 8..15, columns 0..7
                           to_pair<bf16>(d[4], d[5]),             // rows 0..7,  columns 8..15
                           to_pair<bf16>(d[6], d[7])};            // rows 8..15, columns 8..15
    const int byte = lane % 16 * 128 + (2 * j + lane / 16) * 16;  // this lane's row of eight
    stmatrix_x4(box + swizzle_address<Swizzle::b128>(byte), r);   // [stage]
  }
}

/// Writes a warp's rows of the accumulators, 16 of every 64, box by box: one is packed while those
/// before it leave. row, col: of C, the warp's first; boxes: the warp's own kBuffers. Only this
/// warp takes part, and its lane 0 issues and waits: no barrier beyond __syncwarp.
template <int kBuffers, int kMmaM, int kAccumulators>
__device__ __forceinline__ void store_tile(const float (&acc)[kMmaM][kAccumulators],
                                           const TensorMap* map_c, unsigned char* boxes, int row,
                                           int col) {
  constexpr int kAcross = kAccumulators / 32;
#pragma unroll
  for (int i = 0; i < kMmaM * kAcross; ++i) {
    unsigned char* box = boxes + i % kBuffers * kBoxBytes;
    if (lane_idx() == 0) {  // the box's last store must have read it
      if (i == 0) {
        tma_store_wait_read<0>();
      } else {
        tma_store_wait_read<kBuffers - 1>();
      }
    }
    __syncwarp();
    pack_box(box, acc[i / kAcross], i % kAcross);
    fence_proxy_async();  // every lane's writes, before TMA reads them
    __syncwarp();
    if (lane_idx() == 0) {
      tma_store_2d(map_c, box, col + 64 * (i % kAcross), row + 64 * (i / kAcross));
      tma_store_commit();
    }
  }
}

template <class C>
__global__ void __launch_bounds__(Traits<C>::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  using T = Traits<C>;
  unsigned char* smem = dynamic_shared<unsigned char>();  // stages of {A, B}, boxes, barriers
  unsigned char* store = smem + C::kStages * T::kStageBytes;
  uint64_t* full = reinterpret_cast<uint64_t*>(store + T::kStoreBytes);
  uint64_t* empty = full + C::kStages;

  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      mbarrier_init(&full[s], 1);                   // the producer
      mbarrier_init(&empty[s], 4 * T::kConsumers);  // the warps that read
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        unsigned char* a = smem + write.stage * T::kStageBytes;
        uint64_t* bar = &full[write.stage];
        mbarrier_wait(&empty[write.stage], write.phase ^ 1);  // at once on a stage never used
        mbarrier_arrive_expect_tx(bar, T::kStageBytes);
        T::A::load(a, &map_a, bar, tile.m * C::kBlockM, k_block * C::kBlockK);
        T::B::load(a + T::A::kBytes, &map_b, bar, tile.n * C::kBlockN, k_block * C::kBlockK);
        write.advance();
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int row = (warpgroup - 1) * T::kMmaM * 64;  // this warpgroup's first, in the tile
    const uint64_t desc_a =
        wgmma_descriptor_advance(T::A::descriptor(smem), T::A::offset_bytes(row, 0));
    const uint64_t desc_b = T::B::descriptor(smem + T::A::kBytes);
    float acc[T::kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    int previous = 0;  // the stage that the batch in flight reads
    for (int k_block = 0; k_block < k_blocks; ++k_block) {
      mbarrier_wait(&full[read.stage], read.phase);
      const uint64_t a = wgmma_descriptor_advance(desc_a, read.stage * T::kStageBytes);
      const uint64_t b = wgmma_descriptor_advance(desc_b, read.stage * T::kStageBytes);

      wgmma_fence();
#pragma unroll
      for (int k = 0; k < C::kBlockK; k += 16) {
#pragma unroll
        for (int i = 0; i < T::kMmaM; ++i) {
          wgmma_m64k16<C::kBlockN, bf16, C::kMajorA, C::kMajorB>(
              acc[i], wgmma_descriptor_advance(a, T::A::offset_bytes(64 * i, k)),
              wgmma_descriptor_advance(b, T::B::offset_bytes(0, k)), k_block > 0 || k > 0);
        }
      }
      wgmma_commit();
      wgmma_wait<1>();  // the batch before this one is done: its stage is free
      if (k_block > 0 && lane_idx() == 0) mbarrier_arrive(&empty[previous]);
      previous = read.stage;
      read.advance();
    }
    wgmma_wait<0>();  // the last batch; nobody waits for its stage
#pragma unroll
    for (int i = 0; i < T::kMmaM; ++i) wgmma_fence_operand(acc[i]);  // sums are read only from here

    store_tile<C::kStoreBuffers>(acc, &map_c, store + (warp - 4) * C::kStoreBuffers * kBoxBytes,
                                 tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
    if (lane_idx() == 0) tma_store_wait_read<0>();  // shared memory lives as long as its block
  }
}

}  // namespace tma_store

struct TmaStore : LevelT<bf16> {
  using Config = tma_store::Config<>;
  using Plan = TmaPlan;
  static constexpr const char* name = "tma_store";
  static constexpr const char* changed =
      "C: stmatrix to shared memory, then a TMA store a warp; any layout";
  static constexpr const char* expect =
      "1.03x: whole 128-byte lines of C instead of 16-byte pieces, and no address arithmetic";
  static constexpr const char* cost = "32 KB for the boxes; C's pitch must suit TMA as well";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem& p) {
    const double tiles = blocks_for(p.m, p.n, Config::kBlockM, Config::kBlockN);
    const double boxes =
        Config::kBlockM / tma_store::kBoxRows * (Config::kBlockN / tma_store::kBoxCols);
    return {tma_stores("c").requests(tiles * boxes), shared_stores().on("stage").conflict_free(),
            faster_than_previous(1.0)};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_tma_store(p, device, true);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan = with_majors(p, [&](auto a, auto b) {
      using T = tma_store::Traits<tma_store::Config<a.value, b.value>>;
      return plan_operands<typename T::A, typename T::B>(p, at);
    });
    plan.plain = plan.plain || !is_16_byte_aligned(at.c);
    if (!plan.plain && !plan.is_empty()) plan.c = tma_store::output_map(p, at.c);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    if (launched_plain(plan, stream)) return;
    const Problem& p = plan.problem;
    with_majors(p, [&](auto a, auto b) {
      using C = tma_store::Config<a.value, b.value>;
      using T = tma_store::Traits<C>;
      launch(tma_store::kernel<C>,
             {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(T::kThreads), T::kSmemBytes},
             stream, plan.a, plan.b, plan.c, extents_of(p));
    });
  }
};

}  // namespace cookbook::gemm
