/* SPDX-License-Identifier: MIT
 *
 * Softmax and RMSNorm of rows for other languages: libcookbook_rows.so.
 *
 * Of a row-major matrix in device memory; pitches are in elements:
 *   softmax   out[r][c] = exp(in[r][c]) / sum over j of exp(in[r][j])
 *   RMSNorm   out[r][c] = in[r][c] weight[c] / sqrt(mean over j of in[r][j]^2 + 1e-6)
 * `kernel`: "rows" chooses by shape; cookbook_rows_levels() has the names of the others. `stream`
 * is a cudaStream_t. Functions that return int return 0, or 1 for an error that
 * cookbook_rows_error() describes.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  long long rows, cols;
  long long in_pitch, out_pitch; /* elements from one row to the next; 0: dense */
  int dtype;                     /* 0 bf16, 2 fp32 */
} cookbook_rows_problem;

/* Chooses the kernel for these sizes and addresses. weight: of RMSNorm; NULL: softmax. A plan may
 * hold a counter: it runs on one stream at a time. NULL: an error. */
void* cookbook_rows_plan(const char* kernel, const cookbook_rows_problem* problem, const void* in,
                         const void* weight, void* out);
int cookbook_rows_run(void* plan, void* stream);
void cookbook_rows_destroy(void* plan);

/* What went wrong in this thread's last call that failed. */
const char* cookbook_rows_error(void);

/* All kernels, separated by newlines. Each supports some lengths and alignments only. */
const char* cookbook_rows_levels(void);

#ifdef __cplusplus
}
#endif
