// SPDX-License-Identifier: MIT
// A host for a kernel that has none (known_answers.py): KERNEL of KERNEL_FILE with memory for each
// pointer and a number for each other parameter, or with what KERNEL_GIVEN says. GPUVerify's
// annotations are evaluated where a thread can.
//
// Usage: bare_kernel NUMBER [NUMBER]: for the parameters in turn
#include <array>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cuda_runtime.h>
#ifdef KERNEL_GROUPS
#include <cooperative_groups.h>
#endif
#ifdef KERNEL_CURAND
#include <curand_kernel.h>
#endif

namespace bare {

__device__ bool unmet = false;
__device__ inline bool require(bool met) {
  if (!met) unmet = true;
  return met;
}

struct Any {};
constexpr Any any;

constexpr size_t kElements = size_t{1} << 22;

inline std::array<long, 2> numbers = {1, 1};
inline size_t given = 0;

template <class T>
struct Argument {
  static T make() {
    T value{};
    if constexpr (std::is_arithmetic_v<T>) value = static_cast<T>(numbers[given++ % 2]);
    return value;
  }
};

template <class T>
struct Argument<T*> {
  using Element = std::remove_cv_t<T>;
  static T* make() {
    if constexpr (std::is_function_v<T>) {
      return nullptr;
    } else {
      constexpr size_t size = [] {
        if constexpr (std::is_void_v<Element>)
          return size_t{8};
        else
          return sizeof(Element);
      }();
      const size_t bytes = kElements * size;
      void* memory = nullptr;
      if (cudaMalloc(&memory, bytes) != cudaSuccess || cudaMemset(memory, 0, bytes) != cudaSuccess)
        exit(1);
      if constexpr (std::is_arithmetic_v<Element>) {
        std::vector<char> filled(1 << 16);
        auto* values = reinterpret_cast<Element*>(filled.data());
        for (size_t i = 0; i < filled.size() / size; ++i) values[i] = static_cast<Element>(i % 3);
        if (cudaMemcpy(memory, filled.data(), filled.size(), cudaMemcpyHostToDevice) != cudaSuccess)
          exit(1);
      }
      return static_cast<T*>(memory);
    }
  }
};

template <class P>
P argument(Any) {
  return Argument<P>::make();
}

template <class P, class Given>
P argument(Given given) {
  return P(given);
}

template <class... P, class... Given>
void drive(void (*kernel)(P...), dim3 grid, dim3 block, Given... given) {
  std::tuple<P...> values{argument<P>(given)...};  // in braces: in their order
#ifdef KERNEL_GRID_GROUP
  std::apply(
      [&](auto&... of) {
        void* pointers[] = {&of...};
        cudaLaunchCooperativeKernel(reinterpret_cast<void*>(kernel), grid, block, pointers);
      },
      values);
#else
  std::apply([&](auto&... of) { kernel<<<grid, block> > >(of...); }, values);
#endif
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    printf("launch: %s\n", cudaGetErrorString(error));
}

}  // namespace bare

#define __requires(...) (void)bare::require(__VA_ARGS__)
#define __assume(...) (void)bare::require(__VA_ARGS__)
#define __requires_fresh_array(...) (void)0
#define __ensures(...) (void)0
#define __axiom(...) static_assert(true)
#define __assert(...) assert((__VA_ARGS__))
#define __global_assert(...) assert((__VA_ARGS__))
#define __invariant(...) true
#define __global_invariant(...) true
#define __function_wide_invariant(...) (void)0
#define __implies(a, b) (!(a) || (b))
#define __enabled() true
#define __uniform_bool(...) true
#define __uniform_int(...) true
#define __distinct_int(...) true
#define __distinct_bool(...) true
#define __all(...) (__VA_ARGS__)
#define __other_int(...) (-1)
#define __read(...) true
#define __write(...) true
#define __no_read(...) true
#define __no_write(...) true
#define __read_implies(...) true
#define __write_implies(...) true
#define __ptr_offset_bytes(...) 0
#define __mod_pow2(a, b) ((a) % (b))
#define __is_pow2(a) (((a) & ((a)-1)) == 0)

#include KERNEL_FILE

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 1;
  bare::numbers = {strtol(argv[1], nullptr, 10), strtol(argv[argc - 1], nullptr, 10)};
  bare::drive(KERNEL, dim3(KERNEL_GRID), dim3(KERNEL_BLOCK) KERNEL_GIVEN);
  const cudaError_t error = cudaDeviceSynchronize();
  bool unmet = false;
  if (error == cudaSuccess &&
      cudaMemcpyFromSymbol(&unmet, bare::unmet, sizeof(unmet)) == cudaSuccess && unmet)
    puts("a precondition is not met");
  return 0;
}
