// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Inclusive scan: every sum of a prefix, in one pass over memory";
  chapter.speed_claims_for = "H200";

  auto ladder = ladder_over<scan::Problem>("scan", "out[i] = in[0] + ... + in[i], fp32", {"n"});
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {1 << 28};  // 1 GiB in, 1 GiB out
  ladder.check_size = {1 << 18};
  ladder.trace_size = {1 << 18};  // 32 tiles of the last level: eight blocks use a stage twice
  ladder.test_sizes = {{1},    {2},    {31},   {32},   {33},   {255},  {256},   {257},   {1023},
                       {1024}, {1025}, {2049}, {4095}, {4096}, {4097}, {12289}, {40003}, {270349}};
  ladder.levels = rows<scan::HillisSteele, scan::WorkEfficient, scan::Shuffle, scan::LookBack,
                       scan::Vectorised, scan::Rounds>();

  chapter.ladders = {ladder};
  chapter.exercises = rows<scan::Ticket>();
  return chapter;
}

}  // namespace cookbook
