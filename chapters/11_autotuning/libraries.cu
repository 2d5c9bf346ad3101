// SPDX-License-Identifier: MIT
// What a user would call instead of the product: cuBLAS, whose heuristic is a tuner of its own.
#include "chapters/05_tensor_cores/cublas_gemm.hpp"

namespace cookbook {

Libraries chapter_11_libraries() { return {{"gemm", gemm::cublas_gemm<bf16>()}}; }

}  // namespace cookbook
