// SPDX-License-Identifier: MIT
// The functions of CUDA C++ that neither the book nor intrinsics.cu uses, with values computed by
// hand. Every argument is asymmetric, so that exchanged arguments or halves are seen.
// exit: 0
// prints: 0 of 189 wrong
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cuda/std/limits>
#include <cuda/std/tuple>

#include "expect.cuh"

__device__ bool near(double a, double b, double relative) {
  return fabs(a - b) <= relative * fabs(b) + 1e-30;
}
__device__ bool near_float(float a, float b) { return near(a, b, 1e-6); }

__global__ void integers() {
  EXPECT(__popcll(0xf000000000000001ull) == 5);
  EXPECT(__clz(0) == 32 && __clz(1) == 31 && __clz(-1) == 0);
  EXPECT(__clzll(0) == 64 && __clzll(1ll << 40) == 23 && __clzll(-1) == 0);
  EXPECT(__ffsll(0) == 0 && __ffsll(1ll << 40) == 41 && __ffsll(-1) == 1);
  EXPECT(__brevll(0x0000000000000013ull) == 0xc800000000000000ull);
  EXPECT(__brevll(1ull << 40) == 1ull << 23);
  EXPECT(__mulhi(-3, 1 << 30) == -1 && __mulhi(1 << 30, 12) == 3);
  EXPECT(__umulhi(0xffffffffu, 7u) == 6 && __umulhi(0x80000000u, 6u) == 3);
  EXPECT(__funnelshift_l(0x89abcdefu, 0x01234567u, 20) == 0x56789abcu);
  EXPECT(__funnelshift_l(0x89abcdefu, 0x01234567u, 32) == 0x01234567u);
  EXPECT(__funnelshift_r(0x89abcdefu, 0x01234567u, 20) == 0x3456789au);
  EXPECT(__funnelshift_r(0x89abcdefu, 0x01234567u, 32) == 0x89abcdefu);
}

__global__ void reinterpretations() {
  EXPECT(__float_as_uint(-2.0f) == 0xc0000000u && __uint_as_float(0x3fc00000u) == 1.5f);
  EXPECT(__double_as_longlong(-2.0) == static_cast<long long>(0xc000000000000000ull));
  EXPECT(__longlong_as_double(0x3ff8000000000000ll) == 1.5);
}

/// `value`, which the compiler does not know.
template <class T>
__device__ T unknown(T value) {
  volatile T copy = value;
  return copy;
}

// The nearest number that there is; NaN gives 0, and the highest bit alone where either type has 64
// bits (PTX ISA, "cvt").
__global__ void conversions_out_of_range() {
  constexpr int kMost = 2147483647, kLeast = -kMost - 1;
  constexpr long long kMost64 = 9223372036854775807ll, kLeast64 = -kMost64 - 1;
  const float infinite = unknown(INFINITY), nan = unknown(NAN);
  const double wide_nan = unknown(static_cast<double>(NAN));
  EXPECT(__float2ll_rn(unknown(0x1p63f)) == kMost64 && __float2ll_rn(infinite) == kMost64);
  EXPECT(__float2ll_rn(unknown(0x1.fffffep62f)) == kMost64 - 0x7fffffffffll);
  EXPECT(__float2ll_rn(unknown(-0x1p80f)) == kLeast64 && __float2ll_rn(nan) == kLeast64);
  EXPECT(__float2ll_rz(infinite) == kMost64 && __float2ll_rz(-infinite) == kLeast64 &&
         __float2ll_rz(nan) == kLeast64);
  EXPECT(__double2int_rn(unknown(2147483647.5)) == kMost &&
         __double2int_rn(unknown(-1e300)) == kLeast);
  EXPECT(__double2int_rn(unknown(2147483646.5)) == kMost - 1 &&
         __double2int_rn(wide_nan) == kLeast);
  EXPECT(__double2int_rz(unknown(2147483648.0)) == kMost &&
         __double2int_rz(unknown(-2147483648.9)) == kLeast && __double2int_rz(wide_nan) == kLeast);
  EXPECT(__float2int_rn(infinite) == kMost && __float2int_rn(-infinite) == kLeast &&
         __float2int_rn(nan) == 0);
  EXPECT(__float2int_rz(unknown(3e9f)) == kMost && __float2int_rz(nan) == 0);
  EXPECT(__float2uint_rz(infinite) == 0xffffffffu && __float2uint_rz(-infinite) == 0 &&
         __float2uint_rz(nan) == 0 && __float2uint_rz(unknown(4e9f)) == 4000000000u);
  const __half infinite_16(infinite), nan_16(nan);
  EXPECT(__half2int_rn(infinite_16) == kMost && __half2int_rn(-infinite_16) == kLeast &&
         __half2int_rn(nan_16) == 0);
  EXPECT(__half2int_rz(infinite_16) == kMost && __half2int_rz(-infinite_16) == kLeast &&
         __half2int_rz(nan_16) == 0 && __half2int_rz(__half(65504)) == 65504);
}

