// SPDX-License-Identifier: MIT
// The only file that compiles this chapter's kernels.
#include "chapters/02_tiling/ladder.hpp"

namespace cookbook {

Chapter chapter_2_entry() { return chapter_2(); }

}  // namespace cookbook
