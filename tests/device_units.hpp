// SPDX-License-Identifier: MIT
//
// Shared by the plain and the traced tests of the device headers: matrices of small integers, and
// kernels that are right or have one mistake.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "common/backend/simt/units/numbers.hpp"
#include "common/device/cluster_async.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/sync.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"
#include "tests/kernel_runs.hpp"
#include "tests/places.hpp"
#include "tests/tensor_maps.hpp"

namespace cookbook {
namespace {

// Small integers: exact in every format here, and so are their dot products.
int small(uint32_t i) { return static_cast<int>((i * 2654435761u >> 13) % 7) - 3; }

template <class T>
T number(float value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return __float2bfloat16_rn(value);
  } else if constexpr (std::is_same_v<T, half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, uint8_t>) {  // e4m3
    uint8_t code = 0;
    while (simt::e4m3_bits_to_float(code) != value) ++code;
    return code;
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
struct Matrix {
  int rows, columns;
  DeviceMemory memory;
  std::vector<float> values;

  Matrix(int rows_, int columns_, const char* name, uint32_t seed)
      : rows(rows_), columns(columns_) {
    std::vector<T> data;
    for (uint32_t i = 0; i < static_cast<uint32_t>(rows * columns); ++i) {
      values.push_back(static_cast<float>(small(i + seed * 7919)));
      data.push_back(number<T>(values.back()));
    }
    memory = upload(data, name);
  }
  float operator()(int row, int column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
  operator const T*() const { return memory.as<T>(); }
};

template <bool kWaits>
__global__ void copy_with_cp_async(const float* in, float* out, int n) {
  float* stage = dynamic_shared<float>();
  const int i = 4 * threadIdx.x;
  const int valid = n - i < 0 ? 0 : n - i < 4 ? n - i : 4;
  cp_async_zfill<16>(stage + i, in + (valid > 0 ? i : 0), 4 * valid);
  cp_async_commit();
  if (kWaits) cp_async_wait<0>();
  __syncthreads();
  for (int j = 0; j < 4; ++j) out[i + j] = stage[(i + 4 + j) % (4 * blockDim.x)];
}

// "device_units.hpp:N", of the line of this file that ends in "// [tag]".
[[maybe_unused]] std::string place_of(const std::string& tag) {
  return cookbook::place_of("tests/device_units.hpp", tag);
}

// A buffer that is overwritten before its store has read it.
template <bool kWaits>
__global__ void reuse_store_buffer(float* out) {
  float* stage = dynamic_shared<float>();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < 4; ++i) stage[i] = 1.0f;
  fence_proxy_async();
  bulk_store(out, stage, 16);
  tma_store_commit();
  if (kWaits) tma_store_wait_read<0>();
  for (int i = 0; i < 4; ++i) stage[i] = 2.0f;
}

enum class Mistake {
  none,
  no_wgmma_wait,
  no_full_wait,
  wrong_parity,
  too_many_bytes,
  too_few_bytes,
  released_early,
};

// D (M x N) = A (M x K) * B (N x K)^T in tiles of 64 x 64 x 64. Warps 0..3 multiply, warp 4 loads.
template <Mistake kMistake>
__global__ void __launch_bounds__(160, 1)
    gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
         float* out, int n, int k) {
  constexpr int kStages = 2;
  constexpr int kTile = 64 * 64 * 2;  // bytes
  char* a_tiles = dynamic_shared<char>();
  char* b_tiles = a_tiles + kStages * kTile;
  auto* full = reinterpret_cast<uint64_t*>(b_tiles + kStages * kTile);
  uint64_t* empty = full + kStages;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(&full[s], 1);
      mbarrier_init(&empty[s], 4);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  const int steps = k / 64;
  if (warp == 4) {
    if (!elect_one()) return;
    for (int i = 0; i < steps; ++i) {
      const int s = i % kStages;
      const uint32_t phase = i / kStages % 2;
      mbarrier_wait(&empty[s], phase ^ 1);  // [empty wait]
      constexpr uint32_t kExpected = kMistake == Mistake::too_many_bytes  ? 3 * kTile
                                     : kMistake == Mistake::too_few_bytes ? kTile
                                                                          : 2 * kTile;
      mbarrier_arrive_expect_tx(&full[s], kExpected);
      tma_load_2d(a_tiles + s * kTile, &map_a, &full[s], i * 64, blockIdx.y * 64);  // [load a]
      tma_load_2d(b_tiles + s * kTile, &map_b, &full[s], i * 64, blockIdx.x * 64);  // [load b]
    }
    return;
  }
  float d[32] = {};
  for (int i = 0; i < steps; ++i) {
    const int s = i % kStages;
    const uint32_t phase = i / kStages % 2;
    if (kMistake != Mistake::no_full_wait) {
      const uint32_t parity = kMistake == Mistake::wrong_parity ? phase ^ 1 : phase;
      mbarrier_wait(&full[s], parity);  // [full wait]
    }
    if (kMistake == Mistake::released_early && threadIdx.x % 32 == 0) mbarrier_arrive(&empty[s]);
    wgmma_fence();
    for (int kk = 0; kk < 64; kk += 16) {
      wgmma_m64k16<64, bf16>(  // [product]
          d, wgmma_descriptor<Swizzle::b128>(a_tiles + s * kTile + 2 * kk, 16, 1024),
          wgmma_descriptor<Swizzle::b128>(b_tiles + s * kTile + 2 * kk, 16, 1024), true);
    }
    wgmma_commit();
    if (kMistake != Mistake::no_wgmma_wait) wgmma_wait<0>();
    if (kMistake != Mistake::released_early && threadIdx.x % 32 == 0) mbarrier_arrive(&empty[s]);
  }
  const int row = blockIdx.y * 64 + 16 * warp + threadIdx.x % 32 / 4;
  const int column = blockIdx.x * 64 + 2 * (threadIdx.x % 4);
  for (int i = 0; i < 32; ++i) out[(row + 8 * (i / 2 % 2)) * n + column + i / 4 * 8 + i % 2] = d[i];
}

struct Gemm {
  int m = 128, n = 64, k = 320;
  Matrix<bf16> a{m, k, "a", 31}, b{n, k, "b", 32};
  DeviceMemory d{static_cast<size_t>(m * n * 4), "d"};
  TensorMap map_a = map_2d<bf16>(a, m, k, 64, 64, Swizzle::b128);
  TensorMap map_b = map_2d<bf16>(b, n, k, 64, 64, Swizzle::b128);

