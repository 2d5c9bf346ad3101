// SPDX-License-Identifier: MIT
#include "common/harness/runner.hpp"

namespace cookbook {
Chapter chapter_10_entry();
}  // namespace cookbook

// cuDNN and FlashAttention are timed beside the levels by plots/compare_attention.py: through
// PyTorch, which is how people call them, with the levels loaded from the library that capi.cu
// makes.
int main(int argc, char** argv) {
  return cookbook::run_chapter(cookbook::chapter_10_entry(), argc, argv);
}
