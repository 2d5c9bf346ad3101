// SPDX-License-Identifier: MIT
// The only file that compiles this chapter's kernels.
#include "chapters/03_bank_conflicts/ladder.hpp"

namespace cookbook {

Chapter chapter_3_entry() { return chapter_3(); }

}  // namespace cookbook
