// SPDX-License-Identifier: MIT
// Compiles every kernel of the chapter.
#include "chapters/10_flash_attention/ladder.hpp"

namespace cookbook {

Chapter chapter_10_entry() { return chapter_10(); }

}  // namespace cookbook
