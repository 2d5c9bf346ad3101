// SPDX-License-Identifier: MIT
/// @file
/// A GEMM with 2 to 16 rows or columns of C and K up to 128: W times a few vectors. All terms of
/// the vectors fit the registers of a warp, so W goes from global memory straight into the operands
/// of `mma.sync`, 16 bytes per lane. Only the vectors pass through shared memory, once per block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "library/gemm/plan.cuh"
#include "common/device/mma.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"

namespace cookbook::gemm::any_shape {

/// kRows: W's stored rows are outputs, otherwise its columns are. kLongest: K is at most this many.
/// kWide: neighbouring outputs are neighbours in C, otherwise neighbouring vectors are.
template <bool kRows, bool kWideC, int kLongest>
struct ShortKConfig {
  static constexpr bool kRowsAreOutputs = kRows, kWide = kWideC;
  static constexpr int kDepth = kLongest, kSteps = kDepth / 16;  // of 16 terms
  static constexpr int kVectors = 16;
  static constexpr int kThreads = 128, kWarps = kThreads / kWarpSize;
  static constexpr int kBlocksPerSm = kRows ? (kDepth == 32   ? 7
                                               : kDepth == 64 ? 5
                                                              : 3)
                                            : (kDepth == 32   ? 5
                                               : kDepth == 64 ? 3
                                                              : 2);
  static constexpr int kGroups = kRows && kDepth == 32 ? 2 : 1;  // of outputs, loads in flight
  static constexpr int kOutputs = (kRows ? 32 : 64) * kGroups;   // of a warp at a time
  static constexpr int kPitch = kDepth + 8;                      // of a vector in shared memory
};

using Words = Pack<std::uint32_t, 4>;

/// Eight neighbouring outputs of a vector.
__device__ __forceinline__ void store_eight(const Words& sums, const Gemv& p, std::int64_t output,
                                            int vector) {
  if (vector >= p.batch) return;
  bf16* y = p.y + output * p.y_step + vector * p.y_pitch;
  if (p.y_step == 1 && output + 8 <= p.outputs && reinterpret_cast<std::uintptr_t>(y) % 16 == 0) {
    store_vector(y, sums);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const auto bits = static_cast<unsigned short>(sums[i / 2] >> (i % 2 * 16));
    if (output + i < p.outputs) y[i * p.y_step] = __ushort_as_bfloat16(bits);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm) short_k(Gemv p) {
  __shared__ __align__(16) bf16 vectors[C::kVectors][C::kPitch];
  const int thread = static_cast<int>(threadIdx.x), lane = lane_idx();
  const int g = lane / 4, t = lane % 4;
  for (int i = thread; i < C::kVectors * C::kDepth; i += C::kThreads) {
    // Neighbouring threads load neighbouring terms.
    const int k = p.x_step == 1 ? i % C::kDepth : i / C::kVectors;
    const int v = p.x_step == 1 ? i / C::kDepth : i % C::kVectors;
    vectors[v][k] =
        k < p.depth && v < p.batch ? p.x[k * p.x_step + v * p.x_pitch] : __float2bfloat16_rn(0.0f);
  }
  __syncthreads();
  // x[s][h]: terms of step s that the lane multiplies, of vector h of two. The order of the terms
  // in a step is that in which a lane holds W's.
  std::uint32_t x[C::kSteps][2][2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int v = C::kWide ? g + 8 * h : g / 2 * 4 + 2 * h + g % 2;
#pragma unroll
    for (int s = 0; s < C::kSteps; ++s) {
      const int k = C::kRowsAreOutputs ? s / 2 * 32 + 8 * t + s % 2 * 4 : 16 * s + 4 * t;
      const auto pair = load_vector<Pack<std::uint32_t, 2>>(&vectors[v][k]);
      x[s][h][0] = pair[0], x[s][h][1] = pair[1];
    }
  }
  const int warp = static_cast<int>(blockIdx.x) * C::kWarps + thread / kWarpSize;
  const int warps = static_cast<int>(gridDim.x) * C::kWarps;
  const std::int64_t chunks = (p.outputs + C::kOutputs - 1) / C::kOutputs;
#pragma unroll 1
  for (std::int64_t chunk = warp; chunk < chunks; chunk += warps) {
    const std::int64_t first = chunk * C::kOutputs;
    if constexpr (C::kRowsAreOutputs) {
      constexpr int kLoads = C::kDepth / 32;  // per row
      Words w[C::kGroups][4][kLoads];
#pragma unroll
      for (int i = 0; i < C::kGroups; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int row = 32 * i + (C::kWide ? g / 2 * 8 + 2 * j + g % 2 : 8 * j + g);
          const bf16* from = p.w + min(first + row, p.outputs - 1) * p.pitch + 8 * t;
#pragma unroll
          for (int c = 0; c < kLoads; ++c) {
            w[i][j][c] = Words{};
            if (32 * c + 8 * t < p.depth) w[i][j][c] = load_vector_streaming<Words>(from + 32 * c);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < C::kGroups; ++i) {
        float d[4][4] = {};
#pragma unroll
        for (int s = 0; s < C::kSteps; ++s) {
          const int c = s / 2, e = s % 2 * 2;
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            if constexpr (C::kWide) {
              const std::uint32_t a[4] = {x[s][0][0], x[s][1][0], x[s][0][1], x[s][1][1]};
              const std::uint32_t b[2] = {w[i][j][c][e], w[i][j][c][e + 1]};
              mma_m16n8k16<bf16>(d[j], a, b);
            } else {  // 16 rows, and vectors of half j % 2
              const Words &low = w[i][j / 2 * 2][c], &high = w[i][j / 2 * 2 + 1][c];
              const std::uint32_t a[4] = {low[e], high[e], low[e + 1], high[e + 1]};
              mma_m16n8k16<bf16>(d[j], a, x[s][j % 2]);
            }
          }
        }
        if constexpr (C::kWide) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            store_eight({to_pair<bf16>(d[0][2 * h], d[0][2 * h + 1]),
                         to_pair<bf16>(d[1][2 * h], d[1][2 * h + 1]),
                         to_pair<bf16>(d[2][2 * h], d[2][2 * h + 1]),
                         to_pair<bf16>(d[3][2 * h], d[3][2 * h + 1])},
                        p, first + 32 * i + 8 * t, g + 8 * h);
          }
        } else {
#pragma unroll
          for (int r = 0; r < 4; ++r) {  // four neighbouring vectors of an output
            const std::int64_t output = first + 32 * i + 8 * r + g;
            const float* low = &d[r / 2 * 2][r % 2 * 2];
            const float* high = &d[r / 2 * 2 + 1][r % 2 * 2];
            bf16* y = p.y + output * p.y_step + 4 * t * p.y_pitch;
            if (output >= p.outputs) continue;
            if (p.y_pitch == 1 && 4 * t + 4 <= p.batch &&
                reinterpret_cast<std::uintptr_t>(y) % 8 == 0) {
              store_vector(y, Pack<std::uint32_t, 2>{to_pair<bf16>(low[0], low[1]),
                                                     to_pair<bf16>(high[0], high[1])});
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                const float sum = v < 2 ? low[v] : high[v - 2];
                if (4 * t + v < p.batch) y[v * p.y_pitch] = __float2bfloat16_rn(sum);
              }
            }
          }
        }
      }
    } else {
      const bf16* from = p.w + min(first + 8 * g, p.outputs - 8) + 4 * t * p.pitch;
      float d[8][4] = {};
      constexpr int kTogether = 2;  // steps whose loads are in flight together
#pragma unroll
      for (int s = 0; s < C::kSteps; s += kTogether) {
        Words w[kTogether][4];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const int k = 16 * (s + i) + 4 * t + j;
            w[i][j] = Words{};
            if (k < p.depth) w[i][j] = load_vector_streaming<Words>(from + j * p.pitch);
          }
          from += 16 * p.pitch;
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          const auto& x_of = x[s + i];
          const std::uint32_t a[4] = {x_of[0][0], x_of[1][0], x_of[0][1], x_of[1][1]};
#pragma unroll
          for (int o = 0; o < 8; ++o) {  // two terms of an output from two rows
            const unsigned halves = o % 2 == 0 ? 0x5410 : 0x7632;
            const std::uint32_t b[2] = {__byte_perm(w[i][0][o / 2], w[i][1][o / 2], halves),
                                        __byte_perm(w[i][2][o / 2], w[i][3][o / 2], halves)};
            mma_m16n8k16<bf16>(d[o], a, b);
          }
        }
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int at = 2 * h + i;
          store_eight({to_pair<bf16>(d[0][at], d[1][at]), to_pair<bf16>(d[2][at], d[3][at]),
                       to_pair<bf16>(d[4][at], d[5][at]), to_pair<bf16>(d[6][at], d[7][at])},
                      p, first + 16 * t + 8 * i, g + 8 * h);
        }
      }
    }
  }
}

