// SPDX-License-Identifier: MIT
// Which kernel computes an attention: arithmetic on clocks and bytes that can be checked by hand.
#pragma once

#include <algorithm>
#include <array>

#include "chapters/10_flash_attention/problem.hpp"

namespace cookbook::attention {

enum class Kernel { prefill, decode, tensor_cores, tiled };

struct Candidate {
  Kernel kernel;
  double clocks;  // of one SM, estimated
};

/// All kernels, the fastest first, for a Hopper GPU with `sms` SMs. Not all support every problem.
inline std::array<Candidate, 4> ranked(const Problem& p, int sms) {
  const Shape& s = p.shape;
  const double d = p.head_dim, sm = sms;
  const double kv_bytes = 4 * d * double(p.k_rows());
  const double bytes = kv_bytes + 4 * d * double(p.q_rows());
  // An SM reads 19 bytes per clock from device memory, if all do, and twice as many from L2. Per
  // clock it does 2,048 FMAs in wgmma, and kernels of wgmma reach 0.8 of that; 640 in a kernel of
  // mma.sync; 70 in a kernel of FMA units. Two GEMMs are 2 d FMAs per query and key.
  const auto of = [&](int queries, double fmas) {
    const double tiles = double(ceil_div(s.seq_q, queries)) * s.batch * s.heads_q;
    const double keys = s.seq_q > 0 ? p.visible_pairs() / s.seq_q : 0;  // per query tile
    return std::max(bytes / 19 / sm, std::max(1.0, tiles / sm) * keys * queries * 2 * d / fmas);
  };
  // Decode reads the keys of a KV head once per 16 or 32 query rows, from L2 after the first time.
  // Half of its tensor cores' speed is lost to masks and loads.
  const double rows = double(s.seq_q) * s.heads_q / s.heads_kv, tile = rows > 16 ? 32 : 16;
  const double passes = std::ceil(rows / tile);
  const double decode = std::max((bytes / 19 + std::max(0.0, passes - 1) * kv_bytes / 38) / sm,
                                 passes * tile * double(p.k_rows()) * 2 * d / 512 / sm);
  std::array<Candidate, 4> found{{{Kernel::prefill, of(128, 2048 * 0.8)},
                                  {Kernel::decode, decode},
                                  {Kernel::tensor_cores, of(128, 640)},
                                  {Kernel::tiled, of(64, 70)}}};
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.clocks < b.clocks; });
  return found;
}

}  // namespace cookbook::attention
