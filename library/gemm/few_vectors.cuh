// SPDX-License-Identifier: MIT
/// @file
/// A GEMM with few rows or few columns of C: its larger operand is W, the smaller one a few
/// vectors. Shared by gemv.cuh (one vector) and skinny.cuh (2 to 64).
#pragma once

#include <algorithm>
#include <cstdint>

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/ceil_div.cuh"

namespace cookbook::gemm::any_shape {

/// y_b = W x_b for `batch` vectors x_b. All steps and pitches are in elements.
struct Gemv {
  const bf16* w = nullptr;
  std::int64_t pitch = 0;  // from one stored row of W to the next
  const bf16* x = nullptr;
  std::int64_t x_step = 0, x_pitch = 0;  // from one term to the next, from one vector to the next
  bf16* y = nullptr;
  std::int64_t y_step = 0, y_pitch = 0;  // from one output to the next, from one vector to the next
  std::int64_t outputs = 0, depth = 0;   // of each vector; depth: terms of each sum
  std::int64_t batch = 0;
  bool w_rows_are_outputs = false;  // or else the columns of W are
};

/// How the terms of each sum are divided among blocks (of skinny.cuh: only `count` is used).
struct Splits {
  int count = 1;
  std::int64_t depth = 0;  // of each but the last, which may have less
};

/// A GEMM, none of whose extents is zero, as W x_b: W is the operand with more rows or columns of
/// C.
inline Gemv gemv_of(const Problem& p, const Buffers& at) {
  Gemv g;
  g.depth = p.k;
  g.y = at.c;
  if (p.n <= p.m) {  // A is W, the columns of B are the vectors
    g.w = at.a, g.pitch = p.lda, g.w_rows_are_outputs = !p.a_transposed;
    g.x = at.b, g.x_step = p.b_transposed ? 1 : p.ldb, g.x_pitch = p.b_transposed ? p.ldb : 1;
    g.y_step = p.ldc, g.y_pitch = 1;
    g.outputs = p.m, g.batch = p.n;
  } else {  // B is W, the rows of A are the vectors
    g.w = at.b, g.pitch = p.ldb, g.w_rows_are_outputs = p.b_transposed;
    g.x = at.a, g.x_step = p.a_transposed ? p.lda : 1, g.x_pitch = p.a_transposed ? 1 : p.lda;
    g.y_step = 1, g.y_pitch = p.ldc;
    g.outputs = p.n, g.batch = p.m;
  }
  return g;
}

/// Whether the rows of X are the vectors. Then x_step is 1; but it is also 1 for a column of B with
/// a leading dimension of 1, whose rows are terms.
inline bool x_rows_are_vectors(const Problem& p) {
  return p.n <= p.m ? p.b_transposed : !p.a_transposed;
}

/// For more vectors a tile of C is as good as a tile of its transpose.
inline constexpr std::int64_t kFewVectors = 32;

/// Vectors per tile of skinny.cuh: the narrowest tile that holds all. Where the rows of X are
/// terms, a tile is as wide as a TMA box of 64 vectors.
inline int skinny_width(const Gemv& g) {
  if (g.x_step != 1) return 64;
  return g.batch <= 8 ? 8 : g.batch <= 16 ? 16 : g.batch <= 32 ? 32 : 64;
}

/// Whether lanes may load eight elements of W at a time.
inline bool loads_vectors_of_w(const Gemv& g) {
  return rows_are_16_byte_aligned(g.w, g.pitch) &&
         (g.w_rows_are_outputs ? g.depth : g.outputs) % 8 == 0;
}

/// Whether lanes may load eight terms of a vector at a time.
inline bool loads_vectors_of_x(const Gemv& g) {
  return g.x_step == 1 && g.depth % 8 == 0 &&
         rows_are_16_byte_aligned(g.x, g.batch == 1 ? 0 : g.x_pitch);
}

/// Whether lanes load eight elements of W at a time, and of x where they do that too.
inline bool loads_vectors(const Gemv& g) {
  return loads_vectors_of_w(g) && (!g.w_rows_are_outputs || loads_vectors_of_x(g));
}

/// At most as many splits as keep all blocks resident at once, each of whole rounds: a block that
/// starts when the others end would add its whole time. resident: blocks. most: splits.
inline Splits splits_of(std::int64_t tiles, std::int64_t depth, int round, std::int64_t resident,
                        int most = 1 << 20) {
  const std::int64_t rounds = cookbook::ceil_div<std::int64_t>(depth, round);
  const std::int64_t fit = std::clamp<std::int64_t>(resident / tiles, 1, most);
  const std::int64_t wanted = std::min(rounds, fit);
  const std::int64_t each = cookbook::ceil_div(rounds, wanted);
  return {static_cast<int>(cookbook::ceil_div(rounds, each)), each * round};
}

}  // namespace cookbook::gemm::any_shape
