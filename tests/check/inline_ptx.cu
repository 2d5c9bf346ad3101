// SPDX-License-Identifier: MIT
// Instructions of inline PTX that need no GPU of a certain age: each against what C++ says.
// exit: 0
// prints: 0 of 833 wrong
#include "expect.cuh"

__device__ unsigned add(unsigned a, unsigned b) {
  unsigned sum;
  asm("add.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
}

__global__ void integers(unsigned* flag) {
  const int i = static_cast<int>(threadIdx.x) - 16;
  const auto u = static_cast<unsigned>(i);
  unsigned r, s;
  unsigned long long w;
  EXPECT(add(u, 5) == u + 5);
  asm("{\n.reg .u32 t;\nmul.lo.u32 t, %1, 3;\nsub.s32 %0, t, %1;\n}" : "=r"(r) : "r"(u));
  EXPECT(r == 2 * u);
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(i), "n"(-7), "r"(9));
  EXPECT(static_cast<int>(r) == -7 * i + 9);
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(w) : "r"(i), "r"(1 << 30));
  EXPECT(static_cast<long long>(w) == static_cast<long long>(i) * (1 << 30));
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(r) : "r"(u), "r"(0x80000000u));
  EXPECT(r == u / 2);
  asm("shl.b32 %0, %1, 40; shr.s32 %0, %2, 40;" : "=r"(r) : "r"(u), "r"(i));
  EXPECT(r == (i < 0 ? ~0u : 0u));
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(r) : "r"(0xff00u), "r"(u), "r"(7u));
  EXPECT(r == ((0xff00u & u) | (~0xff00u & 7u)));
  asm("bfe.u32 %0, %2, 4, 8;\nbfi.b32 %1, %2, 0, 4, 8;" : "=r"(r), "=r"(s) : "r"(u));
  EXPECT(r == (u >> 4 & 255) && s == (u & 255) << 4);
  asm("prmt.b32 %0, %1, 0, 0x0123;\n brev.b32 %0, %0;" : "=r"(r) : "r"(u));
  EXPECT(r == __brev(__byte_perm(u, 0, 0x0123)));
  asm("popc.b32 %0, %2; clz.b32 %1, %2;" : "=r"(r), "=r"(s) : "r"(u));
  EXPECT(r == static_cast<unsigned>(__popc(u)) && s == static_cast<unsigned>(__clz(i)));
  asm("mov.b64 %0, {%1, %2};" : "=l"(w) : "r"(u), "r"(5));
  asm("mov.b64 {%0, %1}, %2;" : "=r"(r), "=r"(s) : "l"(w));
  EXPECT(r == u && s == 5);
  asm("{ .reg .pred p, q;\n setp.lt.s32 p, %1, 0;\n setp.eq.or.u32 q, %1, 3, p;\n selp.b32 %0, 10, "
      "20, q;\n"
      "@!q add.u32 %0, %0, 1; }"
      : "=r"(r)
      : "r"(i));
  EXPECT(r == (i < 0 || i == 3 ? 10u : 21u));
  // Labels and a branch: the sum of 1 .. n.
  asm("{ .reg .pred more; .reg .u32 n; mov.u32 n, %1; mov.u32 %0, 0;\n"
      "AGAIN_%=: add.u32 %0, %0, n; sub.u32 n, n, 1; setp.ne.u32 more, n, 0; @more bra AGAIN_%=; }"
      : "=r"(r)
      : "r"(threadIdx.x + 1));
  EXPECT(r == (threadIdx.x + 1) * (threadIdx.x + 2) / 2);
  asm volatile("mov.u32 %0, %%laneid; mov.u32 %1, %%ntid.x;" : "=r"(r), "=r"(s));
  EXPECT(r == threadIdx.x && s == 32);
  asm volatile("atom.global.add.u32 %0, [%1 + 4], 1;" : "=r"(r) : "l"(flag) : "memory");
  EXPECT(r < 32);
  asm volatile("red.add.u32 [%0], %1;" ::"l"(flag), "r"(threadIdx.x) : "memory");
}

