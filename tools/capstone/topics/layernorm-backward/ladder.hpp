// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "LayerNorm backward: sums along rows and along columns, in one reading";

  auto ladder = ladder_over<layernorm_backward::Problem>(
      "layernorm_backward", "dx, dweight and dbias of LayerNorm, fp32", {"rows", "cols"});
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {32768, 4096};  // timed on a GPU: 1 GiB in, 512 MiB out
  ladder.check_size = {256, 512};   // compared with the reference
  ladder.trace_size = {64, 256};    // counted, at this size
  ladder.test_sizes = {{1, 1},   {1, 33},   {33, 1},   {31, 65},  {64, 64},
                       {3, 700}, {129, 96}, {257, 17}, {100, 130}};
  ladder.levels = rows<layernorm_backward::Naive>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
