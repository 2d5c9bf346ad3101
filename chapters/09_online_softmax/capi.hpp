/* SPDX-License-Identifier: MIT
 *
 * The chapter's softmax for other languages: libcookbook_softmax.so.
 *
 * The softmax of every row of a row-major matrix. `in` and `out` are device pointers, pitches are
 * in elements. `level` is one of cookbook_softmax_levels(). `stream` is a cudaStream_t. Functions
 * that return int return 0, or 1 for an error that cookbook_softmax_error() describes.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  long long rows, cols;
  long long in_pitch, out_pitch; /* elements from one row to the next; 0: dense */
  int dtype;                     /* 0 bf16, 2 fp32 */
} cookbook_softmax_problem;

/* Chooses the kernel for these sizes and addresses. NULL: an error. */
void* cookbook_softmax_plan(const char* level, const cookbook_softmax_problem* problem,
                            const void* in, void* out);
int cookbook_softmax_run(void* plan, void* stream);
void cookbook_softmax_destroy(void* plan);

/* What went wrong in this thread's last call that failed. */
const char* cookbook_softmax_error(void);

/* Names of the levels, separated by newlines. */
const char* cookbook_softmax_levels(void);

#ifdef __cplusplus
}
#endif
