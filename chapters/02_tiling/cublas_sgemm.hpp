// SPDX-License-Identifier: MIT
// The library call for the GEMM of chapters 2 and 4: cuBLAS, in fp32 on the CUDA cores (no TF32,
// which requires CUBLAS_TF32_TENSOR_OP_MATH).
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <memory>

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

inline void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw LaunchError(cublasGetStatusString(status));
}

struct CuBlas : Level {
  static constexpr LevelText text{
      .name = "cuBLAS",
      .changed = "cublasSgemm, CUBLAS_DEFAULT_MATH: fp32 FMAs, no TF32",
      .expect = "the vendor's kernel for this shape",
  };

  struct Destroy {
    void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  };
  struct Plan {
    Problem problem;
    Buffers buffers;
    std::unique_ptr<cublasContext, Destroy> handle;
  };

  static Support supports(const Problem& p, const DeviceInfo&) {
    if (p.k == 0) return Support::no("cuBLAS refuses the empty matrices that K = 0 makes here");
    return Support::yes();
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    cublasHandle_t handle = nullptr;
    check(cublasCreate(&handle));
    Plan plan{problem, buffers, std::unique_ptr<cublasContext, Destroy>(handle)};
    check(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
    return plan;
  }

  static void run(const Plan& plan, Stream stream) {
    const Problem& p = plan.problem;
    if (p.m == 0 || p.n == 0) return;
    const float one = 1, zero = 0;
    check(cublasSetStream(plan.handle.get(), stream.handle));
    // cuBLAS is column-major: it sees every row-major matrix transposed, and C^T = B^T A^T.
    check(cublasSgemm_64(plan.handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, p.n, p.m, p.k, &one,
                         plan.buffers.b, p.ldb, plan.buffers.a, p.lda, &zero, plan.buffers.c,
                         p.ldc));
  }
};

}  // namespace cookbook::sgemm
