// SPDX-License-Identifier: MIT
// Two ladders of the same levels: random keys, and keys that are all equal.
#pragma once

#include "common/harness/contract/claiming.hpp"
#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Histogram: atomics without conflicts, at the speed of reading";
  chapter.speed_claims_for = "H200";

  auto uniform = ladder_over<histogram::Problem>("uniform", "counts of random keys below 256, u32",
                                                 {"n", "bins", "equal"});
  uniform.dtype = "u32";
  uniform.roof = Roof::hbm_read;
  uniform.gpu_size = {1 << 28, 256, 0};  // 1 GiB of keys
  uniform.check_size = {1 << 18, 256, 0};
  uniform.trace_size = {1 << 15, 256, 0};  // 4 tiles of the last level
  uniform.test_sizes = {{1, 1, 0},       {3, 2, 50},      {31, 7, 0},      {33, 256, 0},
                        {1000, 255, 50}, {4097, 64, 100}, {8195, 33, 0},   {8192, 256, 0},
                        {24581, 200, 0}, {40003, 5, 0},   {140000, 6, 100}};
  uniform.levels = rows<histogram::GlobalAtomics, histogram::Privatised, histogram::LaneCopies,
                        histogram::WideLoads>();

  auto skewed = uniform;
  skewed.name = "skewed";
  skewed.title = "counts of keys that are all equal, u32";
  skewed.gpu_size = {1 << 28, 256, 100};
  skewed.check_size = {1 << 18, 256, 100};
  skewed.trace_size = {1 << 15, 256, 100};
  skewed.test_sizes = {{33, 256, 100}, {8195, 33, 90}};
  skewed.levels = {make_level<histogram::GlobalAtomics>(), make_level<histogram::Privatised>(),
                   claiming(make_level<histogram::LaneCopies>(),
                            {at_least_previous(0.91, "equal keys need no copies")}),
                   make_level<histogram::WideLoads>()};

  chapter.ladders = {uniform, skewed};
  chapter.exercises = rows<histogram::Packed>();
  return chapter;
}

}  // namespace cookbook
