// SPDX-License-Identifier: MIT
// The library's GEMM in every layout, and on few rows.
#pragma once

#include "generated/levels.hpp"
#include "library/gemm/any_shape.cuh"

namespace cookbook {

inline Chapter capstone() {
  using namespace gemm;
  Chapter chapter;
  chapter.title = "GEMM: a kernel for every shape";
  chapter.speed_claims_for = "H200";

  const auto ladder_of = [&](auto problem, const char* name, const char* layout) {
    auto ladder =
        ladder_over<decltype(problem)>(name, "C = A B, bf16, fp32 accumulation", {"M", "N", "K"});
    ladder.dtype = "bf16";
    ladder.layout = layout;
    ladder.roof = Roof::wgmma_bf16;
    ladder.gpu_size = {8192, 8192, 8192};
    ladder.levels = rows<AnyShape>();
    return ladder;
  };

  auto nn = ladder_of(Problem{}, "gemm", "NN");
  nn.check_size = {640, 768, 320};
  nn.trace_size = {256, 768, 320};
  nn.test_sizes = {{1, 1, 1},       {8, 8, 1000},    {31, 33, 65},    {64, 64, 64},
                   {127, 136, 72},  {129, 248, 128}, {256, 256, 64},  {255, 257, 63},
                   {264, 520, 200}, {16, 1000, 48},  {1000, 16, 104}, {97, 101, 449},
                   {40, 36, 24},    {512, 768, 8},   {128, 128, 0},   {776, 264, 392},
                   {128, 1024, 640}};

  const auto in_layout = [&](auto problem, const char* name, const char* layout) {
    auto other = ladder_of(problem, name, layout);
    other.check_size = {264, 520, 200};
    other.trace_size = {256, 512, 128};
    other.test_sizes = {{8, 8, 8},       {31, 33, 65},   {136, 264, 72}, {247, 121, 201},
                        {512, 768, 128}, {1, 528, 1304}, {527, 1, 2056}, {2000, 6, 40},
                        {13, 304, 120},  {300, 3, 32},   {12, 8, 8264}};
    return other;
  };

  // One row, as when a language model generates one token, or a few: bound by reading B.
  const auto decode = [&](auto problem, const char* name, const char* layout) {
    auto other = ladder_of(problem, name, layout);
    other.title = "one row";
    other.roof = Roof::hbm_read;
    other.gpu_size = {1, 8192, 8192};
    other.check_size = {1, 520, 1000};
    other.trace_size = {1, 512, 4096};
    other.test_sizes = {{1, 1, 1},     {1, 528, 1304}, {527, 1, 2056}, {1, 35, 1001},
                        {33, 1, 777},  {1, 8, 8},      {1, 3, 20000},  {1, 2100, 9},
                        {1, 1, 33000}, {2000, 1, 24},  {1, 128, 5000}};
    return other;
  };
  const auto batch = [&](auto problem, const char* name, const char* layout) {
    auto other = ladder_of(problem, name, layout);
    other.title = "2 to 64 rows";
    other.roof = Roof::hbm_read;
    other.gpu_size = {16, 8192, 8192};
    other.check_size = {16, 520, 1000};
    other.trace_size = {16, 512, 2048};
    other.test_sizes = {{2, 528, 1304},  {3, 40, 9},      {16, 264, 600}, {17, 1000, 96},
                        {528, 4, 328},   {33, 136, 776},  {200, 33, 264}, {64, 72, 2056},
                        {65, 136, 72},   {5, 3000, 64},   {8, 8, 20000},  {1000, 64, 24},
                        {100, 72, 4104}, {20, 2000, 136}, {2000, 6, 40},  {3, 1000, 32},
                        {16, 136, 128},  {301, 13, 120}};
    return other;
  };

  chapter.ladders = {nn,
                     in_layout(LayoutProblem<bf16, false, true>{}, "gemm_nt", "NT"),
                     in_layout(LayoutProblem<bf16, true, false>{}, "gemm_tn", "TN"),
                     in_layout(LayoutProblem<bf16, true, true>{}, "gemm_tt", "TT"),
                     decode(Problem{}, "decode", "NN"),
                     decode(LayoutProblem<bf16, false, true>{}, "decode_nt", "NT"),
                     batch(Problem{}, "batch", "NN"),
                     batch(LayoutProblem<bf16, false, true>{}, "batch_nt", "NT")};
  return chapter;
}

}  // namespace cookbook