__global__ void conversions() {
  EXPECT(__float2int_ru(2.1f) == 3 && __float2int_ru(-2.9f) == -2 &&
         __float2int_ru(4e9f) == 2147483647);
  EXPECT(__float2uint_rd(2.9f) == 2 && __float2uint_rd(-0.1f) == 0);
  EXPECT(__int2float_rn(16777217) == 16777216.0f && __int2float_rn(-16777219) == -16777220.0f);
  EXPECT(__uint2float_rn(0xffffffffu) == 4294967296.0f);
  EXPECT(__float2ll_rn(2.5f) == 2 && __float2ll_rn(-3.5f) == -4 &&
         __float2ll_rn(0x1p40f) == 1ll << 40);
  EXPECT(__float2ll_rz(2.9f) == 2 && __float2ll_rz(-2.9f) == -2);
  EXPECT(__ll2float_rn((1ll << 40) + 1) == 0x1p40f && __ll2float_rn(-3) == -3.0f);
  EXPECT(__ull2float_rn(0xffffffffffffffffull) == 0x1p64f);
  EXPECT(__double2float_rn(1.0 + 0x1p-24 + 0x1p-50) == 1.0f + 0x1p-23f);
  EXPECT(__int2double_rn(-7) == -7.0 && __uint2double_rn(0xffffffffu) == 4294967295.0);
  EXPECT(__ll2double_rn((1ll << 60) + 1) == 0x1p60);
}

