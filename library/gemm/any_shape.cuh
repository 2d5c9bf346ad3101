// SPDX-License-Identifier: MIT
/// @file
/// The library's GEMM as a level: any shape, layout and pitch, with the kernel that is chosen for
/// the shape.
#pragma once

#include "library/gemm/candidates.hpp"
#include "library/gemm/plan.cuh"

namespace cookbook::gemm {

namespace any_shape {

/// The plan of a GEMM with one candidate, which must support it. splits: the number of blocks that
/// divide the k-blocks of a tile, where the candidate does that.
Plan prepare(const Candidate& candidate, const Problem& p, const Buffers& at, int splits = 0);

/// The measured times on an H200; null on another GPU.
inline const library::Recording* recording(const std::string& gpu) {
  static const library::Recording h200(
#include "library/gemm/recorded/nvidia_h200.inc"
      , 3);
  return gpu == "NVIDIA H200" ? &h200 : nullptr;
}

/// The kind of a shape, as recordings name it: the layout, and whether TMA cannot access a matrix.
inline std::string kind_of(const Problem& p, const Buffers& at) {
  const bool accessible = rows_are_16_byte_aligned(at.a, p.lda) &&
                          rows_are_16_byte_aligned(at.b, p.ldb) && tma_stores_c(p, at);
  return p.layout() + (accessible ? "" : "-odd");
}

/// The candidates, fastest first.
inline auto ranked(const Problem& p, const Buffers& at, int sms,
                   const library::Recording* recording) {
  struct Query : library::Shape {
    const Problem& problem;
    const Buffers& buffers;
  };
  struct Time {
    double operator()(const Candidate& c, const Query& query) const {
      return predict(c, query.problem, query.buffers, sms).us;
    }
    double operator()(const Candidate& c, const library::Shape& dense) const {
      const auto p =
          Problem::make_layout(dense.extents, {}, dense.kind[0] == 'T', dense.kind[1] == 'T');
      return predict(c, p, Buffers{}, sms).us;
    }
    int sms;
  };
  return library::ranked(kCandidates, Query{{{p.m, p.n, p.k}, kind_of(p, at)}, p, at}, Time{sms},
                         recording, 2);
}

/// The fastest candidate of a GEMM, none of whose extents is zero.
inline const Candidate& choose(const Problem& p, const Buffers& at) {
  const DeviceInfo& device = device_info();
  return *ranked(p, at, device.sm_count, recording(device.name)).front().candidate;
}

}  // namespace any_shape

struct AnyShape : LevelT<bf16> {
  using Plan = any_shape::Plan;
  static constexpr LevelText text{
      .name = "any_shape",
      .changed =
          "the kernel is chosen by shape; operands with odd pitches are copied to padded rows",
      .expect =
          "0.97 of cuBLAS or better at large sizes; 3.5x and more where a pitch is odd; one row or "
          "column: reads at 0.85 of the roof; 2 to 64 take little longer than one",
      .cost = "28 candidates; workspace for odd pitches",
  };

  static Claims claims(const Problem& p) {
    if (p.m == 1) {  // B, in loads of 16 bytes, and each byte once
      return {global_loads("b").coalesced(), global_loads("b").sectors_per_request(16),
              global_loads("b").bytes(2.0 * static_cast<double>(p.n * p.k)),
              against_library("cuBLAS", 0.97)};
    }
    if (p.m <= any_shape::kFewVectors && p.m < p.n) {  // the same by TMA: each box once
      const double tiles = ceil_div(static_cast<int>(p.n), 64);
      return {tma_loads("b").requests(tiles * ceil_div(static_cast<int>(p.k), 64)),
              shared_stores().conflict_free()};
    }
    return {shared_stores().on("stage").conflict_free(), against_library("cuBLAS", 0.97)};
  }
  static Support supports(const Problem&, const DeviceInfo& device) {
    if (device.cc() != 90) return Support::no("needs sm_90a (wgmma)");
    return Support::yes();
  }

  static Plan prepare(const Problem& p, const Buffers& at) {
    using namespace any_shape;
    if (p.m == 0 || p.n == 0 || p.k == 0)
      return any_shape::prepare(candidate("any_pitch_128x256"), p, at);
    const Candidate& chosen = choose(p, at);
    return any_shape::prepare(chosen, p, at, predict(chosen, p, at, device_info().sm_count).splits);
  }
  static void run(const Plan& plan, Stream stream) {
    if (!launched_fallback(plan.tma, stream)) plan.start(plan, stream);
  }
};

}  // namespace cookbook::gemm
