// SPDX-License-Identifier: MIT
#include "chapters/05_tensor_cores/cublas_gemm.hpp"

namespace cookbook {

Libraries chapter_7_libraries() {
  return {{"smem_swizzle", gemm::cublas_gemm<bf16>()},
          {"wgmma_swizzle", gemm::cublas_gemm<bf16>()},
          {"l2_order", gemm::cublas_gemm<bf16>()}};
}

}  // namespace cookbook
