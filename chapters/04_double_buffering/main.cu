// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_4_entry();
#if COOKBOOK_CUDA
std::vector<std::pair<std::string, ReferenceEntry>> chapter_4_libraries();
#endif
}  // namespace cookbook

int main(int argc, char** argv) {
#if COOKBOOK_CUDA
  return cookbook::run_chapter(cookbook::chapter_4_entry(), cookbook::chapter_4_libraries(), argc,
                               argv);
#else
  return cookbook::run_chapter(cookbook::chapter_4_entry(), argc, argv);
#endif
}
