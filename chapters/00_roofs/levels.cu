// SPDX-License-Identifier: MIT
#include "chapters/00_roofs/ladder.hpp"

namespace cookbook {
Chapter chapter_0_entry() { return chapter_0(); }
}  // namespace cookbook
