// SPDX-License-Identifier: MIT
#include "chapters/05_tensor_cores/cublas_gemm.hpp"

namespace cookbook {

Libraries chapter_5_libraries() {
  return {{"gemm", gemm::cublas_gemm<bf16>()}, {"hgemm", gemm::cublas_gemm<half>()}};
}

}  // namespace cookbook
