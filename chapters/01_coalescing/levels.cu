// SPDX-License-Identifier: MIT
// The only file that compiles this chapter's kernels.
#include "chapters/01_coalescing/ladder.hpp"

namespace cookbook {

Chapter chapter_1_entry() { return chapter_1(); }

}  // namespace cookbook
