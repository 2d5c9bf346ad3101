// SPDX-License-Identifier: MIT
// Chapter 8: the only file of the chapter that compiles its kernels.
#include "chapters/08_persistent/ladder.hpp"

namespace cookbook {

Chapter chapter_8_entry() { return chapter_8(); }

}  // namespace cookbook
