// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_3_entry();
#if COOKBOOK_CUDA
Libraries chapter_3_libraries();
#endif
}  // namespace cookbook

int main(int argc, char** argv) {
#if COOKBOOK_CUDA
  return cookbook::run_chapter(cookbook::chapter_3_entry(), cookbook::chapter_3_libraries(), argc,
                               argv);
#else
  return cookbook::run_chapter(cookbook::chapter_3_entry(), argc, argv);
#endif
}
