/* SPDX-License-Identifier: MIT
 *
 * The transpose for other languages: libcookbook_transpose.so.
 *
 * out[c][r] = in[r][c] of row-major fp32 matrices in device memory; pitches are in elements.
 * `kernel`: "transpose" chooses by shape; cookbook_transpose_levels() has the names of the others.
 * `stream` is a cudaStream_t. Functions that return int return 0, or 1 for an error that
 * cookbook_transpose_error() describes.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  long long rows, cols;          /* of in */
  long long in_pitch, out_pitch; /* elements from one row to the next; 0: dense */
} cookbook_transpose_problem;

/* Chooses the kernel for these sizes and addresses. NULL: an error. */
void* cookbook_transpose_plan(const char* kernel, const cookbook_transpose_problem* problem,
                              const float* in, float* out);
int cookbook_transpose_run(void* plan, void* stream);
void cookbook_transpose_destroy(void* plan);

/* What went wrong in this thread's last call that failed. */
const char* cookbook_transpose_error(void);

/* All kernels, separated by newlines. */
const char* cookbook_transpose_levels(void);

#ifdef __cplusplus
}
#endif
