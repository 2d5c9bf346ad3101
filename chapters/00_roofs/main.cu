// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_0_entry();
}

int main(int argc, char** argv) {
  return cookbook::run_chapter(cookbook::chapter_0_entry(), argc, argv);
}