  template <Mistake kMistake>
  void run() {
    d.fill(0);
    const dim3 grid(static_cast<unsigned>(n / 64), static_cast<unsigned>(m / 64));
    run_kernel(gemm<kMistake>, {grid, 160, 4 * 8192 + 64}, map_a, map_b, d, n, k);
  }
  bool right() const {
    const auto got = download<float>(d);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        float want = 0.0f;
        for (int l = 0; l < k; ++l) want += a(i, l) * b(j, l);
        if (got[static_cast<size_t>(i * n + j)] != want) return false;
      }
    }
    return true;
  }
};

enum class Slip { none, expects_too_little, expects_too_much, does_not_wait, no_barrier };

/// Every block of a cluster sends its rank + 100 to every other by st.async, and writes what it
/// received.
template <Slip kSlip>
__global__ void send_to_everybody(int* out) {
  const uint32_t blocks = cluster_size(), rank = cluster_block_rank();
  auto* full = dynamic_shared<uint64_t>();
  int* table = reinterpret_cast<int*>(full + 1);  // (block of the cluster)
  if (threadIdx.x == 0 && kSlip != Slip::no_barrier) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    const int off = kSlip == Slip::expects_too_little ? -4
                    : kSlip == Slip::expects_too_much ? 4
                                                      : 0;
    mbarrier_arrive_expect_tx(full, 4 * blocks + off);
  }
  cluster_arrive_relaxed();
  cluster_wait();
  if (threadIdx.x < blocks) {
    store_async_cluster(&table[rank], static_cast<int>(100 + rank), full, threadIdx.x);
  }
  if (kSlip != Slip::does_not_wait) mbarrier_wait_cluster(full, 0);
  if (threadIdx.x < blocks) out[blockIdx.x * blocks + threadIdx.x] = table[threadIdx.x];
  cluster_sync();  // for the wrong ones: no block exits while others still store here
}

}  // namespace
}  // namespace cookbook
