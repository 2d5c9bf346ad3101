// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_7_entry();
#if COOKBOOK_CUDA
std::vector<std::pair<std::string, ReferenceEntry>> chapter_7_libraries();
#endif
}  // namespace cookbook

int main(int argc, char** argv) {
#if COOKBOOK_CUDA
  return cookbook::run_chapter(cookbook::chapter_7_entry(), cookbook::chapter_7_libraries(), argc,
                               argv);
#else
  return cookbook::run_chapter(cookbook::chapter_7_entry(), argc, argv);
#endif
}
