// SPDX-License-Identifier: MIT
// cuBLAS's geam, as in chapter 3.
#include "chapters/03_bank_conflicts/libraries.cu"

namespace cookbook {

Libraries capstone_libraries() {
  Libraries all = chapter_3_libraries();
  all.push_back({"narrow", all.front().second});
  return all;
}

}  // namespace cookbook
