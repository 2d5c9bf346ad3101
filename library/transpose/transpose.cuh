// SPDX-License-Identifier: MIT
// out = transpose of in, fp32: any shape and any pitch, by the kernel that suits it.
#pragma once

#include <stdexcept>

#include "chapters/03_bank_conflicts/level_2_padded.cuh"
#include "chapters/03_bank_conflicts/level_5_vectorised.cuh"
#include "chapters/03_bank_conflicts/level_6_aligned.cuh"
#include "library/transpose/choose.hpp"
#include "library/transpose/narrow.cuh"

namespace cookbook::transpose {

/// The launch of a candidate.
using Start = void (*)(const Level::Plan& plan, Stream stream);

/// Those of kCandidates, in their order.
inline constexpr Start kStarts[] = {run_narrow<1, true>,
                                    run_narrow<4, true>,
                                    run_narrow<1, false>,
                                    run_narrow<4, false>,
                                    Padded::run,
                                    InFlight::run,
                                    Vectorised::run,
                                    Aligned::run_with<Aligned::OnLines>,
                                    Aligned::run_with<Aligned::Config>};
static_assert(std::size(kStarts) == std::size(kCandidates));

/// What the choice depends on.
inline library::Shape shape_of(const Level::Plan& plan) {
  const Shape& s = plan.problem.shape;
  const bool on_sectors =
      reinterpret_cast<std::uintptr_t>(plan.buffers.out) % 32 == 0 && s.out_pitch % 8 == 0;
  return {{s.rows, s.cols},
          kind_of(Aligned::on_lines(plan), on_sectors, Vectorised::aligned(plan))};
}

inline Start start_of(const Candidate& candidate) { return kStarts[&candidate - kCandidates]; }

struct Transpose : Level {
  struct Plan : Level::Plan {
    Start start = nullptr;
  };
  static constexpr LevelText text{
      .name = "transpose",
      .changed = "the candidate with the least predicted time, corrected by measured ones",
      .expect = "as fast as the fastest candidate",
      .cost = "nothing that a kernel sees",
  };

  static Claims claims(const Problem& p) {
    const Shape& s = p.shape;
    const library::Shape shape{{s.rows, s.cols}, kind_of(s.rows, s.cols, s.in_pitch, s.out_pitch)};
    Claims claims = claims_of(choose(shape, recording()), p);
    if (std::min(s.rows, s.cols) > 128) claims.push_back(fraction_of_roof(0.85));
    return claims;
  }

  /// What a candidate claims at any shape. Chapter 3 claims more, at shapes that suit its kernels.
  static Claims claims_of(const Candidate& candidate, const Problem& p) {
    if (std::min(candidate.max_rows, candidate.max_cols) == kNarrow) {
      return {global_loads("in").coalesced(), global_stores("out").coalesced(),
              shared_stores().conflict_free(), shared_loads().conflict_free()};
    }
    const double bytes = 4.0 * static_cast<double>(p.shape.rows * p.shape.cols);
    return {global_loads("in").bytes(bytes), global_stores("out").bytes(bytes)};
  }

  /// What was measured of this GPU, or null. The SIMT backend stands for it.
  static const library::Recording* recording() {
    const bool measured = device_info().is_simt || device_info().name == "NVIDIA H200";
    return measured ? &h200_recording() : nullptr;
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    Plan plan{{problem, buffers}};
    plan.start = start_of(choose(shape_of(plan), recording()));
    return plan;
  }

  static void run(const Plan& plan, Stream stream) { plan.start(plan, stream); }
};

/// A candidate as a level, so that it is tested and measured alone.
template <int kIndex>
struct Only : Transpose {
  static constexpr LevelText text{
      .name = kCandidates[kIndex].name,
      .changed = "one candidate",
      .expect = "fast at some shapes",
      .cost = "slow at others",
  };
  static Support supports(const Problem& p, const DeviceInfo&) {
    return transpose::supports(kCandidates[kIndex], p.shape.rows, p.shape.cols)
               ? Support::yes()
               : Support::no("more than 16 rows or columns");
  }
  static Claims claims(const Problem& p) { return claims_of(kCandidates[kIndex], p); }
  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    return {{problem, buffers}, kStarts[kIndex]};
  }
};

}  // namespace cookbook::transpose
