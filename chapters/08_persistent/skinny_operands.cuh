// SPDX-License-Identifier: MIT
/// @file
/// The operands of skinny.cuh: how a warp loads W and the vectors, and where its sums go.
///
/// The vectors are the rows of the MMA's A, the outputs are the columns of B. An MMA may sum its 16
/// terms in any order, if A and B agree. So lane (g, t) = (lane / 4, lane % 4) takes the
/// neighbouring terms 8t .. 8t + 7 of a k-block of 32, and two MMAs use four of them each:
///
///     term of the MMA       2t, 2t + 1       2t + 8, 2t + 9
///     k of the first MMA    8t, 8t + 1       8t + 2, 8t + 3
///     k of the second       8t + 4, 8t + 5   8t + 6, 8t + 7
#pragma once

#include <cstdint>

#include "chapters/08_persistent/gemv_problem.cuh"
#include "common/device/mma.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"

namespace cookbook::gemm::any_shape {

/// kRows: the stored rows of W are outputs, else its columns. kVectorX: eight terms of a vector are
/// one load.
template <bool kRows, bool kVectorX>
struct SkinnyConfig {
  static constexpr bool kRowsAreOutputs = kRows, kLoadsVectorsOfX = kVectorX;
  static constexpr int kBatch = 16;  // rows of A
  static constexpr int kThreads = 128, kWarps = kThreads / kWarpSize;
  static constexpr int kBlocksPerSm = 4;  // resident
  // A warp's round: 4 KB of W, eight loads per lane, 128 contiguous bytes per stored row.
  static constexpr int kOutputs = kRows ? 32 : 64, kDepth = kRows ? 64 : 32;
  static constexpr int kColumnTiles = kOutputs / 8;  // of MMAs
  static constexpr int kBlocks = kDepth / 32;        // k-blocks of a round

  /// The sums of each warp. The padding and the order of 16-byte units give the lanes of a store
  /// different banks.
  struct Sums {
    float of_warps[kWarps][kBatch][kOutputs + 8];
  };
  static __host__ __device__ constexpr int position(int output) {  // in a row of Sums
    return output ^ output / 32 * 4;
  }
};

using Words = Pack<std::uint32_t, 4>;  // eight elements

/// Terms k .. k + 7 of the vector at `x`; if kMasked, zeros from `end` on.
template <class C, bool kMasked>
__device__ __forceinline__ Words load_terms(const bf16* x, std::int64_t step, std::int64_t k,
                                            std::int64_t end) {
  Words terms{};
  if constexpr (C::kLoadsVectorsOfX) {
    if (!kMasked || k < end) terms = load_vector<Words>(x + k);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (!kMasked || k + i < end) {
        const std::uint32_t bits = load_vector<std::uint16_t>(x + (k + i) * step);
        terms[i / 2] |= bits << 16 * (i % 2);
      }
    }
  }
  return terms;
}

/// W as a warp reads it: loads eight vectors of W per lane and picks operands of MMAs from them.
template <class C>
struct WeightsOfWarp {
  const bf16* rows[C::kRowsAreOutputs ? C::kColumnTiles : 1];
  Words words[8];

  /// first: of the warp's outputs. Outputs past the last are read as the last, and not stored.
  __device__ __forceinline__ WeightsOfWarp(const Gemv& p, std::int64_t first) {
    const int g = lane_idx() / 4;
    if constexpr (C::kRowsAreOutputs) {
#pragma unroll
      for (int j = 0; j < C::kColumnTiles; ++j) {
        rows[j] = p.w + min(first + 8 * j + g, p.outputs - 1) * p.pitch;
      }
    } else {
      rows[0] = p.w + min(first + 8 * g, p.outputs - 8);
    }
  }

  /// k: the first of this lane's terms. If kMasked, terms from `end` on are zeros.
  template <bool kMasked>
  __device__ __forceinline__ void load(std::int64_t pitch, std::int64_t k, std::int64_t end) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const bf16* at;
      bool exists;
      if constexpr (C::kRowsAreOutputs) {
        const std::int64_t here = k + i / C::kColumnTiles * 32;
        at = rows[i % C::kColumnTiles] + here, exists = here < end;
      } else {
        at = rows[0] + (k + i) * pitch, exists = k + i < end;
      }
      words[i] = Words{};
      if (!kMasked || exists) words[i] = load_vector_streaming<Words>(at);
    }
  }

  /// B of MMA `half` of a k-block. Its column n is output 8 j + n (rows) or 8 n + j (columns).
  __device__ __forceinline__ void operand(uint32_t (&b)[2], int block, int half, int j) const {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      if constexpr (C::kRowsAreOutputs) {
        b[pair] = words[block * C::kColumnTiles + j][2 * half + pair];
      } else {  // element j of two stored rows of W
        const int i = 4 * half + 2 * pair;
        b[pair] = __byte_perm(words[i][j / 2], words[i + 1][j / 2], j % 2 == 0 ? 0x5410 : 0x7632);
      }
    }
  }
};

/// Stores a warp's accumulators by vector and output.
template <class C>
__device__ __forceinline__ void store_accumulators(const float (&acc)[C::kColumnTiles][4],
                                                   float (&sums)[C::kBatch][C::kOutputs + 8]) {
  const int g = lane_idx() / 4, t = lane_idx() % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float* row = sums[8 * half + g];
    if constexpr (C::kRowsAreOutputs) {
#pragma unroll
      for (int j = 0; j < C::kColumnTiles; ++j) {
        store_vector(row + 8 * j + 2 * t, floatx2{acc[j][2 * half], acc[j][2 * half + 1]});
      }
    } else {
#pragma unroll
      for (int j = 0; j < C::kColumnTiles; j += 4) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          store_vector(row + C::position(16 * t + 8 * (i % 2) + j),
                       floatx4{acc[j][i], acc[j + 1][i], acc[j + 2][i], acc[j + 3][i]});
        }
      }
    }
  }
}

}  // namespace cookbook::gemm::any_shape
