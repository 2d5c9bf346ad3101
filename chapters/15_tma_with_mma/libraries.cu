// SPDX-License-Identifier: MIT
#include "chapters/05_tensor_cores/cublas_gemm.hpp"

namespace cookbook {

Libraries chapter_15_libraries() { return {{"gemm", gemm::cublas_gemm<bf16>()}}; }

}  // namespace cookbook
