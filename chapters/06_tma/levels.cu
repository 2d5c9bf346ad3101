// SPDX-License-Identifier: MIT
// Chapter 6: the only file of the chapter that compiles its kernels.
#include "chapters/06_tma/ladder.hpp"

namespace cookbook {

Chapter chapter_6_entry() { return chapter_6(); }

}  // namespace cookbook
