// SPDX-License-Identifier: MIT
// The library call for the same task: cuBLAS's geam, out = 1 * transpose(in) + 0 * out.
#include <cublas_v2.h>

#include <limits>

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook {

namespace {

struct CublasGeam : transpose::Level {
  static constexpr LevelText text{
      .name = "cublasSgeam",
      .changed = "cublasSgeam with beta = 0",
      .expect = "the library's transpose",
  };

  static Support supports(const Problem& p, const DeviceInfo&) {
    const std::int64_t limit = std::numeric_limits<int>::max();
    if (p.shape.in_pitch > limit || p.shape.out_pitch > limit) {
      return Support::no("cublasSgeam takes 32-bit extents");
    }
    if (p.shape.rows == 0 || p.shape.cols == 0) return Support::no("nothing to transpose");
    return Support::yes();
  }

  struct Handle {
    Handle() {
      if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) throw LaunchError("cublasCreate failed");
    }
    ~Handle() { cublasDestroy(handle); }
    cublasHandle_t handle = nullptr;
  };

  static void run(const Plan& plan, Stream stream) {
    static Handle cublas;
    const transpose::Shape& s = plan.problem.shape;
    const float one = 1, zero = 0;
    if (cublasSetStream(cublas.handle, stream.handle) != CUBLAS_STATUS_SUCCESS) {
      throw LaunchError("cublasSetStream failed");
    }
    // cuBLAS is column-major: our row-major out, cols x rows, is a column-major rows x cols matrix.
    const cublasStatus_t status = cublasSgeam(
        cublas.handle, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(s.rows), static_cast<int>(s.cols),
        &one, plan.buffers.in, static_cast<int>(s.in_pitch), &zero, plan.buffers.out,
        static_cast<int>(s.out_pitch), plan.buffers.out, static_cast<int>(s.out_pitch));
    if (status != CUBLAS_STATUS_SUCCESS) throw LaunchError("cublasSgeam failed");
  }
};

}  // namespace

Libraries chapter_3_libraries() {
  return {{"transpose", make_level<CublasGeam>()}, {"odd_shapes", make_level<CublasGeam>()}};
}

}  // namespace cookbook
