// SPDX-License-Identifier: MIT
#include "tools/check/program/include/curand.h"

#include "tools/check/program/include/curand_kernel.h"
#include "tools/check/program/library_call.hpp"

struct curandGenerator_st {
  curandStatePhilox4_32_10 state;
  unsigned long long seed = 0;
  cudaStream_t stream = nullptr;
};

namespace {

using cookbook::simt::program::is_in_device_memory;
using cookbook::simt::program::LibraryCall;
using cookbook::simt::program::Place;

template <class T, class Next>
curandStatus_t generate(curandGenerator_t generator, T* to, size_t n, const char* function,
                        Place place, const Next& next) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  LibraryCall call(function, generator->stream, place);
  if (is_in_device_memory(to) && !call.writes(to, n * sizeof(T))) {
    return CURAND_STATUS_LAUNCH_FAILURE;
  }
  for (size_t i = 0; i < n; ++i) to[i] = next(&generator->state);
  return CURAND_STATUS_SUCCESS;
}

}  // namespace

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t) {
  *generator = new curandGenerator_st;
  return curandSetGeneratorOffset(*generator, 0);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return curandCreateGenerator(generator, type);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                  unsigned long long seed) {
  generator->seed = seed;
  return curandSetGeneratorOffset(generator, 0);
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  curand_init(generator->seed, 0, offset, &generator->state);
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* to, size_t n, Place place) {
  return generate(generator, to, n, "curandGenerate", place, [](auto* s) { return curand(s); });
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* to, size_t n,
                                     Place place) {
  return generate(generator, to, n, "curandGenerateUniform", place,
                  [](auto* s) { return curand_uniform(s); });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* to, size_t n,
                                           Place place) {
  return generate(generator, to, n, "curandGenerateUniformDouble", place,
                  [](auto* s) { return curand_uniform_double(s); });
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* to, size_t n, float mean,
                                    float deviation, Place place) {
  return generate(generator, to, n, "curandGenerateNormal", place,
                  [=](auto* s) { return mean + deviation * curand_normal(s); });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* to, size_t n,
                                          double mean, double deviation, Place place) {
  return generate(generator, to, n, "curandGenerateNormalDouble", place,
                  [=](auto* s) { return mean + deviation * curand_normal_double(s); });
}
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* to, size_t n,
                                      Place place) {
  return generate(generator, to, n, "curandGenerateLongLong", place, [](auto* s) {
    const unsigned long long low = curand(s);
    return low | static_cast<unsigned long long>(curand(s)) << 32;
  });
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* to, size_t n, float mean,
                                       float deviation, Place place) {
  return generate(generator, to, n, "curandGenerateLogNormal", place,
                  [=](auto* s) { return curand_log_normal(s, mean, deviation); });
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* to, size_t n,
                                             double mean, double deviation, Place place) {
  return generate(generator, to, n, "curandGenerateLogNormalDouble", place,
                  [=](auto* s) { return curand_log_normal_double(s, mean, deviation); });
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* to, size_t n,
                                     double mean, Place place) {
  return generate(generator, to, n, "curandGeneratePoisson", place,
                  [=](auto* s) { return curand_poisson(s, mean); });
}
