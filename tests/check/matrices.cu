// SPDX-License-Identifier: MIT
// Tensor cores: nvcuda::wmma, and mma.sync of bytes and with fp16 results.
// exit: 0
// prints: 0 wrong
#include <mma.h>

#include <cstdint>
#include <cstdio>

namespace wmma = nvcuda::wmma;

template <class Sum>
__global__ void fragments(const half* a, const half* b, Sum* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fragment_a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fragment_b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sums;
  wmma::fill_fragment(sums, Sum(1.0f));
  wmma::load_matrix_sync(fragment_a, a, 16);  // finds: uncoalesced
  wmma::load_matrix_sync(fragment_b, b, 16);  // finds: uncoalesced
  wmma::mma_sync(sums, fragment_a, fragment_b, sums);
  wmma::store_matrix_sync(c, sums, 16, wmma::mem_row_major);  // finds: uncoalesced
}

/// The left half of the same product, and that of bytes.
__global__ void registers(const uint32_t* a, const uint32_t* b, uint32_t* c,
                          const uint32_t* bytes_a, const uint32_t* bytes_b, int* sums) {
  const unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
  uint32_t d[2] = {0x3c003c00, 0x3c003c00};  // ones
  asm volatile(                              // finds: uncoalesced
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, "
      "{%0, %1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[8 * g + t]), "r"(a[8 * (g + 8) + t]), "r"(a[8 * g + t + 4]),
        "r"(a[8 * (g + 8) + t + 4]), "r"(b[8 * g + t]), "r"(b[8 * g + t + 4]));
  c[4 * g + t] = d[0];
  c[4 * (g + 8) + t] = d[1];
  int s[4] = {};
  asm volatile(  // finds: uncoalesced
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};"
      : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
      : "r"(bytes_a[8 * g + t]), "r"(bytes_a[8 * (g + 8) + t]), "r"(bytes_a[8 * g + t + 4]),
        "r"(bytes_a[8 * (g + 8) + t + 4]), "r"(bytes_b[8 * g + t]), "r"(bytes_b[8 * g + t + 4]));
  for (unsigned i = 0; i < 4; ++i)
    sums[8 * (g + i / 2 * 8) + 2 * t + i % 2] = s[i];  // finds: uncoalesced
}

/// nvcc aligns arrays so that this works.
__global__ void vectors(int4* out) {
  __shared__ char one[1];
  __shared__ half many[8];
  one[0] = 0;
  *reinterpret_cast<int4*>(many) = make_int4(1, 2, 3, 4);
  *out = *reinterpret_cast<int4*>(many);
}

struct Data {
  half a[256], b[256], of_half[256], left[128];
  float of_float[256];
  int8_t bytes_a[512], bytes_b[256];
  int sums[128];
  int4 four;
};

int main() {
  Data* data;
  if (cudaMallocManaged(&data, sizeof(Data))) return 1;
  for (int i = 0; i < 256; ++i) data->a[i] = float(i % 11 - 5), data->b[i] = float(i % 7 - 3);
  for (int i = 0; i < 512; ++i) data->bytes_a[i] = int8_t(37 * i), data->bytes_b[i / 2] = int8_t(i);
  fragments<<<1, 32>>>(data->a, data->b, data->of_float);
  fragments<<<1, 32>>>(data->a, data->b, data->of_half);
  registers<<<1, 32>>>((uint32_t*)data->a, (uint32_t*)data->b, (uint32_t*)data->left,
                       (uint32_t*)data->bytes_a, (uint32_t*)data->bytes_b, data->sums);
  vectors<<<1, 1>>>(&data->four);
  if (cudaDeviceSynchronize()) return 1;
  int wrong = data->four.w != 4;
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      float sum = 1;
      int of_bytes = 0;
      for (int k = 0; k < 16; ++k) sum += float(data->a[16 * m + k]) * float(data->b[16 * n + k]);
      wrong += data->of_float[16 * m + n] != sum;
      wrong += float(data->of_half[16 * m + n]) != sum;
      if (n >= 8) continue;
      for (int k = 0; k < 32; ++k)
        of_bytes += data->bytes_a[32 * m + k] * data->bytes_b[32 * n + k];
      wrong += float(data->left[8 * m + n]) != sum;
      wrong += data->sums[8 * m + n] != of_bytes;
    }
  }
  printf("%d wrong\n", wrong);
  return cudaFree(data) || wrong;
}
