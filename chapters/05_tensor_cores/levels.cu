// SPDX-License-Identifier: MIT
// The only file that compiles this chapter's kernels.
#include "chapters/05_tensor_cores/ladder.hpp"

namespace cookbook {

Chapter chapter_5_entry() { return chapter_5(); }

}  // namespace cookbook
