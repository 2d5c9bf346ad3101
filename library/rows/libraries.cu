// SPDX-License-Identifier: MIT
// cuDNN's softmax, as in chapter 9.
#include "chapters/09_online_softmax/libraries.cu"

namespace cookbook {

Libraries capstone_libraries() { return chapter_9_libraries(); }

}  // namespace cookbook
