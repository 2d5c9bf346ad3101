// SPDX-License-Identifier: MIT
// The common calls of cuBLAS, computed on the CPU in device memory
// (tools/check/program/cublas.cpp).
#pragma once

#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "library_types.h"

#define CUBLAS_API_H_  // helper_cuda.h of the samples asks

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3
};
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
struct cublasContext;
typedef cublasContext* cublasHandle_t;

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
inline cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) { return cublasCreate(handle); }
inline cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) { return cublasDestroy(handle); }
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}
/// Scalars are found wherever they are.
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  *version = 120800;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status);
inline const char* cublasGetStatusName(cublasStatus_t status) {
  return cublasGetStatusString(status);
}

// `increment` and leading dimensions in elements; matrices by columns.
#define COOKBOOK_BLAS(X, x, T)                                                                   \
  cublasStatus_t cublas##X##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x_, int, \
                                 T* y, int, COOKBOOK_PLACE);                                     \
  cublasStatus_t cublas##X##scal(cublasHandle_t handle, int n, const T* alpha, T* x_, int,       \
                                 COOKBOOK_PLACE);                                                \
  cublasStatus_t cublas##X##copy(cublasHandle_t handle, int n, const T* x_, int, T* y, int,      \
                                 COOKBOOK_PLACE);                                                \
  cublasStatus_t cublas##X##dot(cublasHandle_t handle, int n, const T* x_, int, const T* y, int, \
                                T* result, COOKBOOK_PLACE);                                      \
  cublasStatus_t cublas##X##nrm2(cublasHandle_t handle, int n, const T* x_, int, T* result,      \
                                 COOKBOOK_PLACE);                                                \
  cublasStatus_t cublas##X##asum(cublasHandle_t handle, int n, const T* x_, int, T* result,      \
                                 COOKBOOK_PLACE);                                                \
  cublasStatus_t cublasI##x##amax(cublasHandle_t handle, int n, const T* x_, int, int* result,   \
                                  COOKBOOK_PLACE);                                               \
  cublasStatus_t cublas##X##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,      \
                                 const T* alpha, const T* a, int lda, const T* x_, int,          \
                                 const T* beta, T* y, int, COOKBOOK_PLACE);
COOKBOOK_BLAS(S, s, float)
COOKBOOK_BLAS(D, d, double)
#undef COOKBOOK_BLAS

#define COOKBOOK_BLAS(X, T)                                                                       \
  cublasStatus_t cublas##X##gemm(cublasHandle_t handle, cublasOperation_t op_a,                   \
                                 cublasOperation_t op_b, int m, int n, int k, const T* alpha,     \
                                 const T* a, int lda, const T* b, int ldb, const T* beta, T* c,   \
                                 int ldc, COOKBOOK_PLACE);                                        \
  cublasStatus_t cublas##X##gemmStridedBatched(                                                   \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, \
      const T* alpha, const T* a, int lda, long long stride_a, const T* b, int ldb,               \
      long long stride_b, const T* beta, T* c, int ldc, long long stride_c, int count,            \
      COOKBOOK_PLACE);                                                                            \
  /* The arrays of pointers are in device memory. */                                              \
  cublasStatus_t cublas##X##gemmBatched(                                                          \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, \
      const T* alpha, const T* const a[], int lda, const T* const b[], int ldb, const T* beta,    \
      T* const c[], int ldc, int count, COOKBOOK_PLACE);
COOKBOOK_BLAS(S, float)
COOKBOOK_BLAS(D, double)
COOKBOOK_BLAS(H, __half)
#undef COOKBOOK_BLAS
#define COOKBOOK_BLAS(X, T)                                                                        \
  /* C = alpha op(A) + beta op(B) */                                                               \
  cublasStatus_t cublas##X##geam(cublasHandle_t handle, cublasOperation_t op_a,                    \
                                 cublasOperation_t op_b, int m, int n, const T* alpha, const T* a, \
                                 int lda, const T* beta, const T* b, int ldb, T* c, int ldc,       \
                                 COOKBOOK_PLACE);                                                  \
  /* A += alpha x y^T */                                                                           \
  cublasStatus_t cublas##X##ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x,   \
                                int, const T* y, int, T* a, int lda, COOKBOOK_PLACE);              \
  cublasStatus_t cublas##X##swap(cublasHandle_t handle, int n, T* x, int, T* y, int,               \
                                 COOKBOOK_PLACE);