template <class C>
void launch_short_k(const Plan& plan, Stream stream) {
  launch(short_k<C>, {dim3(static_cast<unsigned>(plan.blocks)), dim3(C::kThreads)}, stream,
         plan.gemv);
}

template <class C>
Plan prepare_short_k_in(const Problem& p, const Buffers& at, const Gemv& g) {
  Plan plan{TmaPlan{p, at}};
  plan.start = launch_short_k<C>;
  plan.gemv = g;
  const std::int64_t wanted = cookbook::ceil_div<std::int64_t>(g.outputs, C::kOutputs * C::kWarps);
  const std::int64_t resident = std::int64_t{C::kBlocksPerSm} * device_info().sm_count;
  plan.blocks = static_cast<int>(std::min(wanted, resident));
  return plan;
}

template <int kDepth>
Plan prepare_short_k_of(const Problem& p, const Buffers& at, const Gemv& g) {
  if (!g.w_rows_are_outputs) return prepare_short_k_in<ShortKConfig<false, true, kDepth>>(p, at, g);
  return g.y_step == 1 ? prepare_short_k_in<ShortKConfig<true, true, kDepth>>(p, at, g)
                       : prepare_short_k_in<ShortKConfig<true, false, kDepth>>(p, at, g);
}

/// The plan of a GEMM of which `short_k` supports the shape.
inline Plan prepare_short_k(const Problem& p, const Buffers& at) {
  const Gemv g = gemv_of(p, at);
  return g.depth <= 32   ? prepare_short_k_of<32>(p, at, g)
         : g.depth <= 64 ? prepare_short_k_of<64>(p, at, g)
                         : prepare_short_k_of<128>(p, at, g);
}

}  // namespace cookbook::gemm::any_shape
