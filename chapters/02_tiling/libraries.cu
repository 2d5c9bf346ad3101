// SPDX-License-Identifier: MIT
// The library call for the same task.

#include "chapters/02_tiling/cublas_sgemm.hpp"

namespace cookbook {

Libraries chapter_2_libraries() { return {{"sgemm", make_level<sgemm::CuBlas>()}}; }

}  // namespace cookbook