__global__ void floats() {
  const float x = 0.5f + static_cast<float>(threadIdx.x);
  float y;
  unsigned r;
  asm("fma.rn.f32 %0, %1, 0f40000000, %2;" : "=f"(y) : "f"(x), "f"(1.0f));
  EXPECT(y == 2 * x + 1);
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(-x));
  EXPECT(y == exp2f(-x));
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(r) : "f"(-x));
  EXPECT(static_cast<int>(r) == -static_cast<int>(threadIdx.x));
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(-x));
  const __half2 pair = __floats2half2_rn(-x, x);
  EXPECT(r == *reinterpret_cast<const unsigned*>(&pair));
  asm("{ .reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high; }" : "=f"(y) : "r"(r));
  EXPECT(y == x);
  double d;
  asm("cvt.f64.f32 %0, %1;\n\tadd.f64 %0, %0, %0;" : "=d"(d) : "f"(x));
  EXPECT(d == 2.0 * x);
}

__global__ void memory(float* x) {
  __shared__ float tile[128];
  const unsigned i = threadIdx.x;
  auto at = static_cast<unsigned>(__cvta_generic_to_shared(&tile[4 * i]));
  asm volatile("st.shared.v4.f32 [%0], {%1, %1, %1, %2};" ::"r"(at), "f"(x[i]), "f"(1.0f)
               : "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  float a, b, c;
  unsigned r;
  if (i == 0) at += 16;
  asm volatile("ld.shared.f32 %0, [%1 + -4];" : "=f"(a) : "r"(at));  // finds: bank conflict
  EXPECT(a == 1.0f);
  asm volatile("ld.global.nc.L1::no_allocate.v2.f32 {%0, %1}, [%2];"
               : "=f"(b), "=f"(c)
               : "l"(x + i / 2 * 2));
  EXPECT(b == static_cast<float>(i / 2 * 2) && c == b + 1);
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=f"(a) : "f"(x[i]));
  EXPECT(a == x[i ^ 1]);
  asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %1, 1, 0, -1; selp.u32 %1, 1, 0, p; }"
               : "=r"(r), "+r"(at));
  EXPECT(i == 0 || at == 1);
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(i));
  EXPECT(r == 496);
}

/// More blocks than are traced: what the others store is not seen, nor is what copies read of it.
__global__ void many(unsigned* out) {
  __shared__ alignas(128) unsigned tile[32];
  tile[threadIdx.x] = threadIdx.x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::"l"(out +
                                                                              32 * blockIdx.x),
        "r"(static_cast<unsigned>(__cvta_generic_to_shared(tile)))
        : "memory");
  }
}

int main() {
  float values[32];
  for (int i = 0; i < 32; ++i) values[i] = static_cast<float>(i);
  unsigned* flag;
  float* x;
  if (cudaMalloc(&flag, 8) || cudaMalloc(&x, sizeof values) || cudaMemset(flag, 0, 8)) return 1;
  if (cudaMemcpy(x, values, sizeof values, cudaMemcpyHostToDevice)) return 1;
  integers<<<1, 32>>>(flag);
  floats<<<1, 32>>>();
  memory<<<1, 32>>>(x);
  unsigned* copied;
  if (cudaMalloc(&copied, 600 * 128)) return 1;
  many<<<600, 32>>>(copied);
  unsigned counts[2], last;
  if (cudaMemcpy(&last, copied + 600 * 32 - 1, 4, cudaMemcpyDeviceToHost)) return 1;
  if (cudaMemcpy(counts, flag, 8, cudaMemcpyDeviceToHost)) return 1;
  if (cudaFree(copied) || cudaFree(flag) || cudaFree(x)) return 1;
  return any_wrong(1, counts[0] != 496 || counts[1] != 32 || last != 31);
}