/// 1 + 2^-24 - 2^-60 lies between 1 and the next float, and so do the others between two numbers.
__global__ void directions() {
  const float one = unknown(1.0f), tiny = unknown(0x1p-60f), third = unknown(3.0f);
  EXPECT(__fadd_rd(one, tiny) == 1.0f && __fadd_ru(one, tiny) == 1.0f + 0x1p-23f &&
         __fadd_rz(-one, -tiny) == -1.0f && __fadd_rd(-one, -tiny) == -1.0f - 0x1p-23f);
  EXPECT(__fsub_rd(one, tiny) == 1.0f - 0x1p-24f && __fsub_ru(one, tiny) == 1.0f);
  EXPECT(__fdiv_ru(one, third) - __fdiv_rd(one, third) == 0x1p-25f &&
         __fdiv_rz(-one, third) > -1.0f / 3);
  EXPECT(__frcp_ru(third) > __frcp_rz(third) &&
         __fsqrt_rd(unknown(2.0f)) < __fsqrt_ru(unknown(2.0f)));
  EXPECT(__fmul_ru(third, unknown(1.0f + 0x1p-23f)) - __fmul_rd(third, unknown(1.0f + 0x1p-23f)) ==
         0x1p-22f);
  EXPECT(__fmaf_rz(one, one, -tiny) == 1.0f - 0x1p-24f && __fmaf_ieee_ru(one, one, -tiny) == 1.0f);
  EXPECT(__dadd_ru(1.0, unknown(0x1p-80)) == 1.0 + 0x1p-52 &&
         __dsub_rz(1.0, unknown(0x1p-80)) == 1.0 - 0x1p-53);
  EXPECT(__ddiv_rd(1.0, unknown(3.0)) < __ddiv_ru(1.0, unknown(3.0)) &&
         __dsub_rn(2.0, 5.0) == -3.0);
  EXPECT(__fma_rd(1.0, 1.0, unknown(-0x1p-80)) < 1.0 &&
         __dsqrt_ru(unknown(2.0)) > __dsqrt_rz(unknown(2.0)));
  EXPECT(__int2float_rd(unknown(16777217)) == 16777216.0f &&
         __int2float_ru(unknown(16777217)) == 16777218.0f);
  EXPECT(__uint2float_rz(unknown(0xffffffffu)) == 4294967040.0f &&
         __ull2float_ru(unknown(~0ull)) == 0x1p64f);
  EXPECT(__ll2float_rz(unknown(-16777217ll)) == -16777216.0f &&
         __double2float_rd(unknown(0.1)) < 0.1 && __double2float_ru(unknown(0.1)) > 0.1);
  EXPECT(__ll2double_rd(unknown((1ll << 60) + 1)) == 0x1p60 &&
         __ull2double_ru(unknown(~0ull)) == 0x1p64 && __ull2double_rn(unknown(3ull)) == 3);
  EXPECT(__double2uint_ru(2.1) == 3 && __double2uint_rd(-0.5) == 0 && __double2int_rd(-2.5) == -3);
  EXPECT(__double2ll_ru(unknown(-2.5)) == -2 && __double2ull_rz(unknown(1e30)) == ~0ull &&
         __float2ull_rd(2.9f) == 2 && __float2ll_ru(2.1f) == 3);
  EXPECT(float(__float2half_ru(unknown(2049.0f))) == 2050 &&
         float(__float2half_rd(unknown(-2049.0f))) == -2050 &&
         float(__float2half_rz(unknown(1e6f))) == 65504 &&
         float(__float2half_rd(unknown(-1e-9f))) == -0x1p-24f);
  EXPECT(float(__float2bfloat16_rz(unknown(-257.0f))) == -256 &&
         float(__ll2bfloat16_ru(unknown((1ll << 60) + 1))) == 0x1p60f * 1.0078125f);
  EXPECT(__half2short_rz(__half(-2.5f)) == -2 && __half2ushort_ru(__half(-2.5f)) == 0 &&
         __half2ull_rn(__half(3.5f)) == 4 && __bfloat162char_rz(__nv_bfloat16(300.0f)) == 127 &&
         __bfloat162int_rn(__nv_bfloat16(-2.5f)) == -2);
}

