// SPDX-License-Identifier: MIT
// Level 0: the GEMM on CUDA cores, one thread per element of C.
#pragma once

#include "chapters/05_tensor_cores/tile_io.cuh"
#include "common/device/cuda.cuh"

namespace cookbook::gemm {

namespace simt_cores {

template <class T>
struct Config {
  using Element = T;
  static constexpr int kBlockM = 8, kBlockN = 32;  // a warp per row of C
  static constexpr int kThreads = kBlockM * kBlockN;
  static constexpr int kGroup = 8;
  static constexpr std::size_t kSmemBytes = 0;
};

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
  const TileIndex tile = grouped_tile(static_cast<int>(blockIdx.x), ceil_div(p.m, C::kBlockM),
                                      ceil_div(p.n, C::kBlockN), C::kGroup);
  const int row = tile.m * C::kBlockM + static_cast<int>(threadIdx.x / 32);
  const int col = tile.n * C::kBlockN + static_cast<int>(threadIdx.x % 32);
  if (row >= p.m || col >= p.n) return;

  const T* a = p.a + row * p.lda;
  const T* b = p.b + col;
  float sum = 0.0f;
  for (int i = 0; i < p.k; ++i) {
    // [quote simt]
    const float left = static_cast<float>(a[i]);           // one element for the whole warp [a]
    const float right = static_cast<float>(b[i * p.ldb]);  // 32 neighbours [b]
    sum = fmaf(left, right, sum);                          // after two loads, two conversions
    // [end quote]
  }
  p.c[row * p.ldc + col] = static_cast<T>(sum);
}

}  // namespace simt_cores

template <class T>
struct SimtCores : TileLevel<simt_cores::Config<T>> {
  using C = simt_cores::Config<T>;
  static constexpr LevelText text{
      .name = "simt",
      .changed = "one thread per element of C, on CUDA cores",
      .expect = "a few per cent of the FP32 roof: two loads and two conversions for every FMA",
      .cost = "nothing: 256 threads, no shared memory",
  };

  static Claims claims(const ProblemT<T>&) {
    return {global_loads("a").sectors_per_request(1),  // a broadcast
            global_loads("b").sectors_per_request(2),  // 32 lanes x 2 bytes
            global_stores("c").coalesced()};
  }
  static Support supports(const ProblemT<T>& problem, const DeviceInfo&) {  // every GPU has FMAs
    return TileLevel<C>::supports_layout(problem);
  }
  static void run(const typename TileLevel<C>::Plan& plan, Stream stream) {
    TileLevel<C>::launch_tiles(simt_cores::kernel<C, false>, plan, stream);
  }
};

}  // namespace cookbook::gemm
