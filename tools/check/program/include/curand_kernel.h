// SPDX-License-Identifier: MIT
// Random numbers in kernels. All generators are Philox4x32-10: those of that name give cuRAND's
// numbers, the others numbers of their own.
#pragma once

#include "cuda_runtime.h"
#include "curand.h"

struct curandStatePhilox4_32_10 {
  uint32_t counter[4], key[2], output[4];
  uint32_t used;  // of `output`
  float normal;   // the second of a pair
  bool has_normal;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
struct curandStateXORWOW : curandStatePhilox4_32_10 {};
struct curandStateMRG32k3a : curandStatePhilox4_32_10 {};
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;
typedef curandStateMRG32k3a curandStateMRG32k3a_t;

namespace cookbook::simt::program {
/// Four numbers of the counter (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
__forceinline__ void philox(curandStatePhilox4_32_10& s) {
  uint32_t c[4] = {s.counter[0], s.counter[1], s.counter[2], s.counter[3]};
  uint32_t key[2] = {s.key[0], s.key[1]};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53u} * c[0], b = uint64_t{0xcd9e8d57u} * c[2];
    const uint32_t mixed[4] = {
        static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
        static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    for (int i = 0; i < 4; ++i) c[i] = mixed[i];
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  for (int i = 0; i < 4; ++i) s.output[i] = c[i];
}
__forceinline__ void philox_skip(curandStatePhilox4_32_10& s, uint64_t blocks) {
  const uint64_t low = (uint64_t{s.counter[1]} << 32 | s.counter[0]) + blocks;
  if (low < blocks && ++s.counter[2] == 0) ++s.counter[3];
  s.counter[0] = static_cast<uint32_t>(low);
  s.counter[1] = static_cast<uint32_t>(low >> 32);
}
}  // namespace cookbook::simt::program

__forceinline__ void curand_init(unsigned long long seed, unsigned long long sequence,
                                 unsigned long long offset, curandStatePhilox4_32_10* s) {
  curandStatePhilox4_32_10 fresh{};
  fresh.key[0] = static_cast<uint32_t>(seed);
  fresh.key[1] = static_cast<uint32_t>(seed >> 32);
  fresh.counter[2] = static_cast<uint32_t>(sequence);
  fresh.counter[3] = static_cast<uint32_t>(sequence >> 32);
  cookbook::simt::program::philox_skip(fresh, offset / 4);
  cookbook::simt::program::philox(fresh);
  fresh.used = static_cast<uint32_t>(offset % 4);
  *s = fresh;
}
__forceinline__ unsigned curand(curandStatePhilox4_32_10* s) {
  if (s->used == 4) {
    cookbook::simt::program::philox_skip(*s, 1);
    cookbook::simt::program::philox(*s);
    s->used = 0;
  }
  return s->output[s->used++];
}
/// In (0, 1].
__forceinline__ float curand_uniform(curandStatePhilox4_32_10* s) {
  return static_cast<float>(curand(s)) * 0x1p-32f + 0x1p-33f;
}
__forceinline__ double curand_uniform_double(curandStatePhilox4_32_10* s) {
  const uint64_t low = curand(s), high = curand(s);
  return static_cast<double>(low ^ high << 21) * 0x1p-53 + 0x1p-54;
}
__forceinline__ float2 curand_normal2(curandStatePhilox4_32_10* s) {
  const float u = curand_uniform(s);
  const float angle =
      static_cast<float>(curand(s)) * (0x1p-31f * 3.14159265f) + 0x1p-32f * 3.14159265f;
  const float radius = sqrtf(-2.0f * logf(u));
  return make_float2(radius * sinf(angle), radius * cosf(angle));
}
__forceinline__ float curand_normal(curandStatePhilox4_32_10* s) {
  if (s->has_normal) {
    s->has_normal = false;
    return s->normal;
  }
  const float2 both = curand_normal2(s);
  s->normal = both.y;
  s->has_normal = true;
  return both.x;
}
__forceinline__ double curand_normal_double(curandStatePhilox4_32_10* s) {
  const double u = curand_uniform_double(s), v = curand_uniform_double(s);
  return sqrt(-2.0 * log(u)) * sin(6.28318530717958648 * v);
}
__forceinline__ float curand_log_normal(curandStatePhilox4_32_10* s, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(s));
}
__forceinline__ uint4 curand4(curandStatePhilox4_32_10* s) {
  const unsigned x = curand(s), y = curand(s), z = curand(s);
  return make_uint4(x, y, z, curand(s));
}
__forceinline__ float4 curand_uniform4(curandStatePhilox4_32_10* s) {
  const float x = curand_uniform(s), y = curand_uniform(s), z = curand_uniform(s);
  return make_float4(x, y, z, curand_uniform(s));
}
__forceinline__ float4 curand_normal4(curandStatePhilox4_32_10* s) {
  const float2 a = curand_normal2(s), b = curand_normal2(s);
  return make_float4(a.x, a.y, b.x, b.y);
}
__forceinline__ double2 curand_uniform2_double(curandStatePhilox4_32_10* s) {
  const double x = curand_uniform_double(s);
  return make_double2(x, curand_uniform_double(s));
}
__forceinline__ double2 curand_normal2_double(curandStatePhilox4_32_10* s) {
  const double u = curand_uniform_double(s), v = curand_uniform_double(s);
  const double radius = sqrt(-2.0 * log(u)), angle = 6.28318530717958648 * v;
  return make_double2(radius * sin(angle), radius * cos(angle));
}
__forceinline__ double curand_log_normal_double(curandStatePhilox4_32_10* s, double mean,
                                                double deviation) {
  return exp(mean + deviation * curand_normal_double(s));
}
/// By as many uniform numbers as it takes; of a large mean the nearest normal one.
inline unsigned curand_poisson(curandStatePhilox4_32_10* s, double mean) {
  if (mean > 64) {
    const double value = rint(mean + sqrt(mean) * curand_normal_double(s));
    return value < 0 ? 0 : static_cast<unsigned>(value);
  }
  unsigned count = 0;
  for (double left = exp(-mean), product = curand_uniform_double(s); product > left; ++count) {
    product *= curand_uniform_double(s);
  }
  return count;
}
__forceinline__ void skipahead(unsigned long long n, curandStatePhilox4_32_10* s) {
  const uint64_t ahead = s->used + n;
  cookbook::simt::program::philox_skip(*s, ahead / 4);
  cookbook::simt::program::philox(*s);
  s->used = static_cast<uint32_t>(ahead % 4);
}
__forceinline__ void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10* s) {
  const uint64_t high = (uint64_t{s->counter[3]} << 32 | s->counter[2]) + n;
  s->counter[2] = static_cast<uint32_t>(high);
  s->counter[3] = static_cast<uint32_t>(high >> 32);
  cookbook::simt::program::philox(*s);
}
