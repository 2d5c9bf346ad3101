// SPDX-License-Identifier: MIT
// The only file that compiles this chapter's kernels.
#include "chapters/09_online_softmax/ladder.hpp"

namespace cookbook {

Chapter chapter_9_entry() { return chapter_9(); }

}  // namespace cookbook