COOKBOOK_BLAS(S, float)
COOKBOOK_BLAS(D, double)
#undef COOKBOOK_BLAS

/// The elements have `element_bytes`; the copies are those of cudaMemcpy2D.
inline cublasStatus_t cublasSetMatrix(int rows, int columns, int element_bytes, const void* a,
                                      int lda, void* b, int ldb, COOKBOOK_PLACE) {
  const auto size = [=](int count) { return static_cast<size_t>(count) * element_bytes; };
  return cudaMemcpy2D(b, size(ldb), a, size(lda), size(rows), columns, cudaMemcpyDefault,
                      cookbook_place) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_MAPPING_ERROR;
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int element_bytes, const void* a,
                                      int lda, void* b, int ldb, COOKBOOK_PLACE) {
  return cublasSetMatrix(rows, columns, element_bytes, a, lda, b, ldb, cookbook_place);
}
inline cublasStatus_t cublasSetVector(int n, int element_bytes, const void* x, int step_x, void* y,
                                      int step_y, COOKBOOK_PLACE) {
  return cublasSetMatrix(1, n, element_bytes, x, step_x, y, step_y, cookbook_place);
}
inline cublasStatus_t cublasGetVector(int n, int element_bytes, const void* x, int step_x, void* y,
                                      int step_y, COOKBOOK_PLACE) {
  return cublasSetVector(n, element_bytes, x, step_x, y, step_y, cookbook_place);
}
inline cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int element_bytes, const void* a,
                                           int lda, void* b, int ldb, cudaStream_t stream,
                                           COOKBOOK_PLACE) {
  const auto size = [=](int count) { return static_cast<size_t>(count) * element_bytes; };
  return cudaMemcpy2DAsync(b, size(ldb), a, size(lda), size(rows), columns, cudaMemcpyDefault,
                           stream, cookbook_place) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_MAPPING_ERROR;
}
inline cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int element_bytes, const void* a,
                                           int lda, void* b, int ldb, cudaStream_t stream,
                                           COOKBOOK_PLACE) {
  return cublasSetMatrixAsync(rows, columns, element_bytes, a, lda, b, ldb, stream, cookbook_place);
}
inline cublasStatus_t cublasSetVectorAsync(int n, int element_bytes, const void* x, int step_x,
                                           void* y, int step_y, cudaStream_t stream,
                                           COOKBOOK_PLACE) {
  return cublasSetMatrixAsync(1, n, element_bytes, x, step_x, y, step_y, stream, cookbook_place);
}
inline cublasStatus_t cublasGetVectorAsync(int n, int element_bytes, const void* x, int step_x,
                                           void* y, int step_y, cudaStream_t stream,
                                           COOKBOOK_PLACE) {
  return cublasSetVectorAsync(n, element_bytes, x, step_x, y, step_y, stream, cookbook_place);
}

/// Of fp32, fp64, fp16 and bf16, and of bytes with 32-bit sums.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                            int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm,
                            COOKBOOK_PLACE);
inline cublasComputeType_t cookbook_sums_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F: return CUBLAS_COMPUTE_64F;
    case CUDA_R_16F: return CUBLAS_COMPUTE_16F;
    case CUDA_R_32I: return CUBLAS_COMPUTE_32I;
    default: return CUBLAS_COMPUTE_32F;
  }
}
/// As before CUDA 11: the sums' type is a data type.
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a,
                                   cublasOperation_t op_b, int m, int n, int k, const void* alpha,
                                   const void* a, cudaDataType type_a, int lda, const void* b,
                                   cudaDataType type_b, int ldb, const void* beta, void* c,
                                   cudaDataType type_c, int ldc, cudaDataType compute,
                                   cublasGemmAlgo_t algorithm, COOKBOOK_PLACE) {
  return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                      type_c, ldc, cookbook_sums_of(compute), algorithm, cookbook_place);
}
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType type_a, int lda, long long stride_a,
    const void* b, cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* c,
    cudaDataType type_c, int ldc, long long stride_c, int count, cublasComputeType_t compute,
    cublasGemmAlgo_t algorithm, COOKBOOK_PLACE);
cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void* x, cudaDataType type_x, int,
                           const void* y, cudaDataType type_y, int, void* result,
                           cudaDataType type_result, cudaDataType compute, COOKBOOK_PLACE);
