// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_9_entry();
#if COOKBOOK_CUDA
Libraries chapter_9_libraries();
#endif
}  // namespace cookbook

int main(int argc, char** argv) {
#if COOKBOOK_CUDA
  return cookbook::run_chapter(cookbook::chapter_9_entry(), cookbook::chapter_9_libraries(), argc,
                               argv);
#else
  return cookbook::run_chapter(cookbook::chapter_9_entry(), argc, argv);
#endif
}