// Of 16 and of 8 bits: the values of each part, from the highest, are in the comments.
__global__ void packed() {
  const unsigned a = unknown(0x7fff8001u), b = unknown(0x00020003u);  // 32767, -32767 and 2, 3
  EXPECT(__vadd2(a, b) == 0x80018004u && __vaddss2(a, b) == 0x7fff8004u &&
         __vsub2(b, a) == 0x80038002u);
  EXPECT(__vsubss2(a, b) == 0x7ffd8000u && __vaddus2(0xfffe0001u, b) == 0xffff0004u &&
         __vsubus2(b, 0x00030001u) == 2u);
  EXPECT(__vmaxs2(a, b) == 0x7fff0003u && __vmaxu2(a, b) == 0x7fff8001u &&
         __vmins2(a, b) == 0x00028001u && __vminu2(a, b) == b);
  EXPECT(__vabs2(0x8000fffeu) == 0x80000002u && __vabsss2(0x8000fffeu) == 0x7fff0002u &&
         __vneg2(b) == 0xfffefffdu);
  EXPECT(__vcmplts2(a, b) == 0x0000ffffu && __vcmpltu2(a, b) == 0 &&
         __vsetgeu2(a, b) == 0x00010001u && __vseteq2(b, b) == 0x00010001u);
  const unsigned c = unknown(0x80ff7f01u),
                 d = unknown(0x01020304u);  // -128, -1, 127, 1 and 1, 2, 3, 4
  EXPECT(__vadd4(c, d) == 0x81018205u && __vaddus4(c, d) == 0x81ff8205u &&
         __vsubss4(c, d) == 0x80fd7cfdu);
  EXPECT(__vabsdiffs4(c, d) == 0x81037c03u && __vabsdiffu4(c, d) == 0x7ffd7c03u);
  EXPECT(__vsads4(c, d) == 129 + 3 + 124 + 3 && __vsadu4(c, d) == 127 + 253 + 124 + 3);
  EXPECT(__vavgu4(c, d) == 0x41814103u && __vhaddu4(c, d) == 0x40804102u &&
         __vavgs4(c, d) == 0xc0014103u);
  EXPECT(__vcmpgts4(c, d) == 0x0000ff00u && __vsetne4(c, 0x80ff0001u) == 0x00000100u &&
         __vnegss4(c) == 0x7f0181ffu);
  EXPECT(__vimax3_s32(-5, -3, -4) == -3 && __vimin3_u32(5u, ~0u, 7u) == 5 &&
         __vimax3_s32_relu(-5, -3, -4) == 0);
  EXPECT(__viaddmax_s32(2, 3, 4) == 5 && __viaddmin_s32_relu(2, -9, 4) == 0 &&
         __viaddmax_u16x2(a, b, 0xff008000u) == 0xff008004u);
  EXPECT(__vimin_s16x2_relu(a, b) == 0x00020000u && __vimax3_s16x2(a, b, 0) == 0x7fff0003u);
  bool upper, lower;
  EXPECT(__vibmax_s16x2(a, b, &upper, &lower) == 0x7fff0003u && upper && !lower);
  EXPECT(__vibmin_u32(3u, 2u, &upper) == 2 && !upper && __vibmax_s32(-1, -2, &lower) == -1 &&
         lower);
  EXPECT(__dp2a_lo(static_cast<int>(0xfffe0003), 0x0506ff04, 1) == 3 * 4 + -2 * -1 + 1 &&
         __dp2a_hi(0x00020003u, 0x0506ff04u, 0u) == 3 * 6 + 2 * 5);
  EXPECT(__hadd(-3, 2) == -1 && __rhadd(-3, 2) == 0 && __uhadd(~0u, 2u) == 0x80000000u &&
         __urhadd(1u, 2u) == 2);
  EXPECT(__funnelshift_lc(1u, 2u, 40) == 1 && __funnelshift_rc(1u, 2u, 40) == 2 &&
         umax(1u, ~0u) == ~0u && llmin(-1ll, 1ll) == -1);
  EXPECT(__fns(0xaau, 0, 1) == 1 && __fns(0xaau, 2, 2) == 5 && __fns(0xaau, 6, -2) == 3 &&
         __fns(0xaau, 0, 5) == ~0u && __fns(0xaau, 3, 0) == 3);
}

__global__ void arithmetic() {
  EXPECT(__fadd_rn(1.0f, 0x1p-24f) == 1.0f && __fsub_rn(1.0f, 3.0f) == -2.0f);
  EXPECT(__fmul_rn(3.0f, -0.5f) == -1.5f && __fdiv_rn(3.0f, 2.0f) == 1.5f);
  EXPECT(__frcp_rn(8.0f) == 0.125f && __fsqrt_rn(9.0f) == 3.0f && __frsqrt_rn(16.0f) == 0.25f);
  EXPECT(__fdividef(3.0f, 2.0f) == 1.5f && fdividef(1.0f, 4.0f) == 0.25f && rsqrt(4.0) == 0.5);
  EXPECT(__dadd_rn(1.0, 0x1p-53) == 1.0 && __dmul_rn(3.0, -0.5) == -1.5 &&
         __ddiv_rn(3.0, 2.0) == 1.5);
  // The product is not rounded before the sum: 1 - 2^-60 would be 1.
  EXPECT(__fma_rn(1.0 + 0x1p-30, 1.0 - 0x1p-30, -1.0) == -0x1p-60);
  EXPECT(__drcp_rn(8.0) == 0.125 && __dsqrt_rn(9.0) == 3.0);
  EXPECT(near_float(__exp10f(2.0f), 100.0f) && near_float(__powf(2.0f, 10.0f), 1024.0f));
  EXPECT(near_float(__logf(2.0f), 0.693147181f) && near_float(__log2f(8.0f), 3.0f));
  EXPECT(near_float(__log10f(1000.0f), 3.0f) && near_float(__tanf(0.5f), 0.546302490f));
  EXPECT(near_float(__sinf(0.5f), 0.479425539f) && near_float(__cosf(0.5f), 0.877582562f));
  EXPECT(near(sinpi(0.25), 0.70710678118654752, 1e-14) &&
         near(cospi(1.75), 0.70710678118654752, 1e-14));
  EXPECT(near(normcdf(-1.0), 0.15865525393145705, 1e-13));
  EXPECT(near(normcdfinv(0.025), -1.9599639845400543, 1e-12));
  EXPECT(near(erfinv(0.25), 0.22531205501217808, 1e-12) &&
         near(erfcinv(0.25), 0.81341984759761854, 1e-12));
  EXPECT(near_float(rnorm3df(2, 3, 6), 1.0f / 7) && near_float(norm4df(2, 4, 5, 6), 9));
  const double values[] = {2, 3, 6};
  EXPECT(norm(3, values) == 7 && near(rnorm(3, values), 1.0 / 7, 1e-15) && rhypot(3, 4) == 0.2 &&
         rcbrt(8) == 0.5);
  double sine, cosine;
  sincospi(0.5, &sine, &cosine);
  EXPECT(sine == 1 && near(cosine + 1, 1, 1e-15));
  EXPECT(near(erfcx(1.0), 0.42758357615580701, 1e-14) &&
         near(erfcx(50.0), 0.011281536265323773, 1e-9));
  EXPECT(near(cyl_bessel_i0(1.0), 1.2660658777520084, 1e-14) &&
         near(cyl_bessel_i1(-1.0), -0.56515910399248503, 1e-14));
}

