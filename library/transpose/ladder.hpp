// SPDX-License-Identifier: MIT
// The transpose as a library: what is tested and measured of it.
#pragma once

#include "common/harness/contract/level.hpp"
#include "generated/levels.hpp"
#include "library/transpose/transpose.cuh"

namespace cookbook {

/// Every candidate alone, and the one that is chosen.
template <std::size_t... kIndex>
std::vector<LevelEntry> transposes(std::index_sequence<kIndex...>) {
  return rows<transpose::Only<kIndex>..., transpose::Transpose>();
}

inline Ladder transpose_ladder(std::string name, std::string title, Size gpu, Size check,
                               Size trace, std::vector<Size> tests) {
  auto ladder =
      ladder_over<transpose::Problem>(std::move(name), std::move(title), {"rows", "cols"});
  ladder.gpu_size = std::move(gpu);
  ladder.check_size = std::move(check);
  ladder.trace_size = std::move(trace);
  ladder.test_sizes = std::move(tests);
  ladder.levels = transposes(std::make_index_sequence<std::size(transpose::kCandidates)>());
  return ladder;
}

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "library/transpose: the kernel that suits the matrix";
  chapter.speed_claims_for = "H200";
  chapter.ladders = {
      transpose_ladder(
          "transpose", "out[c][r] = in[r][c], fp32", {8192, 8192}, {1024, 768}, {256, 192},
          {{1, 1},    {1, 32},   {31, 1},   {31, 33},   {32, 32},   {33, 31},    {33, 65}, {4, 4},
           {60, 68},  {63, 65},  {64, 64},  {65, 63},   {128, 64},  {127, 129},  {1, 509}, {509, 1},
           {97, 101}, {3, 1021}, {1021, 3}, {256, 192}, {132, 260}, {1378, 1090}}),
      transpose_ladder("odd_shapes", "rows that start anywhere in a sector", {8191, 8193},
                       {513, 383}, {255, 193},
                       {{1, 1}, {33, 65}, {63, 31}, {64, 64}, {97, 101}, {131, 259}, {259, 517}}),
      transpose_ladder("narrow", "few rows or few columns", {3, 1 << 25}, {3, 8192}, {3, 4096},
                       {{1, 70},
                        {2, 4100},
                        {3, 1027},
                        {17, 300},
                        {64, 129},
                        {65, 70},
                        {4099, 2},
                        {1027, 3},
                        {300, 17},
                        {129, 32},
                        {129, 33},
                        {32, 32},
                        {16, 4129},
                        {7, 9500},
                        {4129, 16},
                        {9500, 7}})};
  return chapter;
}

}  // namespace cookbook
