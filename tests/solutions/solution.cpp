// SPDX-License-Identifier: MIT
// A chapter's program with solutions in the place of its exercises, and without its levels.
//   COOKBOOK_LADDER   the chapter's ladder.hpp; exercises/ is looked for in another folder first
//   COOKBOOK_CHAPTER  the function in it: chapter_3
// After the exercises come wrong solutions and variants (tools/exercises/variants.py).
#include "common/harness/contract/exercises_only.hpp"
// The above comes first.
#include COOKBOOK_LADDER
#include "common/harness/run/runner.hpp"
#include "variants.hpp"
#if COOKBOOK_WITHOUT_SPACES
#include "chapters/11_autotuning/tuner/space.hpp"

// The configurations that chapter 11 searches over are levels too, and not compiled here.
namespace cookbook::autotuning {
static const tune::Space& none() {
  static const tune::Space space;
  return space;
}
const tune::Space& rmsnorm_space() { return none(); }
const tune::Space& rope_space() { return none(); }
const tune::Space& gemm_space() { return none(); }
const tune::Space& attention_space() { return none(); }
}  // namespace cookbook::autotuning
#endif

int main(int argc, char** argv) {
  cookbook::Chapter chapter = cookbook::headed(cookbook::COOKBOOK_CHAPTER());
  cookbook::add_variants(chapter);
  return cookbook::run_chapter(chapter, argc, argv);
}