template <class T, class T2>
__device__ void arithmetic_16(T2 pair) {  // pair: (2, -3)
  const T two(2.0f), three(3.0f), minus(-3.0f), nan(NAN), big(INFINITY);
  EXPECT(float(__hadd(two, three)) == 5 && float(__hsub(two, three)) == -1);
  EXPECT(float(__hmul(two, minus)) == -6 && float(__hdiv(three, two)) == 1.5f);
  EXPECT(float(__hneg(three)) == -3 && float(__habs(minus)) == 3);
  EXPECT(float(__hfma(two, three, minus)) == 3);
  EXPECT(__hisnan(nan) && !__hisnan(two) && __hisinf(big) == 1 && __hisinf(-big) == -1 &&
         !__hisinf(two));
  EXPECT(__heq(two, two) && !__heq(two, three) && !__heq(nan, nan));
  EXPECT(__hlt(minus, two) && !__hlt(two, two) && __hgt(three, two) && !__hgt(two, two));
  EXPECT(__hle(two, two) && __hle(minus, two) && !__hle(three, two));
  EXPECT(float(__hmax(nan, two)) == 2 && float(__hmin(two, nan)) == 2 &&
         float(__hmin(two, minus)) == -3);
  EXPECT(float(hexp10(two)) == 100 && float(hlog2(T(8.0f))) == 3 && float(hlog10(T(100.0f))) == 2);
  EXPECT(near(float(hlog(three)), 1.0986123, 0.004) && near(float(hexp(two)), 7.3890561, 0.004));
  EXPECT(near(float(hsin(two)), 0.9092974, 0.004) && near(float(hcos(two)), -0.4161468, 0.004));
  EXPECT(float(hrcp(two)) == 0.5f && float(hrsqrt(T(4.0f))) == 0.5f && float(hsqrt(T(9.0f))) == 3);
  EXPECT(float(hfloor(T(-1.5f))) == -2 && float(hceil(T(-1.5f))) == -1 &&
         float(htrunc(T(-1.5f))) == -1);
  EXPECT(float(hrint(T(2.5f))) == 2 && float(hrint(T(3.5f))) == 4);
  EXPECT(float(__hadd_sat(two, three)) == 1 && float(__hadd_sat(two, minus)) == 0);
  EXPECT(float(__hmul_sat(T(0.5f), T(0.5f))) == 0.25f && float(__hmul_sat(two, two)) == 1);
  EXPECT(float(__hfma_sat(two, T(0.25f), T(0.25f))) == 0.75f &&
         float(__hfma_sat(two, minus, two)) == 0);
  EXPECT(float(__hfma_relu(two, minus, two)) == 0 && float(__hfma_relu(two, three, minus)) == 3);
  EXPECT(__hisnan(__hfma_relu(nan, two, two)) && __hisnan(__hfma_relu(big, two, -big)) &&
         float(__hfma_relu(-big, two, two)) == 0);

  EXPECT(__hisnan(__hmax_nan(nan, two)) && float(__hmin_nan(two, minus)) == -3);
  EXPECT(__hltu(nan, two) && !__hltu(three, two) && float(__hsub_sat(three, two)) == 1);
  EXPECT(near(float(htanh(T(0.5f))), 0.46211716, 0.004) &&
         near(float(htanh_approx(T(0.5f))), 0.46211716, 0.004));

  const T2 other(T(5.0f), T(7.0f));
  const auto holds = [](T2 value, float x, float y) {
    return float(value.x) == x && float(value.y) == y;
  };
  EXPECT(holds(__hadd2(pair, other), 7, 4) && holds(__hsub2(pair, other), -3, -10));
  EXPECT(holds(__hmul2(pair, other), 10, -21) && holds(__hfma2(pair, other, pair), 12, -24));
  EXPECT(holds(__hneg2(pair), -2, 3) && holds(__habs2(pair), 2, 3));
  EXPECT(holds(__hmax2(pair, T2(three, minus)), 3, -3) && holds(__hmin2(pair, other), 2, -3));
  EXPECT(__low2float(pair) == 2 && __high2float(pair) == -3);
  EXPECT(holds(__hlt2(pair, T2(three, minus)), 1, 0) &&
         __hle2_mask(pair, T2(minus, minus)) == 0xffff0000u);
  EXPECT(__hbgt2(other, pair) && !__hbgt2(pair, T2(minus, minus)) &&
         !__hbne2(pair, T2(two, three)) && holds(__hequ2(T2(nan, two), pair), 1, 0));
  // (2 - 3i)(5 + 7i) + (2 - 3i)
  EXPECT(holds(__hcmadd(pair, other, pair), 33, -4) &&
         holds(__hfma2_relu(pair, other, pair), 12, 0));
  EXPECT(holds(h2floor(T2(T(1.5f), T(-1.5f))), 1, -2) &&
         holds(h2log10(T2(T(100.0f), T(10.0f))), 2, 1));
  EXPECT(holds(h2exp2(pair), 4, 0.125f) && holds(h2rcp(T2(two, T(4.0f))), 0.5f, 0.25f));
  EXPECT(holds(h2sqrt(T2(T(4.0f), T(9.0f))), 2, 3) &&
         holds(h2rsqrt(T2(T(4.0f), T(16.0f))), 0.5f, 0.25f));
  EXPECT(near(float(h2log(other).x), 1.6094379, 0.004) &&
         near(float(h2log(other).y), 1.9459101, 0.004));
}

