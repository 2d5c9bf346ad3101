// SPDX-License-Identifier: MIT
// cuRAND: numbers of Philox4x32-10 for a seed of 0 (known answers of its authors), means of
// uniform and normal numbers in a kernel and by the host, and a buffer that is too small.
// exit: 1
// prints: 6627e8d5 e169c58d bc57ac4c 9b00dbd8, 0 wrong
#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <cstdio>

__global__ void draw(unsigned* first, float* sums) {
  curandStatePhilox4_32_10_t exact;
  curand_init(0, 0, 0, &exact);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) first[i] = curand(&exact);
  }
  curandState state;
  curand_init(1234, threadIdx.x, 0, &state);
  float uniform = 0, normal = 0, squares = 0;
  for (int i = 0; i < 64; ++i) {
    const float u = curand_uniform(&state), x = curand_normal(&state);
    uniform += u, normal += x, squares += x * x;
  }
  atomicAdd(&sums[0], uniform);
  atomicAdd(&sums[1], normal);
  atomicAdd(&sums[2], squares);
}

int main() {
  unsigned* first;
  float *sums, *x, host[1000];
  if (cudaMallocManaged(&first, 16) || cudaMallocManaged(&sums, 12)) return 2;
  if (cudaMalloc(&x, 4000)) return 2;
  for (int i = 0; i < 3; ++i) sums[i] = 0;
  draw<<<1, 128>>>(first, sums);
  if (cudaDeviceSynchronize()) return 2;
  int wrong = fabsf(sums[0] / 8192 - 0.5f) > 0.02f;
  wrong += fabsf(sums[1] / 8192) > 0.05f;
  wrong += fabsf(sums[2] / 8192 - 1) > 0.08f;
  curandGenerator_t generator;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandSetPseudoRandomGeneratorSeed(generator, 7);
  curandGenerateNormal(generator, x, 1000, 3.0f, 0.5f);
  if (cudaMemcpy(host, x, 4000, cudaMemcpyDeviceToHost)) return 2;
  float mean = 0;
  for (const float value : host) mean += value / 1000;
  wrong += fabsf(mean - 3) > 0.1f;
  curandGenerateUniform(generator, x, 1001);  // finds: out-of-bounds
  printf("%08x %08x %08x %08x, %d wrong\n", first[0], first[1], first[2], first[3], wrong);
  curandDestroyGenerator(generator);
  return cudaFree(first) || cudaFree(sums) || cudaFree(x);
}
