// SPDX-License-Identifier: MIT

#include "chapters/05_tensor_cores/cublas_gemm.hpp"

namespace cookbook {

Libraries capstone_libraries() {
  Libraries all;
  for (const char* ladder :
       {"gemm", "gemm_nt", "gemm_tn", "gemm_tt", "decode", "decode_nt", "batch", "batch_nt"}) {
    all.emplace_back(ladder, gemm::cublas_gemm<bf16>());
  }
  return all;
}

}  // namespace cookbook