__global__ void numbers_16() {
  arithmetic_16<__half>(__floats2half2_rn(2, -3));
  arithmetic_16<__nv_bfloat16>(__floats2bfloat162_rn(2, -3));

  const __half2 pair = make_half2(__half(2), __half(-3)),
                other = __halves2half2(__half(5), __half(7));
  const auto holds = [](__half2 value, float x, float y) {
    return float(value.x) == x && float(value.y) == y;
  };
  EXPECT(holds(__low2half2(pair), 2, 2) && holds(__high2half2(pair), -3, -3));
  EXPECT(holds(__lows2half2(pair, other), 2, 5) && holds(__highs2half2(pair, other), -3, 7));
  EXPECT(float(__low2half(pair)) == 2 && float(__high2half(pair)) == -3);
  EXPECT(holds(__half2half2(__half(6)), 6, 6) && holds(__float22half2_rn(make_float2(1, 4)), 1, 4));
  EXPECT(__half2int_rn(__half(-2.5f)) == -2 && __half2int_rn(__half(3.5f)) == 4);
  EXPECT(__half2int_rz(__half(-2.75f)) == -2);
  EXPECT(float(__short2half_rn(-2049)) == -2048 && float(__uint2half_rn(2051u)) == 2052);
  EXPECT(float(__int2half_rn(-7)) == -7 &&
         float(__double2half(1.0 + 0x1p-11 + 0x1p-40)) == 1.0f + 0x1p-10f);
  EXPECT(__half_as_short(__half(-2)) == static_cast<short>(0xc000) &&
         __half_as_ushort(__half(1)) == 0x3c00);
  EXPECT(float(__short_as_half(static_cast<short>(0xc000))) == -2 &&
         float(__ushort_as_half(0x3c00)) == 1);

  const __nv_bfloat162 b = make_bfloat162(__nv_bfloat16(2), __nv_bfloat16(-3));
  EXPECT(float(__low2bfloat16(b)) == 2 && float(__high2bfloat16(b)) == -3);
  EXPECT(float(__halves2bfloat162(b.y, b.x).x) == -3 && float(__float2bfloat162_rn(4).y) == 4);
  EXPECT(float(__float22bfloat162_rn(make_float2(1, 4)).x) == 1);
  EXPECT(float(__double2bfloat16(1.0 + 0x1p-8 + 0x1p-40)) == 1.0f + 0x1p-7f);
  EXPECT(float(__int2bfloat16_rn(-259)) == -260 && float(__ushort_as_bfloat16(0xc000)) == -2);
}

