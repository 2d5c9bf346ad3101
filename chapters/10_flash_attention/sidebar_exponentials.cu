// SPDX-License-Identifier: MIT
// Sidebar of chapter 10: three ways to compute 2^x for a softmax. Errors on every backend,
// instruction counts from the SASS, and on a GPU the throughput with one warp per scheduler.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/device/cuda.cuh"
#include "common/device/math.cuh"
#include "common/harness/run/arguments.hpp"

namespace cookbook::attention {

struct Exp2f {
  static constexpr const char* name = "exp2f";
  static __device__ float of(float x) { return exp2f(x); }
};
struct Ex2 {
  static constexpr const char* name = "ex2.approx.ftz";
  static __device__ float of(float x) { return ex2_approx_ftz(x); }
};
struct Polynomial {
  static constexpr const char* name = "cubic on FMA units";
  static __device__ float of(float x) { return exp2_polynomial(x); }
};
/// Computes every fourth exponential on the FMA units, the others on the special-function units.
struct Mixed {
  static constexpr const char* name = "3 ex2 : 1 cubic";
};

template <class F>
__global__ void map_kernel(const float* in, float* out, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = F::of(in[i]);
}

template <class F>
__device__ __forceinline__ float term(float x, int i) {
  if constexpr (std::is_same_v<F, Mixed>) {
    return i % 4 == 3 ? Polynomial::of(x) : Ex2::of(x);
  } else {
    return F::of(x);
  }
}

/// Sums of independent exponentials, as in a softmax: one FMA, one exponential and one addition
/// each.
template <class F>
__global__ void rate_kernel(float* out, float scale, int rounds) {
  constexpr int kWide = 16;
  float x[kWide], sum = 0;
#pragma unroll
  for (int i = 0; i < kWide; ++i) x[i] = -0.01f * static_cast<float>(threadIdx.x + 7 * i);
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      sum += term<F>(x[i] * scale - 0.5f, i);
      x[i] -= 0.001f;
    }
  }
  if (sum == -1.0f) *out = sum;  // never true, but the compiler cannot know
}

/// Prints the largest relative error over [-20, 0], and the results for 2^-130, 2^-1000 and 2^-inf.
template <class F>
void errors() {
  constexpr int kCount = 1 << 16;
  std::vector<float> in(kCount), out(kCount);
  for (int i = 0; i < kCount; ++i) in[i] = -20.0f * static_cast<float>(i) / kCount;
  in[1] = -130.0f, in[2] = -1000.0f, in[3] = kMinusInfinity;
  DeviceMemory in_memory(kCount * sizeof(float), "in"), out_memory(kCount * sizeof(float), "out");
  in_memory.copy_from_host(in.data(), in_memory.bytes());
  launch(map_kernel<F>, {kCount / 256, 256}, {}, in_memory.as<float>(), out_memory.as<float>(),
         kCount);
  synchronize();
  out_memory.copy_to_host(out.data(), out_memory.bytes());
  double worst = 0;
  for (int i = 4; i < kCount; ++i) {
    const double exact = std::exp2(static_cast<double>(in[i]));
    worst = std::max(worst, std::fabs(out[i] - exact) / exact);
  }
  std::printf("%-20s relative error 2^%.1f   2^-130: %-12g 2^-1000: %-12g 2^-inf: %g\n", F::name,
              std::log2(worst), out[1], out[2], out[3]);
}

#if defined(COOKBOOK_CUDA)
template <class F>
void rate() {
  DeviceMemory out(sizeof(float), "out");
  const int sms = device_info().sm_count, rounds = 20000, threads = 256;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    launch(rate_kernel<F>, {static_cast<unsigned>(sms), threads}, {}, out.as<float>(), 1.25f,
           rounds);
    synchronize();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::max(best, 16.0 * rounds * threads / elapsed.count());
  }
  std::printf("%-20s %.2f exponentials per clock and SM at %d MHz\n", F::name,
              best / (1e6 * device_info().clock_mhz), device_info().clock_mhz);
}
#endif

}  // namespace cookbook::attention

int main(int argc, char** argv) {
  using namespace cookbook::attention;
  cookbook::take_no_arguments(argc, argv);
  errors<Exp2f>();
  errors<Ex2>();
  errors<Polynomial>();
  std::printf("(rounding to bf16 is an error of up to 2^-8, to fp16 2^-11)\n");
#if defined(COOKBOOK_CUDA)
  rate<Exp2f>();
  rate<Ex2>();
  rate<Polynomial>();
  rate<Mixed>();
#endif
}
