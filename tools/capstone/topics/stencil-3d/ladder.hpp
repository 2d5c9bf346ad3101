// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Stencil in 3-D: every point is loaded once, though seven results need it";

  auto ladder = ladder_over<stencil::Problem>("stencil_3d", "one step of the heat equation, fp32",
                                              {"nz", "ny", "nx"});
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {512, 512, 512};  // timed on a GPU: 512 MiB in, 512 MiB out
  ladder.check_size = {24, 32, 64};   // compared with the reference
  ladder.trace_size = {8, 16, 64};    // counted, at this size
  ladder.test_sizes = {{1, 1, 1},  {1, 1, 33}, {1, 33, 1},  {33, 1, 1}, {2, 3, 5},
                       {5, 3, 65}, {8, 8, 32}, {9, 17, 31}, {3, 7, 130}};
  ladder.levels = rows<stencil::Naive>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
