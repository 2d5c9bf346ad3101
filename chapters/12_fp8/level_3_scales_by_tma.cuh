// SPDX-License-Identifier: MIT
// Level 3: the scales of A arrive with A's tile.
#pragma once

#include "chapters/12_fp8/level_2_two_warpgroups.cuh"

namespace cookbook::fp8 {

namespace scales_by_tma {

/// A stage also holds the scales of its rows of A. The scale of B is one number per tile and block
/// of k: a load of all threads from one address, early enough to be there when it is needed.
struct ScalesByTma {
  template <class C>
  static constexpr int kStagedFloats = C::kBlockM;

  template <class C, class Smem>
  static __device__ __forceinline__ void load(Smem& smem, const TensorMap* map, int stage,
                                              TileIndex tile, int k_block) {
    // [quote scales_by_tma]
    mbarrier_expect_tx(&smem.full[stage], C::kBlockM * sizeof(float));
    tma_load_2d(smem.scale_a[stage], map, &smem.full[stage], tile.m * C::kBlockM, k_block);
    // [end quote]
  }
  template <int kMmaM>
  struct Factors : promoted::ScalesFromGlobal::Factors<kMmaM> {
    float b;

    __device__ __forceinline__ void fetch(const Scales& s, const Extents& e, int k_block,
                                          int /*first_row*/, int col) {
      b = col < e.n ? s.b[col / kScaleBlock * s.ldb + k_block] : 0.0f;
    }
    __device__ __forceinline__ void read(const float* staged, int first_row) {
#pragma unroll
      for (int i = 0; i < 2 * kMmaM; ++i) {
        const int row = first_row + i / 2 * 64 + i % 2 * 8;
        this->row[i / 2][i % 2] = staged[row] * b;  // [staged]
      }
    }
  };
};

struct Config : two_warpgroups::Config {
  using Scales = ScalesByTma;
};

/// As promoted::LevelOn, with a tensor map of the scales.
template <class C>
struct LevelOn : promoted::LevelOn<C> {
  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (Support s = supports_wgmma(p, device); !s) return s;
    return tma_support("ld_scale_a", p.ld_scale_a, 4);
  }
  static TmaPlan prepare(const Problem& p, const Buffers& at) {
    TmaPlan plan = promoted::LevelOn<C>::prepare(p, at);
    plan.fallback = plan.fallback || !is_16_byte_aligned(at.scale_a);
    if (!plan.fallback && p.m > 0 && p.n > 0) {
      plan.scale_a = scale_map(p, at.scale_a, C::kBlockM);
    }
    return plan;
  }
};

}  // namespace scales_by_tma

struct ScalesByTma : scales_by_tma::LevelOn<scales_by_tma::Config> {
  static constexpr LevelText text{
      .name = "scales_by_tma",
      .changed = "one more box per stage: the 128 scales of A",
      .expect = "1.05x: no thread waits for a load from global memory between two blocks of k",
      .cost = "512 bytes of shared memory per stage; rows of scales are a multiple of 16 bytes",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("scale_a").requests(boxes_of_a(p)), global_loads("scale_a").requests(0),
            shared_loads().on("staged").conflict_free(), faster_than_previous(1.15)};
  }
};

}  // namespace cookbook::fp8
