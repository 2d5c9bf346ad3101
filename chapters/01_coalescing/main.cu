// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_1_entry();
#if COOKBOOK_CUDA
Libraries chapter_1_libraries();
#endif
}  // namespace cookbook

int main(int argc, char** argv) {
#if COOKBOOK_CUDA
  return cookbook::run_chapter(cookbook::chapter_1_entry(), cookbook::chapter_1_libraries(), argc,
                               argv);
#else
  return cookbook::run_chapter(cookbook::chapter_1_entry(), argc, argv);
#endif
}
