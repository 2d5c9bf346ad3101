// SPDX-License-Identifier: MIT

#include "chapters/05_tensor_cores/cublas_gemm.hpp"

namespace cookbook {

Libraries chapter_8_libraries() {
  return {{"gemm", gemm::cublas_gemm<bf16>()},    {"gemm_nt", gemm::cublas_gemm<bf16>()},
          {"gemm_tn", gemm::cublas_gemm<bf16>()}, {"gemm_tt", gemm::cublas_gemm<bf16>()},
          {"decode", gemm::cublas_gemm<bf16>()},  {"decode_nt", gemm::cublas_gemm<bf16>()},
          {"batch", gemm::cublas_gemm<bf16>()},   {"batch_nt", gemm::cublas_gemm<bf16>()}};
}

}  // namespace cookbook
