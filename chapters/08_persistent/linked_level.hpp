// SPDX-License-Identifier: MIT
// Levels of a chapter from the library that the chapter's program links. For sidebars that only
// time a level: compiling its kernels in every layout takes most of a minute.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "common/problems/gemm.hpp"
#include "common/harness/contract/level.hpp"

namespace cookbook {

Chapter chapter_6_entry();
Chapter chapter_8_entry();
Chapter capstone_gemm_entry();  // library/gemm

namespace gemm {

/// The function that launches the level called `name` of `chapter`'s first ladder on this GEMM.
inline std::function<void(Stream)> prepare_level(const Chapter& chapter, const std::string& name,
                                                 const Problem& problem, const Buffers& at) {
  const LevelEntry* level = chapter.ladders.front().find(name);
  if (!level) throw std::out_of_range("no level called " + name);
  const DevicePointers pointers{
      {{"a", const_cast<bf16*>(at.a)}, {"b", const_cast<bf16*>(at.b)}, {"c", at.c}}};
  return level->prepare(ProblemHolder<Problem>(problem), pointers);
}

}  // namespace gemm
}  // namespace cookbook
