// SPDX-License-Identifier: MIT
// Sidebar: level 8's kernel, with exponentials of two instructions instead of three.
#pragma once

#include "chapters/09_online_softmax/level_8_in_shared.cuh"

namespace cookbook::softmax {

/// e^(x - m) for many x and one m, as 2^(x log2 e - M) with M = m log2 e: one FMA and one ex2.
///
/// M is rounded, so every result is too large by one factor, 2^R, where R is the rounding error. An
/// FMA gives R exactly. A caller that multiplies the results or their sum by a constant anyway
/// includes 2^-R in it.
struct ShiftedExp {
  float shift;  // M
  float cure;   // 2^-R
  __device__ explicit ShiftedExp(float max)
      : shift(max * kLog2E), cure(ex2_approx_ftz(-fmaf(max, kLog2E, -shift))) {}
  __device__ float of(float x) const { return ex2_approx_ftz(fmaf(x, kLog2E, -shift)); }

  /// Whether R is small: below 0.5. If not, and for an empty part's maximum, subtract first.
  __device__ static bool good_for(float max) { return fabsf(max) < (1 << 22); }
};

struct OneFmaOp : SoftmaxOp<FastExp> {
  template <int kVectors, int kPack>
  __device__ Partial reduce(float (&x)[kVectors][kPack]) const {
    Partial part;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) part.max = fmaxf(part.max, x[v][j]);
    }
    if (!ShiftedExp::good_for(part.max)) return SoftmaxOp<FastExp>::reduce(x);
    const ShiftedExp exp(part.max);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) part.sum += exp.of(x[v][j]);
    }
    part.sum *= exp.cure;
    return part;
  }
  __device__ float scale(const Partial& row) const {
    return ShiftedExp::good_for(row.max) ? ShiftedExp(row.max).cure / row.sum : 1 / row.sum;
  }
  template <bool kPeeled = false, int kPack>
  __device__ void finish_anew(float (&x)[kPack], const Partial& row, float scale, int col) const {
    if (!ShiftedExp::good_for(row.max)) {
      return SoftmaxOp<FastExp>::finish_anew<kPeeled>(x, row, scale, col);
    }
    const ShiftedExp exp(row.max);
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[j] = exp.of(x[j]) * scale;
  }
};

template <class Element>
struct OneFmaSoftmax : Softmax<Element> {
  using Op = OneFmaOp;
  static Op op(const typename Softmax<Element>::Level::Plan&) { return {}; }
};

template <class T>
struct OneFma : RowLevel<OneFmaSoftmax<T>, OneFma<T>> {
  using Client = OneFmaSoftmax<T>;
  static constexpr LevelText text{
      .name = "one_fma",
      .changed = "e^(x - m) is one FMA and one ex2: the FMA multiplies by log2 e and subtracts",
      .expect =
          "two instructions fewer per element: matters where blocks wait for each other and the "
          "elements are many, in long bf16 rows; nothing elsewhere",
      .cost = "a correction for the rounded m log2 e; a branch for huge m",
  };

  static Claims claims(const RowProblem<Client>& p) {
    return one_bulk_read<Client>(
        p, {at_least_previous(0.95, "both exponentials were hidden under the copy already")});
  }

  static void choose(RowLaunch<Client>& plan) {
    plan.start = start_any_length<Client>;
    if (InShared<Client>::reaches(plan)) InShared<Client>::pick(plan);
  }
};

}  // namespace cookbook::softmax
