// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: the error of four exponentials compared with fp64, in units in the last place of the
// result, for the arguments that a softmax has (x - max, never positive). Prints a table. The exit
// status is 1 if an error exceeds the bound in notes.md. The SIMT backend computes all of them with
// the C library's function, so this program needs a GPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "chapters/09_online_softmax/partial.cuh"
#include "common/backend/backend.hpp"
#include "common/harness/run/arguments.hpp"

namespace cookbook::softmax {
namespace {

constexpr int kCount = 1 << 22;  // arguments per range
constexpr int kThreads = 256;

struct Accurate {
  __device__ static float of(float x) { return expf(x); }
};
struct Intrinsic {
  __device__ static float of(float x) { return __expf(x); }
};
struct Flushed {
  __device__ static float of(float x) { return exponential(x); }
};
struct Polynomial {
  __device__ static float of(float x) { return exp2_polynomial(x * kLog2E); }
};

/// out[i] = Exp of the i-th of kCount arguments distributed evenly over [lowest, 0).
template <class Exp>
__global__ void evaluate(float* out, float lowest) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = Exp::of(lowest * (static_cast<float>(i + 1) / kCount));
}

/// Largest error over [lowest, 0), in units in the last place of the exact result.
template <class Exp>
double largest_error(float lowest) {
  DeviceMemory memory(kCount * sizeof(float), "results");
  launch(evaluate<Exp>, {dim3(kCount / kThreads), dim3(kThreads)}, {}, memory.as<float>(), lowest);
  std::vector<float> got(kCount);
  memory.copy_to_host(got.data(), kCount * sizeof(float));
  double worst = 0;
  for (int i = 0; i < kCount; ++i) {
    const float x = lowest * (static_cast<float>(i + 1) / kCount);
    const double exact = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    worst = std::max(worst, std::fabs(got[i] - exact) / ulp);
  }
  return worst;
}

int run() {
  std::printf("largest error, in units in the last place\n");
  std::printf("| arguments | expf | __expf | ex2.approx.ftz | exp2_polynomial |\n");
  std::printf("|---|---|---|---|---|\n");
  bool as_said = true;
  for (const float lowest : {-1.0f, -8.0f, -32.0f, -86.0f}) {
    const double accurate = largest_error<Accurate>(lowest);
    const double intrinsic = largest_error<Intrinsic>(lowest);
    const double flushed = largest_error<Flushed>(lowest);
    std::printf("| [%g, 0) | %.2f | %.2f | %.2f | %.0f |\n", lowest, accurate, intrinsic, flushed,
                largest_error<Polynomial>(lowest));
    // reference.hpp allows 4 u = 2 ulp for ex2 and 3 |x| u for its argument. u is half an ulp of
    // numbers just above a power of two and a quarter of one just below the next: hence the factor
    // 2.
    const double allowed = 2 * (2 + 1.5 * -lowest);
    as_said = as_said && accurate <= 2 && intrinsic <= allowed && flushed <= allowed;
  }
  std::puts(as_said ? "within the bounds that reference.hpp assumes" : "LARGER than assumed");
  return as_said ? 0 : 1;
}

}  // namespace
}  // namespace cookbook::softmax

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  try {
    return cookbook::softmax::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-9-exp-error: %s\n", error.what());
    return 1;
  }
}
