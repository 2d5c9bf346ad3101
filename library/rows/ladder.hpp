// SPDX-License-Identifier: MIT
// Softmax, RMSNorm and quantisation as a library: what is tested and measured of them.
#pragma once

#include "chapters/09_online_softmax/ladders.hpp"
#include "generated/levels.hpp"
#include "library/rows/quantise.cuh"
#include "library/rows/rows.cuh"

namespace cookbook {

/// Every candidate alone that supports some of the rows, and the one that is chosen.
template <class Client>
Ladder library_ladder(Ladder ladder) {
  for (const softmax::RowCandidate& candidate : softmax::kRowCandidates) {
    softmax::RowCase c;
    c.element_bytes = sizeof(typename Client::T);
    c.exponentials = Client::kExponentials;
    const auto supports = [&](std::int64_t cols) {
      for (const bool vectors : {true, false}) {
        c.vectors = vectors;
        c.peeled = c.packed = !vectors;
        if (softmax::blocks_per_row(candidate, c, cols) != 0) return true;
      }
      return false;
    };
    for (const Size& size : ladder.test_sizes) {
      if (!supports(size[1])) continue;
      ladder.levels.push_back(softmax::only<Client>(candidate));
      break;
    }
  }
  ladder.levels.push_back(make_level<softmax::Rows<Client>>());
  return ladder;
}

/// Persistent kernels whose blocks or clusters compute several rows each.
template <class Client>
Ladder persistent_ladder(Ladder ladder) {
  using namespace softmax;
  for (const RowCandidate& candidate : kRowCandidates) {
    const bool in_order = candidate.kernel == RowKernel::in_order;
    if (!in_order && candidate.kernel != RowKernel::persistent) continue;
    RowCase c;
    c.element_bytes = sizeof(typename Client::T);
    c.exponentials = Client::kExponentials;
    const bool compiled = blocks_per_row(candidate, c, in_order ? 4096 : 102400) != 0;
    if (!compiled) continue;
    ladder.levels.push_back(only<Client>(candidate, in_order ? 3 : 8));
  }
  return ladder;
}

inline Chapter capstone() {
  using namespace softmax;
  Chapter chapter;
  chapter.title = "library/rows: the kernel that suits the rows";
  chapter.speed_claims_for = "H200";
  const auto rows_of = [&]<class Client>(const char* name, const char* title, Size gpu) {
    using P = typename Client::Level::Problem;
    auto ladder = row_ladder<P>(name, title, gpu, {64, 20480});
    ladder.test_sizes.insert(ladder.test_sizes.end(),
                             {{300, 7}, {2, 70000}, {1, 140000}, {1, 262144}, {1, 100001}});
    chapter.ladders.push_back(library_ladder<Client>(ladder));
    const std::string base = name;
    auto persistent = row_ladder<P>("persistent_" + base, "several rows per persistent cluster",
                                    {512, 262144}, {20, 20480});
    persistent.trace_size = {20, 20480};
    persistent.test_sizes = {{1, 8},     {20, 16388}, {33, 4096},  {17, 20480}, {7, 131080},
                             {5, 50000}, {5, 102400}, {130, 1000}, {75, 2048},  {41, 3000},
                             {40, 4096}, {19, 8192},  {17, 16384}};
    chapter.ladders.push_back(persistent_ladder<Client>(persistent));
  };
  rows_of.operator()<Softmax<float>>("softmax", "softmax of every row, fp32", {4096, 32768});
  rows_of.operator()<Softmax<bf16>>("softmax_bf16", "softmax of every row, bf16", {8192, 32768});
  rows_of.operator()<RmsNorm<float>>("rmsnorm", "RMSNorm of every row, fp32", {16384, 8192});
  rows_of.operator()<RmsNorm<bf16>>("rmsnorm_bf16", "RMSNorm of every row, bf16", {32768, 8192});

  auto special = special_rows_ladder();
  chapter.ladders.push_back(library_ladder<Softmax<float>>(special));

  auto short_rows = sidebar_ladder("short_rows", "rows of 32 elements", {1 << 20, 32});
  short_rows.trace_size = short_rows.check_size = {1024, 32};
  short_rows.test_sizes = {{1, 4}, {350, 12}, {257, 64}, {600, 32}, {70, 68}, {9, 512}};
  chapter.ladders.push_back(library_ladder<Softmax<float>>(short_rows));
  auto packed = sidebar_ladder("packed_rows", "rows of 17 elements", {1 << 21, 17});
  packed.trace_size = packed.check_size = {1024, 17};
  packed.test_sizes = {{1, 1}, {600, 3}, {300, 17}, {130, 33}, {70, 63}, {33, 65}, {9, 511}};
  chapter.ladders.push_back(library_ladder<Softmax<float>>(packed));

  auto quantised = ladder_over<quantise::Problem>(
      "quantise", "bf16 as e4m3 with a scale per 128 columns", {"rows", "cols"});
  quantised.dtype = "bf16";
  quantised.gpu_size = {16384, 16384};
  quantised.check_size = quantised.trace_size = {96, 1024};
  quantised.test_sizes = {{1, 1},    {33, 127},  {31, 128}, {64, 256},
                          {40, 264}, {65, 1000}, {5, 3001}};
  quantised.levels = rows<quantise::TwoKernels, quantise::Fused>();
  chapter.ladders.push_back(quantised);
  return chapter;
}

}  // namespace cookbook
