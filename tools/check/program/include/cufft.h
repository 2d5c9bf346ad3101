// SPDX-License-Identifier: MIT
// Fourier transforms in one to three dimensions: loops on the CPU. What they read and write is
// checked.
#pragma once

#include "cuda_runtime.h"

#define _CUFFT_H_  // helper_cuda.h of the samples asks

typedef float cufftReal;
typedef double cufftDoubleReal;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;
typedef int cufftHandle;
enum cufftResult_t {
  CUFFT_SUCCESS,
  CUFFT_INVALID_PLAN,
  CUFFT_ALLOC_FAILED,
  CUFFT_INVALID_TYPE,
  CUFFT_INVALID_VALUE,
  CUFFT_INTERNAL_ERROR,
  CUFFT_EXEC_FAILED,
  CUFFT_SETUP_FAILED,
  CUFFT_INVALID_SIZE,
  CUFFT_UNALIGNED_DATA,
  CUFFT_INCOMPLETE_PARAMETER_LIST,
  CUFFT_INVALID_DEVICE,
  CUFFT_PARSE_ERROR,
  CUFFT_NO_WORKSPACE,
  CUFFT_NOT_IMPLEMENTED,
  CUFFT_LICENSE_ERROR,
  CUFFT_NOT_SUPPORTED
};
typedef cufftResult_t cufftResult;
enum cufftType_t {
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_C2C = 0x29,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
  CUFFT_Z2Z = 0x69
};
typedef cufftType_t cufftType;
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1

[[nodiscard]] cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* in_embed,
                                        int in_stride, int in_distance, int* out_embed,
                                        int out_stride, int out_distance, cufftType type,
                                        int batch);
inline cufftResult cufftPlan1d(cufftHandle* plan, int n, cufftType type, int batch) {
  return cufftPlanMany(plan, 1, &n, nullptr, 1, 0, nullptr, 1, 0, type, batch);
}
inline cufftResult cufftPlan2d(cufftHandle* plan, int n0, int n1, cufftType type) {
  int n[] = {n0, n1};
  return cufftPlanMany(plan, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1);
}
inline cufftResult cufftPlan3d(cufftHandle* plan, int n0, int n1, int n2, cufftType type) {
  int n[] = {n0, n1, n2};
  return cufftPlanMany(plan, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1);
}
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftDestroy(cufftHandle plan);
inline cufftResult cufftGetVersion(int* version) {
  *version = 11300;
  return CUFFT_SUCCESS;
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction,
                         COOKBOOK_PLACE);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out, COOKBOOK_PLACE);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out, COOKBOOK_PLACE);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out,
                         int direction, COOKBOOK_PLACE);
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out,
                         COOKBOOK_PLACE);
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out,
                         COOKBOOK_PLACE);
