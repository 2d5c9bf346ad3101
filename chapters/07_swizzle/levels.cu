// SPDX-License-Identifier: MIT
// Chapter 7: the only file of the chapter that compiles its kernels.
#include "chapters/07_swizzle/ladder.hpp"

namespace cookbook {

Chapter chapter_7_entry() { return chapter_7(); }

}  // namespace cookbook
