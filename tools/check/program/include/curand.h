// SPDX-License-Identifier: MIT
// Random numbers by the host, into device memory: those of curand_kernel.h.
#pragma once

#include "cuda_runtime.h"

#define CURAND_H_  // helper_cuda.h of the samples asks

enum curandStatus_t {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_VERSION_MISMATCH = 100,
  CURAND_STATUS_NOT_INITIALIZED,
  CURAND_STATUS_ALLOCATION_FAILED,
  CURAND_STATUS_TYPE_ERROR,
  CURAND_STATUS_OUT_OF_RANGE,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE,
  CURAND_STATUS_DOUBLE_PRECISION_REQUIRED,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_PREEXISTING_FAILURE,
  CURAND_STATUS_INITIALIZATION_FAILED,
  CURAND_STATUS_ARCH_MISMATCH,
  CURAND_STATUS_INTERNAL_ERROR = 999
};
typedef curandStatus_t curandStatus;
enum curandRngType_t {
  CURAND_RNG_PSEUDO_DEFAULT = 100,
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161
};
typedef curandRngType_t curandRngType;
struct curandGenerator_st;
typedef curandGenerator_st* curandGenerator_t;

enum curandOrdering_t {
  CURAND_ORDERING_PSEUDO_BEST = 100,
  CURAND_ORDERING_PSEUDO_DEFAULT = 101,
  CURAND_ORDERING_PSEUDO_SEEDED = 102,
  CURAND_ORDERING_PSEUDO_LEGACY = 103,
  CURAND_ORDERING_PSEUDO_DYNAMIC = 104
};
typedef curandOrdering_t curandOrdering;

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type);
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type);
curandStatus_t curandDestroyGenerator(curandGenerator_t generator);
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                  unsigned long long seed);
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset);
inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t, curandOrdering_t) {
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream);
curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* to, size_t n, COOKBOOK_PLACE);
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* to, size_t n,
                                     COOKBOOK_PLACE);
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* to, size_t n,
                                           COOKBOOK_PLACE);
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* to, size_t n, float mean,
                                    float deviation, COOKBOOK_PLACE);
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* to, size_t n,
                                          double mean, double deviation, COOKBOOK_PLACE);
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* to, size_t n,
                                      COOKBOOK_PLACE);
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* to, size_t n, float mean,
                                       float deviation, COOKBOOK_PLACE);
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* to, size_t n,
                                             double mean, double deviation, COOKBOOK_PLACE);
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* to, size_t n,
                                     double mean, COOKBOOK_PLACE);
