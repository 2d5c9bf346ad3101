// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_2_entry();
#if COOKBOOK_CUDA
std::vector<std::pair<std::string, ReferenceEntry>> chapter_2_libraries();
#endif
}  // namespace cookbook

int main(int argc, char** argv) {
#if COOKBOOK_CUDA
  return cookbook::run_chapter(cookbook::chapter_2_entry(), cookbook::chapter_2_libraries(), argc,
                               argv);
#else
  return cookbook::run_chapter(cookbook::chapter_2_entry(), argc, argv);
#endif
}
