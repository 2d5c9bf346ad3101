// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "FFT of 1,024 points: ten passes, and one reading of memory";

  auto ladder = ladder_over<fft::Problem>(
      "fft_1024", "the Fourier transform of rows of 1,024 complex numbers, fp32", {"rows"});
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {65536};  // timed on a GPU: 512 MiB in, 512 MiB out
  ladder.check_size = {32};   // compared with the reference
  ladder.trace_size = {4};    // counted, at this size
  ladder.test_sizes = {{1}, {2}, {3}, {7}, {16}};
  ladder.levels = rows<fft::Naive>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
