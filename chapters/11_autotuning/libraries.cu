// SPDX-License-Identifier: MIT
// The library call for the GEMM: cuBLAS, whose heuristic is itself a tuner.
#include "chapters/05_tensor_cores/cublas_gemm.hpp"

namespace cookbook {

Libraries chapter_11_libraries() { return {{"gemm", gemm::cublas_gemm<bf16>()}}; }

}  // namespace cookbook
