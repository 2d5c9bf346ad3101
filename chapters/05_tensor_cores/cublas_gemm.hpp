// SPDX-License-Identifier: MIT
// The library call for the same task: cublasGemmEx. Chapters 5 to 8 time it next to their ladders.
// CUDA backend only; link cuBLAS.
#pragma once

#include <cublas_v2.h>

#include <memory>
#include <type_traits>

#include "common/problems/gemm.hpp"

namespace cookbook::gemm {

inline void check_cublas(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw LaunchError(cublasGetStatusString(status));
}

/// cuBLAS on ProblemT<T>, any of the four layouts, fp32 accumulators.
template <class T>
struct CublasGemm : LevelT<T> {
  static constexpr LevelText text{
      .name = "cuBLAS",
      .changed = "cublasGemmEx, CUBLAS_COMPUTE_32F",
      .expect = "the vendor's kernel for this shape",
  };

  struct Destroy {
    void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  };
  struct Plan {
    ProblemT<T> problem;
    BuffersT<T> buffers;
    std::unique_ptr<cublasContext, Destroy> handle;
  };

  static Support supports(const ProblemT<T>& p, const DeviceInfo&) {
    if (p.k == 0) return Support::no("cuBLAS refuses the empty matrices that K = 0 makes here");
    return Support::yes();
  }

  static Plan prepare(const ProblemT<T>& problem, const BuffersT<T>& buffers) {
    cublasHandle_t handle = nullptr;
    check_cublas(cublasCreate(&handle));
    return {problem, buffers, std::unique_ptr<cublasContext, Destroy>(handle)};
  }

  static void run(const Plan& plan, Stream stream) {
    const ProblemT<T>& p = plan.problem;
    if (p.m == 0 || p.n == 0) return;
    constexpr cudaDataType_t kType = std::is_same_v<T, bf16> ? CUDA_R_16BF : CUDA_R_16F;
    const float one = 1, zero = 0;
    // cuBLAS is column-major: it sees every row-major matrix transposed. C^T = B^T A^T then needs B
    // first, and cuBLAS must transpose each operand that our problem stores transposed.
    const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    check_cublas(cublasSetStream(plan.handle.get(), stream.handle));
    check_cublas(cublasGemmEx_64(plan.handle.get(), operation(p.b_transposed),
                                 operation(p.a_transposed), p.n, p.m, p.k, &one, plan.buffers.b,
                                 kType, p.ldb, plan.buffers.a, kType, p.lda, &zero, plan.buffers.c,
                                 kType, p.ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
};

/// The reference level of a ladder over ProblemT<T>: `{"gemm", cublas_gemm<bf16>()}`.
template <class T>
ReferenceEntry cublas_gemm() {
  return make_level<CublasGemm<T>>();
}

}  // namespace cookbook::gemm
