// SPDX-License-Identifier: MIT
// What a user would call instead of this chapter's levels.
#include <string>
#include <utility>
#include <vector>

#include "chapters/02_tiling/cublas_sgemm.hpp"

namespace cookbook {

std::vector<std::pair<std::string, ReferenceEntry>> chapter_2_libraries() {
  return {{"sgemm", make_level<sgemm::CuBlas>()}};
}

}  // namespace cookbook
