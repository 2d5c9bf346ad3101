// SPDX-License-Identifier: MIT
// The library call for the same task: cublasLtMatmul with scales per 1 x 128 and 128 x 128.
#include <cublasLt.h>

#include <memory>

#include "chapters/05_tensor_cores/cublas_gemm.hpp"
#include "chapters/12_fp8/problem.hpp"

namespace cookbook {
namespace fp8 {
namespace {

using gemm::check_cublas;

template <class T, cublasStatus_t (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
template <class T, cublasStatus_t (*destroy)(T*)>
using Owned = std::unique_ptr<T, Destroy<T, destroy>>;
using Handle = Owned<cublasLtContext, cublasLtDestroy>;
using Description = Owned<cublasLtMatmulDescOpaque_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayoutOpaque_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreferenceOpaque_t, cublasLtMatmulPreferenceDestroy>;

Layout layout(cudaDataType_t type, std::int64_t rows, std::int64_t cols, std::int64_t pitch) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(cols), pitch));
  return Layout(made);
}

template <class T>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, T value) {
  check_cublas(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof(value)));
}

struct CublasLtScaled : Level {
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // what cuBLAS asks for on sm_90
  static constexpr LevelText text{
      .name = "cuBLASLt",
      .changed = "cublasLtMatmul, scales VEC128_32F and BLK128x128_32F",
      .expect = "the vendor's kernel for this shape",
  };
  struct Plan {
    Problem problem;
    Buffers buffers;
    Handle handle{};
    Description description{};
    Layout a{}, b{}, c{};
    cublasLtMatmulAlgo_t algorithm{};
    DeviceMemory workspace{};
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc() != 90) return Support::no("cuBLASLt has these scales for sm_90");
    if (p.m * p.n * p.k == 0) return Support::no("cuBLASLt takes no empty matrix");
    if (p.m % 4 != 0 || p.n % 16 != 0 || p.k % 16 != 0 || p.lda % 16 != 0 || p.ldb % 16 != 0) {
      return Support::no("rows that are no multiple of 16 bytes");
    }
    if (p.ld_scale_a != p.m || p.ld_scale_b % 4 != 0) {
      return Support::no("scales of A without padding, rows of B's scales of a multiple of four");
    }
    return Support::yes();
  }

  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{p, at};
    cublasLtHandle_t handle = nullptr;
    check_cublas(cublasLtCreate(&handle));
    plan.handle.reset(handle);
    cublasLtMatmulDesc_t description = nullptr;
    check_cublas(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    plan.description.reset(description);
    // cuBLASLt is column-major: it computes C^T = B A^T, and so our B is its A.
    set(plan.description, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(plan.description, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    set(plan.description, CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
        CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
    set(plan.description, CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
        CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
    set(plan.description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, at.scale_b);
    set(plan.description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, at.scale_a);
    plan.a = layout(CUDA_R_8F_E4M3, p.k, p.n, p.ldb);
    plan.b = layout(CUDA_R_8F_E4M3, p.k, p.m, p.lda);
    plan.c = layout(CUDA_R_16BF, p.n, p.m, p.ldc);
    cublasLtMatmulPreference_t preference = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&preference));
    const Preference owned(preference);
    check_cublas(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof(kWorkspace)));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    check_cublas(cublasLtMatmulAlgoGetHeuristic(handle, description, plan.a.get(), plan.b.get(),
                                                plan.c.get(), plan.c.get(), preference, 1, &best,
                                                &found));
    if (found == 0) throw LaunchError("cuBLASLt has no kernel for this problem");
    plan.algorithm = best.algo;
    plan.workspace = DeviceMemory(kWorkspace, "workspace");
    return plan;
  }

  static void run(const Plan& plan, Stream stream) {
    const float one = 1, zero = 0;
    check_cublas(cublasLtMatmul(plan.handle.get(), plan.description.get(), &one, plan.buffers.b,
                                plan.a.get(), plan.buffers.a, plan.b.get(), &zero, plan.buffers.c,
                                plan.c.get(), plan.buffers.c, plan.c.get(), &plan.algorithm,
                                plan.workspace.as<void>(), kWorkspace, stream.handle));
  }
};

}  // namespace
}  // namespace fp8

Libraries chapter_12_libraries() {
  const ReferenceEntry scaled = make_level<fp8::CublasLtScaled>();
  return {{"fp8", scaled}, {"fp8_waves", scaled}};
}

}  // namespace cookbook
