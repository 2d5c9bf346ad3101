// SPDX-License-Identifier: MIT
// Chapter 5: its ladders and their levels.
#pragma once

#include "common/harness/contract/claiming.hpp"
#include "common/problems/gemm.hpp"
#include "generated/chapter_5_levels.hpp"

namespace cookbook {

/// Without levels, for either element type.
template <class T>
Ladder chapter_5_ladder(const char* name, const char* title) {
  auto l = ladder_over<gemm::ProblemT<T>>(name, title, {"M", "N", "K"});
  l.dtype = gemm::ElementOf<T>::name;
  l.layout = "NN";
  l.roof = Roof::mma_bf16;
  l.gpu_size = {8192, 8192, 8192};
  l.check_size = {384, 512, 512};
  l.trace_size = {128, 256, 320};  // one wide tile, five steps of 64: every ring of stages wraps
  l.test_sizes = {{1, 1, 1},       {1, 1, 0},      {16, 8, 16},    {31, 33, 32},   {32, 31, 33},
                  {127, 129, 65},  {128, 128, 63}, {129, 127, 64}, {128, 256, 64}, {129, 257, 193},
                  {127, 255, 320}, {64, 512, 40},  {500, 8, 88},   {8, 500, 104},  {257, 263, 131}};
  return l;
}

inline Chapter chapter_5() {
  Chapter c;
  auto tf32 = ladder_over<gemm::Tf32Problem>("tf32", "fp32 in and out, multiplied as tf32",
                                             {"M", "N", "K"});
  tf32.dtype = "f32";
  tf32.layout = "NN";
  tf32.roof = Roof::mma_tf32;
  tf32.gpu_size = {4096, 4096, 4096};
  tf32.check_size = {256, 256, 256};
  tf32.trace_size = {128, 128, 128};
  tf32.test_sizes = {{1, 1, 1},       {1, 1, 0},      {31, 33, 32},   {127, 129, 33},
                     {129, 127, 100}, {128, 128, 64}, {257, 131, 97}, {4, 300, 52}};
  tf32.levels = rows<gemm::Tf32>();

  auto b16 = chapter_5_ladder<bf16>("gemm", "C = A B, bf16 in and out, fp32 in between");
  b16.levels = rows<gemm::SimtCores<bf16>, gemm::WmmaGlobal<bf16>, gemm::WmmaShared<bf16>,
                    gemm::MmaLdmatrix<bf16>, gemm::Swizzled<bf16>, gemm::Multistage<bf16>,
                    gemm::WideTiles<bf16>, gemm::FragmentsAhead<bf16>,
                    gemm::CoalescedEpilogue<bf16>, gemm::HoistedAddresses<bf16>>();
  // fp16 is as fast as bf16: the last level shows it.
  auto f16 = chapter_5_ladder<half>("hgemm", "the same in fp16");
  f16.levels = {claiming(make_level<gemm::HoistedAddresses<half>>(), {})};

  c.ladders = {b16, f16, tf32};
  c.exercises = {make_level<gemm::ExerciseFragments>(), make_level<gemm::ExercisePipeline>(),
                 make_level<gemm::ExerciseEpilogue>()};
  return c;
}

}  // namespace cookbook
