// SPDX-License-Identifier: MIT
// Functions of CUDA C++ that no kernel of the book uses, with values computed by hand.
// exit: 0
// prints: 0 of 36 wrong
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>

#include "expect.cuh"

__device__ bool near(float a, float b) { return fabsf(a - b) <= 1e-5f * fabsf(b) + 1e-7f; }

__global__ void intrinsics(long long* wide, unsigned short* narrow, float4* four, int* number) {
  // 1*5 + 2*6 - 3*7 + 4*-8 + 100
  EXPECT(__dp4a(0x04fd0201, static_cast<int>(0xf8070605), 100) == 5 + 12 - 21 - 32 + 100);
  EXPECT(__dp4a(0x04030201u, 0xff070605u, 1u) == 5u + 12 + 21 + 4 * 255 + 1);
  EXPECT(__dp4a(make_char4(1, -2, 3, 4), make_char4(5, 6, 7, 8), 0) == 5 - 12 + 21 + 32);
  EXPECT(__mul24(3, -5) == -15);
  EXPECT(__umul24(0x1000003u, 4u) == 12);
  EXPECT(__mul64hi(1ll << 62, 8) == 2);
  EXPECT(__umul64hi(1ull << 63, 6) == 3);
  EXPECT(__sad(3, -4, 10u) == 17);
  EXPECT(__usad(3u, 8u, 1u) == 6);
  EXPECT(__float2uint_rz(3.9f) == 3 && __float2uint_ru(3.1f) == 4);
  EXPECT(__float2int_rn(CUDART_NAN_F) == 0 && __float2int_rn(-2.5f) == -2);
  EXPECT(__float2int_rn(3e9f) == 2147483647 && __float2int_rz(-3e9f) == -2147483647 - 1);
  EXPECT(__float2uint_rn(-1.5f) == 0 && __float2uint_rn(5e9f) == 4294967295u);
  EXPECT(__float2uint_rz(3e9f) == 3000000000u && __float2int_rd(-0.5f) == -1);
  EXPECT(__double2int_rn(2.5) == 2 && __double2int_rz(-2.7) == -2);
  EXPECT(__hiloint2double(__double2hiint(-1.25), __double2loint(-1.25)) == -1.25);
  EXPECT(near(erfinvf(0.5f), 0.476936276f));
  EXPECT(near(erfinvf(-0.999f), -2.326753766f));
  EXPECT(near(erfcinvf(1.5f), -0.476936276f));
  EXPECT(near(normcdff(1.0f), 0.841344746f));
  EXPECT(near(normcdfinvf(0.975f), 1.959963985f));
  EXPECT(isinf(erfinvf(1.0f)) && isnan(erfinvf(1.5f)));
  EXPECT(near(sinpif(0.5f), 1) && near(cospif(1), -1));
  EXPECT(near(rcbrtf(8), 0.5f) && near(rhypotf(3, 4), 0.2f) && near(norm3df(2, 3, 6), 7));
  float sine, cosine;
  __sincosf(CUDART_PI_F / 6, &sine, &cosine);
  EXPECT(near(sine, 0.5f) && near(cosine, 0.866025404f));
  EXPECT(__half2float(h2exp(__floats2half2_rn(0, 1)).y) == __half2float(__float2half(2.71828183f)));
  EXPECT(__bfloat162float(hexp2(__float2bfloat16(3.0f))) == 8.0f);
  EXPECT(__hge(__float2half(2.0f), __float2half(2.0f)) && __hne(__half(1), __half(2)));
  EXPECT(__half2float(__low2half(__lowhigh2highlow(__floats2half2_rn(1, 2)))) == 2);

  *wide = -5;
  EXPECT(atomicMax(wide, 7ll) == -5 && *wide == 7);
  EXPECT(atomicMin(wide, -9ll) == 7 && *wide == -9);
  *narrow = 3;
  EXPECT(atomicCAS(narrow, (unsigned short)3, (unsigned short)11) == 3 && *narrow == 11);
  *four = make_float4(1, 2, 3, 4);
  EXPECT(atomicAdd(four, make_float4(1, 1, 1, 1)).w == 4 && four->x == 2 && four->w == 5);
  *number = 1;
  EXPECT(atomicAdd_block(number, 2) == 1 && atomicMax_system(number, 9) == 3 && *number == 9);
  const clock_t begin = clock();
  EXPECT(clock() >= begin && clock64() != 0);
  EXPECT(__activemask() == 1u);
}

int main() {
  void* memory;
  if (cudaMalloc(&memory, 1024)) return 1;
  char* p = static_cast<char*>(memory);
  intrinsics<<<1, 1>>>((long long*)p, (unsigned short*)(p + 256), (float4*)(p + 512),
                       (int*)(p + 768));
  return any_wrong() || cudaFree(memory);
}
