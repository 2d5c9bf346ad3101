// SPDX-License-Identifier: MIT
// Level 3: TMA loads the tiles, two ahead of the arithmetic. It zero-fills what lies outside the
// image, so no thread computes a source address or checks a bound.
#pragma once

#include <algorithm>

#include "common/device/mbarrier.cuh"
#include "common/device/tma.cuh"
#include "level_2_register_columns.cuh"

namespace cookbook::convolution {

struct TmaConfig : HaloTileConfig {
  static constexpr int kStages = 2;
  static constexpr int kBlocksPerSm = 4;                             // resident
  static constexpr int kColsPerThread = 1, kThreadCols = kTileCols;  // threads across the tile
  // A box must begin on a 16-byte boundary of a row: four columns before the tile, not two.
  static constexpr int kMargin = 4;
  static constexpr int kBoxCols = kTileCols + 2 * kMargin;
  static_assert(kMargin >= kRadius && kMargin % 4 == 0, "a halo, in units of 16 bytes");

  /// Called by all threads of the block when they have read a stage: afterwards it may be
  /// overwritten.
  static __device__ __forceinline__ void release_stage() { __syncthreads(); }

  /// What a thread computes: a strip of one column. `cols`: of the result, from that one on.
  static __device__ __forceinline__ void convolve(const float* window,
                                                  const float (&weights)[kSide][kSide], float* out,
                                                  std::int64_t pitch, int rows, int /*cols*/) {
    convolve_strip<kStripRows, kBoxCols>(window, weights, out, pitch, rows);
  }
};

template <class C>
struct TmaSmem {
  alignas(128) float halo[C::kStages][C::kHaloRows][C::kBoxCols];
  std::uint64_t full[C::kStages];
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    tma_convolution(const __grid_constant__ TensorMap map, const float* __restrict__ filter,
                    float* __restrict__ out, Shape shape, unsigned count) {
  auto& smem = *dynamic_shared<TmaSmem<C>>();
  const unsigned across = tiles(shape.cols, C::kTileCols);
  const auto load = [&](unsigned tile, int stage) {  // called by one thread
    mbarrier_arrive_expect_tx(&smem.full[stage], sizeof(smem.halo[stage]));
    tma_load_2d(smem.halo[stage], &map, &smem.full[stage],
                static_cast<int>(tile % across) * C::kTileCols - C::kMargin,
                static_cast<int>(tile / across) * C::kTileRows - kRadius);
  };
  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) mbarrier_init(&smem.full[s], 1);
    fence_mbarrier_init();
    for (int s = 0; s < C::kStages; ++s) {
      const unsigned tile = blockIdx.x + static_cast<unsigned>(s) * gridDim.x;
      if (tile < count) load(tile, s);
    }
  }
  float weights[kSide][kSide];
  load_filter(filter, weights);
  __syncthreads();  // the barriers are initialised

  const int own_row = static_cast<int>(threadIdx.x) / C::kThreadCols * C::kStripRows;
  const int own_col = static_cast<int>(threadIdx.x) % C::kThreadCols * C::kColsPerThread;
  int stage = 0;
  unsigned parity = 0;
#pragma unroll 1
  for (unsigned tile = blockIdx.x; tile < count; tile += gridDim.x) {
    mbarrier_wait(&smem.full[stage], parity);
    const int row = static_cast<int>(tile / across) * C::kTileRows + own_row;
    const int col = static_cast<int>(tile % across) * C::kTileCols + own_col;
    if (col < shape.cols) {
      C::convolve(&smem.halo[stage][own_row][own_col + C::kMargin - kRadius], weights,
                  out + row * shape.out_pitch + col, shape.out_pitch, shape.rows - row,
                  shape.cols - col);
    }
    C::release_stage();
    const unsigned next = tile + C::kStages * gridDim.x;
    if (threadIdx.x == 0 && next < count) load(next, stage);
    if (++stage == C::kStages) stage = 0, parity ^= 1;
  }
}

struct Tma : Level {
  using Config = TmaConfig;
  static constexpr LevelText text{
      .name = "tma",
      .changed = "TMA loads the tiles, two ahead; blocks stay and loop over tiles",
      .expect =
          "no instructions for loading, and 78 KB in flight per SM at all times: 0.9 of the copy",
      .cost = "40 KB of shared memory per block; sm_90; rows on 16-byte boundaries",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    TensorMap map{};
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc() < 90) return Support::no("needs sm_90 (TMA)");
    if (p.shape.in_pitch % 4 != 0) {
      return Support::no("TMA steps in 16 bytes: the image's pitch of " +
                         std::to_string(p.shape.in_pitch) + " elements is no multiple of 4");
    }
    return Support::yes();
  }

  static Claims claims(const Problem& p) {
    return {tma_loads("in").requests(tile_count(p.shape, Config::kTileRows, Config::kTileCols)),
            shared_loads().on("window").requests(window_requests<Config>(p.shape)),
            shared_loads().on("window").conflict_free(),
            global_stores("out").coalesced(),
            faster_than_previous(1.05),
            fraction_of_roof(0.68)};
  }

  /// Throws std::invalid_argument if the image is not on a 16-byte boundary.
  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    return prepare_as<Config>(problem, buffers);
  }

  template <class C>
  static Plan prepare_as(const Problem& problem, const Buffers& buffers) {
    const Shape& s = problem.shape;
    Plan plan{problem, buffers};
    if (s.rows == 0 || s.cols == 0) return plan;
    TensorMapSpec spec;
    spec.dtype = TensorType::f32;
    spec.base = buffers.in;
    spec.extents = {static_cast<std::uint64_t>(s.cols), static_cast<std::uint64_t>(s.rows)};
    spec.strides_bytes = {static_cast<std::uint64_t>(s.in_pitch) * sizeof(float)};
    spec.box = {C::kBoxCols, C::kHaloRows};
    plan.map = make_tensor_map(spec);
    return plan;
  }

  static void run(const Plan& plan, Stream stream) { run_as<Config>(plan, stream); }

  template <class C>
  static void run_as(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const unsigned count = tile_count(shape, C::kTileRows, C::kTileCols);
    const unsigned resident = C::kBlocksPerSm * static_cast<unsigned>(device_info().sm_count);
    launch(tma_convolution<C>,
           {dim3(std::min(count, resident)), dim3(C::kThreads), sizeof(TmaSmem<C>)}, stream,
           plan.map, plan.buffers.filter, plan.buffers.out, shape, count);
  }
};

}  // namespace cookbook::convolution
