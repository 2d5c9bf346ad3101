// SPDX-License-Identifier: MIT
// The library call for the same task: cublasGemmEx with one column.
#include <cublas_v2.h>

#include <memory>

#include "problem.hpp"

namespace cookbook {

namespace {

struct CublasGemv : gemv::Level {
  static constexpr LevelText text{
      .name = "cuBLAS",
      .changed = "cublasGemmEx with n = 1, CUBLAS_COMPUTE_32F",
      .expect = "the vendor's kernel for this shape",
  };

  static void check(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS) throw LaunchError(cublasGetStatusString(status));
  }

  struct Destroy {
    void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  };
  struct Plan {
    gemv::Problem problem;
    gemv::Buffers buffers;
    std::unique_ptr<cublasContext, Destroy> handle;
  };

  static Support supports(const gemv::Problem& p, const DeviceInfo&) {
    if (p.shape.k == 0) return Support::no("cuBLAS does not support a matrix of no columns");
    return Support::yes();
  }

  static Plan prepare(const gemv::Problem& problem, const gemv::Buffers& buffers) {
    cublasHandle_t handle = nullptr;
    check(cublasCreate(&handle));
    return {problem, buffers, std::unique_ptr<cublasContext, Destroy>(handle)};
  }

  static void run(const Plan& plan, Stream stream) {
    const gemv::Shape& s = plan.problem.shape;
    if (s.m == 0) return;
    const float one = 1, zero = 0;
    check(cublasSetStream(plan.handle.get(), stream.handle));
    // cuBLAS is column-major: our A is its transposed k x m matrix.
    check(cublasGemmEx_64(plan.handle.get(), CUBLAS_OP_T, CUBLAS_OP_N, s.m, 1, s.k, &one,
                          plan.buffers.a, CUDA_R_16BF, s.pitch, plan.buffers.x, CUDA_R_16BF, s.k,
                          &zero, plan.buffers.y, CUDA_R_32F, s.m, CUBLAS_COMPUTE_32F,
                          CUBLAS_GEMM_DEFAULT));
  }
};

}  // namespace

Libraries capstone_libraries() {
  return {{"gemv", make_level<CublasGemv>()}, {"few_rows", make_level<CublasGemv>()}};
}

}  // namespace cookbook
