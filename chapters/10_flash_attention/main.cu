// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_10_entry();
}  // namespace cookbook

// plots/compare_attention.py times cuDNN and FlashAttention next to the levels, through PyTorch
// because that is how most programs call them. It loads the levels from the library that capi.cu
// builds.
int main(int argc, char** argv) {
  return cookbook::run_chapter(cookbook::chapter_10_entry(), argc, argv);
}
