// SPDX-License-Identifier: MIT
// Plans of cuFFT in one to three dimensions, computed on the CPU in device memory
// (tools/check/program/cufft.cpp). As in cuFFT, nothing is divided by the number of elements.
#pragma once

#include "cuComplex.h"
#include "cuda_runtime.h"

// By this name programs ask whether the header was included.
#define _CUFFT_H_

enum cufftResult_t {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_UNALIGNED_DATA = 9,
  CUFFT_INVALID_DEVICE = 11,
  CUFFT_NO_WORKSPACE = 13,
  CUFFT_NOT_IMPLEMENTED = 14,
  CUFFT_NOT_SUPPORTED = 16,
  CUFFT_MISSING_DEPENDENCY = 17,
  CUFFT_NVRTC_FAILURE = 18,
  CUFFT_NVJITLINK_FAILURE = 19,
  CUFFT_NVSHMEM_FAILURE = 20
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

typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

cufftResult cufftCreate(cufftHandle* plan);
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* n, int* inembed, int istride,
                              int idist, int* onembed, int ostride, int odist, cufftType type,
                              int batch, size_t* bytes);
inline cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* inembed, int istride,
                                 int idist, int* onembed, int ostride, int odist, cufftType type,
                                 int batch) {
  cufftCreate(plan);
  return cufftMakePlanMany(*plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type,
                           batch, nullptr);
}
inline cufftResult cufftMakePlan1d(cufftHandle plan, int x, cufftType type, int batch,
                                   size_t* bytes) {
  return cufftMakePlanMany(plan, 1, &x, nullptr, 1, 0, nullptr, 1, 0, type, batch, bytes);
}
inline cufftResult cufftMakePlan2d(cufftHandle plan, int x, int y, cufftType type, size_t* bytes) {
  int n[] = {x, y};
  return cufftMakePlanMany(plan, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, bytes);
}
inline cufftResult cufftMakePlan3d(cufftHandle plan, int x, int y, int z, cufftType type,
                                   size_t* bytes) {
  int n[] = {x, y, z};
  return cufftMakePlanMany(plan, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, bytes);
}
inline cufftResult cufftPlan1d(cufftHandle* plan, int x, cufftType type, int batch) {
  cufftCreate(plan);
  return cufftMakePlan1d(*plan, x, type, batch, nullptr);
}
inline cufftResult cufftPlan2d(cufftHandle* plan, int x, int y, cufftType type) {
  cufftCreate(plan);
  return cufftMakePlan2d(*plan, x, y, type, nullptr);
}
inline cufftResult cufftPlan3d(cufftHandle* plan, int x, int y, int z, cufftType type) {
  cufftCreate(plan);
  return cufftMakePlan3d(*plan, x, y, z, type, nullptr);
}
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
inline cufftResult cufftGetVersion(int* version) {
  *version = 11300;
  return CUFFT_SUCCESS;
}
/// No plan needs a work area.
inline cufftResult cufftGetSize(cufftHandle, size_t* bytes) {
  *bytes = 0;
  return CUFFT_SUCCESS;
}
inline cufftResult cufftSetAutoAllocation(cufftHandle, int) { return CUFFT_SUCCESS; }
inline cufftResult cufftSetWorkArea(cufftHandle, void*) { return CUFFT_SUCCESS; }

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
