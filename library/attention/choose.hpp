// SPDX-License-Identifier: MIT
// Which kernel computes an attention: arithmetic on clocks and bytes that can be checked by hand.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "chapters/10_flash_attention/problem.hpp"
#include "library/choose.hpp"

namespace cookbook::attention {

enum class Kernel { prefill, decode, tensor_cores, tiled };

struct Candidate {
  Kernel kernel;
  const char* name;
  int queries;           // that share what a block loads; decode: 16 or 32 rows
  double fma_per_clock;  // of one SM, in the main loop
};
inline constexpr std::array<Candidate, 4> kCandidates{
    {{Kernel::prefill, "prefill", 128, 1640},           // wgmma at 0.8 of its peak
     {Kernel::decode, "decode", 0, 512},                // mma.sync between loads
     {Kernel::tensor_cores, "tensor_cores", 128, 640},  // mma.sync
     {Kernel::tiled, "tiled", 64, 70}}};                // FMA units

/// What the choice depends on: batch, heads_q, heads_kv, seq_q, seq_k, head_dim, and the mask.
inline library::Shape shape_of(const Problem& p) {
  const Shape& s = p.shape;
  return {{s.batch, s.heads_q, s.heads_kv, s.seq_q, s.seq_k, p.head_dim},
          s.causal ? "causal" : "full"};
}

/// Microseconds on a Hopper GPU with `sms` SMs. What memory needs: q, k, v and o once. What the SMs
/// need: two GEMMs of d FMAs per query and visible key, on at least one SM per block. Decode
/// divides the keys among all SMs, computes 16 or 32 rows whatever their number, and reads K and V
/// again, from L2 at twice the rate, for each tile of rows.
inline double predict(const Candidate& candidate, const library::Shape& shape, int sms) {
  const library::Hopper gpu;
  const auto of = [&](size_t i) { return static_cast<double>(shape.extents[i]); };
  const double queries = of(3), keys = of(4), d = of(5), heads = of(0) * of(1);
  const double kv_bytes = 4 * d * of(0) * of(2) * keys;
  double bytes = kv_bytes + 4 * d * heads * queries, fmas = 0;  // FMAs of the busiest SM
  if (candidate.kernel == Kernel::decode) {
    const double rows = queries * of(1) / of(2), tile = rows > 16 ? 32 : 16;
    const double passes = std::ceil(rows / tile);
    bytes += std::max(0.0, passes - 1) * kv_bytes / 2;
    fmas = passes * tile * of(0) * of(2) * keys * 2 * d / sms;
  } else {
    double visible = keys;  // per query, on average; the causal mask is aligned to the bottom right
    if (shape.kind == "causal") {
      const double most = std::min(queries, keys);
      visible = queries > 0 ? most * (keys - (most - 1) / 2) / queries : 0;
    }
    const double tiles = std::ceil(queries / candidate.queries) * heads;
    fmas = std::max(1.0, tiles / sms) * candidate.queries * visible * 2 * d;
  }
  return gpu.launch_us +
         std::max(bytes / gpu.hbm_bytes_per_us, fmas / candidate.fma_per_clock / gpu.clock_mhz);
}

/// The candidates, the fastest first. Not all support every problem. There is no recording: the
/// candidates are so far apart that the arithmetic decides.
inline auto ranked(const Problem& p, int sms) {
  const auto on_sms = [sms](const Candidate& candidate, const library::Shape& shape) {
    return predict(candidate, shape, sms);
  };
  return library::ranked(kCandidates, shape_of(p), on_sms, nullptr, 1);
}

}  // namespace cookbook::attention
