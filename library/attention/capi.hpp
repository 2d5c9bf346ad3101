/* SPDX-License-Identifier: MIT
 *
 * Attention for other languages: libcookbook_attention.so.
 *
 * All pointers are device pointers. q and o: [batch, seq_q, heads_q, head_dim]; k and v:
 * [batch, seq_k, heads_kv, head_dim]; lse: [batch, heads_q, seq_q] fp32; all dense. dtype: 0 bf16,
 * 1 fp16. `level`: "attention" chooses by shape; the other names are those of its kernels and of
 * the levels of chapter 10, such as "persistent", most of which take bf16 only. `stream` is a
 * cudaStream_t. Functions that return int return 0, or 1 for an error that
 * cookbook_attention_error() describes.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int batch, heads_q, heads_kv, seq_q, seq_k, head_dim;
  int causal; /* 0 or 1; the mask is aligned to the bottom right */
  int dtype;  /* 0 bf16, 1 fp16 */
} cookbook_attention_problem;

/* Computes o and lse. Prepares tensor maps and workspace on every call; see the plan below. */
int cookbook_attention_forward(const char* level, const cookbook_attention_problem* problem,
                               const void* q, const void* k, const void* v, void* o, float* lse,
                               void* stream);

/* The same in two steps: what depends on sizes and addresses only is prepared once. NULL: an error.
 */
void* cookbook_attention_plan(const char* level, const cookbook_attention_problem* problem,
                              const void* q, const void* k, const void* v, void* o, float* lse);
int cookbook_attention_run(void* plan, void* stream);
void cookbook_attention_destroy(void* plan);

/* The gradients of a forward pass: dq, dk and dv from d_o, the gradient of o. d_lse is that of lse,
 * or NULL. Shapes as above; bf16 only. A query whose keys are all masked (lse -inf) has dq = 0, and
 * adds nothing to dk and dv. */
typedef struct {
  const void *q, *k, *v, *o, *d_o;
  const float *lse, *d_lse;
  void *dq, *dk, *dv;
} cookbook_attention_gradients;

/* `level`: "backward" chooses by layout and GPU; "deterministic" gives the same bytes in every run,
 * and needs sm_90. Run and destroyed as a plan of the forward pass; a plan with workspace runs on
 * one stream at a time. */
void* cookbook_attention_backward_plan(const char* level, const cookbook_attention_problem* problem,
                                       const cookbook_attention_gradients* tensors);

/* Bytes of device memory that a plan of "backward" holds, rounding of allocations not included: lse
 * and delta of each query, and fp32 sums of dq. -1: an error. */
long long cookbook_attention_backward_workspace(const cookbook_attention_problem* problem);

/* What went wrong in this thread's last call that failed. */
const char* cookbook_attention_error(void);

/* Names of all levels, separated by newlines; of the backward pass. */
const char* cookbook_attention_levels(void);
const char* cookbook_attention_backward_levels(void);

#ifdef __cplusplus
}
#endif
