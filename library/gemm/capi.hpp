/* SPDX-License-Identifier: MIT
 *
 * The library's GEMM for other languages: libcookbook_gemm.so.
 *
 * C (m x n) = A (m x k) B (k x n): bf16 in and out, fp32 sums. All pointers are device pointers,
 * all matrices row-major with leading dimensions in elements; a transposed operand is stored the
 * other way round (A as k x m, B as n x k). `level` is one of cookbook_gemm_levels(). `stream` is a
 * cudaStream_t. Functions that return int return 0, or 1 for an error that cookbook_gemm_error()
 * describes.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  long long m, n, k;
  long long lda, ldb, ldc; /* elements from one stored row to the next; 0: dense */
  int a_transposed, b_transposed;
} cookbook_gemm_problem;

/* Prepares what depends on sizes and addresses only: tensor maps, workspace. NULL: an error. */
void* cookbook_gemm_plan(const char* level, const cookbook_gemm_problem* problem, const void* a,
                         const void* b, void* c);
int cookbook_gemm_run(void* plan, void* stream);
void cookbook_gemm_destroy(void* plan);

/* What went wrong in this thread's last call that failed. */
const char* cookbook_gemm_error(void);

/* Names of the levels, separated by newlines. */
const char* cookbook_gemm_levels(void);

#ifdef __cplusplus
}
#endif
