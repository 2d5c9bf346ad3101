// SPDX-License-Identifier: MIT
// The only file that compiles this chapter's kernels.
#include "chapters/04_double_buffering/ladder.hpp"

namespace cookbook {

Chapter chapter_4_entry() { return chapter_4(); }

}  // namespace cookbook
