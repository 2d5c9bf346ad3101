// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Breadth-first search: work for the vertices of a step, and for no others";

  auto ladder = ladder_over<bfs::Problem>("breadth_first_search",
                                          "distances from vertex 0 of a directed graph in CSR, i32",
                                          {"vertices", "mean", "steps"});
  ladder.dtype = "i32";
  ladder.roof = Roof::hbm_read;
  ladder.gpu_size = {1 << 22, 16, 12};  // timed on a GPU: 67 million edges
  ladder.check_size = {1 << 13, 8, 8};  // compared with the reference
  ladder.trace_size = {1 << 11, 8, 6};  // counted, at this size
  ladder.test_sizes = {{1, 1, 1},   {1, 9, 3},     {7, 5, 2},   {33, 5, 4},   {300, 6, 3},
                       {255, 7, 9}, {1000, 1, 20}, {257, 0, 2}, {2049, 20, 5}};
  ladder.levels = rows<bfs::Naive>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
