// SPDX-License-Identifier: MIT
// A chapter's program with solutions in the place of its exercises, and without its levels.
//   COOKBOOK_LADDER   the chapter's ladder.hpp; exercises/ is looked for in another folder first
//   COOKBOOK_CHAPTER  the function in it: chapter_3
//   COOKBOOK_WRONG_FILE, COOKBOOK_WRONG_LEVEL   one more exercise: a wrong solution (optional)
//                    of the exercise of the same name
//   COOKBOOK_VARIANTS_FILE   variants of exercises, after it (tools/exercises/variants.py)
#include "common/harness/contract/exercises_only.hpp"
// The above comes first.
#include COOKBOOK_LADDER
#include "common/harness/run/runner.hpp"
#ifdef COOKBOOK_WRONG_FILE
#include COOKBOOK_WRONG_FILE
#endif
#ifdef COOKBOOK_VARIANTS_FILE
#include COOKBOOK_VARIANTS_FILE
#endif
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
#ifdef COOKBOOK_WRONG_FILE
  chapter.exercises.push_back(cookbook::make_any_level<cookbook::COOKBOOK_WRONG_LEVEL>());
#endif
#ifdef COOKBOOK_VARIANTS_FILE
  cookbook::add_variants(chapter);
#endif
  return cookbook::run_chapter(chapter, argc, argv);
}