__global__ void numbers_8() {
  EXPECT(__nv_cvt_float_to_fp8(-1.5f, __NV_SATFINITE, __NV_E4M3) == 0xbc &&
         __nv_cvt_float_to_fp8(-1.5f, __NV_SATFINITE, __NV_E5M2) == 0xbe);
  EXPECT(__nv_cvt_float_to_fp8(1e6f, __NV_SATFINITE, __NV_E4M3) == 0x7e &&
         __nv_cvt_float_to_fp8(1e6f, __NV_NOSAT, __NV_E4M3) == 0x7f &&
         __nv_cvt_float_to_fp8(-1e6f, __NV_NOSAT, __NV_E5M2) == 0xfc);
  const float2 two = make_float2(1.0f, -2.0f);
  EXPECT(__nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, __NV_E4M3) == 0xc038 &&
         __nv_cvt_fp8x2_to_halfraw2(0xc038, __NV_E4M3).y == 0xc000);
  const auto pair = cuda::std::make_tuple(1, cuda::std::numeric_limits<unsigned short>::max());
  EXPECT(cuda::std::get<1>(pair) == 65535);
}

__global__ void vectors() {
  const uint3 a = make_uint3(1, 2, 3);
  const int3 b = make_int3(-1, -2, -3);
  const float3 c = make_float3(0.5f, 1.5f, 2.5f);
  EXPECT(a.x == 1 && a.y == 2 && a.z == 3 && b.x == -1 && b.y == -2 && b.z == -3);
  EXPECT(c.x == 0.5f && c.y == 1.5f && c.z == 2.5f);
}

__global__ void warp(unsigned* out) {
  const unsigned lane = threadIdx.x;
  // Lane l has all bits but bit l, or only bit l.
  const unsigned ands = __reduce_and_sync(0xffffffffu, lane == 0 ? ~0u : ~(1u << lane));
  const unsigned ors = __reduce_or_sync(0xffffffffu, lane < 16 ? 1u << lane : 0u);
  __threadfence_system();
  if (lane == 31) out[0] = ands, out[1] = ors;
}

__global__ void caches(int* values) {
  __stwb(values, 5);
  __stwt(values + 1, 6);
  EXPECT(__ldca(values) == 5 && __ldlu(values + 1) == 6 && __ldcv(values) == 5);
}

int main() {
  integers<<<1, 1>>>();
  reinterpretations<<<1, 1>>>();
  conversions<<<1, 1>>>();
  conversions_out_of_range<<<1, 1>>>();
  directions<<<1, 1>>>();
  packed<<<1, 1>>>();
  arithmetic<<<1, 1>>>();
  numbers_16<<<1, 1>>>();
  numbers_8<<<1, 1>>>();
  vectors<<<1, 1>>>();
  unsigned* memory;
  if (cudaMalloc(&memory, 16)) return 1;
  warp<<<1, 32>>>(memory);
  unsigned reduced[2] = {};
  if (cudaMemcpy(reduced, memory, sizeof reduced, cudaMemcpyDeviceToHost)) return 1;
  caches<<<1, 1>>>(reinterpret_cast<int*>(memory) + 2);
  return any_wrong(2, (reduced[0] != 1) + (reduced[1] != 0xffff)) || cudaFree(memory);
}
