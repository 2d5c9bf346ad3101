// SPDX-License-Identifier: MIT
/// @file
/// Shared by the levels of this chapter; not the subject of any of them: kernel arguments, and
/// reads and writes at the edge of a matrix.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "common/problems/gemm.hpp"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/pair.cuh"
#include "common/device/raster_order.cuh"
#include "common/device/vector.cuh"

namespace cookbook::gemm {

/// Kernel arguments: C (m x n) = A (m x k) B (k x n), row-major.
template <class T>
struct GemmArgs {
  const T* a;
  const T* b;
  T* c;
  int m, n, k;
  std::int64_t lda, ldb, ldc;
};

template <class T>
GemmArgs<T> gemm_args(const ProblemT<T>& p, const BuffersT<T>& at) {
  return {at.a,  at.b,  at.c, static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k),
          p.lda, p.ldb, p.ldc};
}

/// Whether every row of A, B and C consists of whole, aligned 16-byte chunks. If so, the kernels
/// move chunks (kVector). Otherwise they move single elements: slower, but right for any pitch.
template <class T>
bool vectors_fit(const ProblemT<T>& p, const BuffersT<T>& at) {
  constexpr std::int64_t kChunk = 16 / sizeof(T);
  return p.k % kChunk == 0 && p.n % kChunk == 0 && rows_are_16_byte_aligned(at.a, p.lda) &&
         rows_are_16_byte_aligned(at.b, p.ldb) && rows_are_16_byte_aligned(at.c, p.ldc);
}

/// Common to the ladder's levels, which compute tiles of C as a Config C says: row-major operands,
/// a device with the instructions, and a block per tile.
template <class C>
struct TileLevel : LevelT<typename C::Element> {
  using T = typename C::Element;
  using Plan = typename LevelT<T>::Plan;

  static Support supports_layout(const ProblemT<T>& problem) {
    if (problem.a_transposed || problem.b_transposed) {
      return Support::no("reads row-major A and B only (NN)");
    }
    return Support::yes();
  }
  static Support supports(const ProblemT<T>& problem, const DeviceInfo& device) {
    if (const Support layout = supports_layout(problem); !layout) return layout;
    if (device.cc() < 80) return Support::no("needs sm_80 (bf16 mma, cp.async)");
    if (C::kSmemBytes > device.smem_per_block_bytes) {
      return Support::no("needs " + std::to_string(C::kSmemBytes / 1024) +
                         " KB of shared memory per block");
    }
    return Support::yes();
  }
  static void launch_tiles(void (*kernel)(GemmArgs<T>), const Plan& plan, Stream stream) {
    const ProblemT<T>& p = plan.problem;
    launch(kernel,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads), C::kSmemBytes},
           stream, gemm_args(p, plan.buffers));
  }
};

/// Claims about the asynchronous copies of a level, before its `others`: every sector read is used,
/// and no two chunks that a warp writes to shared memory are in the same bank.
inline Claims async_copy_claims(const Claims& others) {
  Claim reads = Accesses("global", "async_load", "").coalesced();
  reads.text = "cp.async, reads of global memory: sectors = ideal";
  Claim writes = Accesses("shared", "async_store", "").on("copy").conflict_free();
  writes.text = "cp.async, writes to shared memory: wavefronts = ideal";
  Claim width = Accesses("global", "async_load", "").sectors_per_request(16);
  width.text = "cp.async: 16 bytes per lane, 16 sectors per request";
  Claims claims{reads, writes, width};
  claims.insert(claims.end(), others.begin(), others.end());
  return claims;
}

/// Claims that C is stored in pairs of elements, not one by one.
template <class T>
Claim pair_stores(const ProblemT<T>& p) {
  return global_stores("c").requests(static_cast<double>(p.m * p.n) / 2 / 32);
}

/// Eight elements from `source` on, of which the first `valid` are inside the matrix (more than
/// eight count as eight, negative as none); the others are zero-filled. kVector: valid is never 1
/// to 7.
template <bool kVector, class T>
__device__ __forceinline__ Pack<T, 8> load_chunk(const T* source, int valid) {
  Pack<T, 8> chunk;
  if constexpr (kVector) {
    chunk = detail::reinterpret_bits<Pack<T, 8>>(make_uint4(0, 0, 0, 0));
    if (valid > 0) chunk = load_vector<Pack<T, 8>>(source);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) chunk[i] = i < valid ? source[i] : T(0.0f);
  }
  return chunk;
}

/// The same chunk, copied to shared memory: by cp.async where possible, otherwise immediately
/// through registers. Either way all threads see it after cp_async_wait and a barrier. anywhere: a
/// readable address, for chunks out of bounds.
template <bool kVector, class T>
__device__ __forceinline__ void copy_chunk_async(T* smem, const T* source, int valid,
                                                 const T* anywhere) {
  if constexpr (kVector) {
    cp_async_zfill<16>(smem, valid > 0 ? source : anywhere, valid > 0 ? 16 : 0);  // [copy]
  } else {
    store_vector(smem, load_chunk<false>(source, valid));
  }
}

/// C[row][col], C[row][col + 1] = low, high where they are inside C; col is even.
template <bool kVector, class T>
__device__ __forceinline__ void store_pair(const GemmArgs<T>& p, int row, int col, float low,
                                           float high) {
  if (row >= p.m) return;
  T* destination = p.c + row * p.ldc + col;
  if constexpr (kVector) {
    if (col < p.n) store_vector(destination, to_pair<T>(low, high));  // [pair]
  } else {
    const auto pair = detail::reinterpret_bits<Pack<T, 2>>(to_pair<T>(low, high));
    if (col < p.n) destination[0] = pair[0];
    if (col + 1 < p.n) destination[1] = pair[1];
  }
}

/// C[row][col .. col + 7] = chunk where that is inside C; col is a multiple of eight.
template <bool kVector, class T>
__device__ __forceinline__ void store_chunk(const GemmArgs<T>& p, int row, int col,
                                            const Pack<T, 8>& chunk) {
  if (row >= p.m) return;
  T* destination = p.c + row * p.ldc + col;
  if constexpr (kVector) {
    if (col < p.n) store_vector(destination, chunk);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (col + i < p.n) destination[i] = chunk[i];
    }
  }
}

/// Where a warp works: its block's tile of C begins at (row0, col0), its own part of that tile at
/// (row, col).
struct WarpTile {
  int row0, col0, row, col, warp, lane;
};

/// This thread's, with the raster order, tile and warps of C.
template <class C>
__device__ __forceinline__ WarpTile warp_tile(const GemmArgs<typename C::Element>& p) {
  const TileIndex tile = grouped_tile(static_cast<int>(blockIdx.x), ceil_div(p.m, C::kBlockM),
                                      ceil_div(p.n, C::kBlockN), C::kGroup);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  return {.row0 = tile.m * C::kBlockM,
          .col0 = tile.n * C::kBlockN,
          .row = warp / C::kWarpsN * C::kWarpM,
          .col = warp % C::kWarpsN * C::kWarpN,
          .warp = warp,
          .lane = lane};
}

}  // namespace cookbook::gemm
