// SPDX-License-Identifier: MIT
/// @file
/// Matrices whose pitch TMA does not support (not a multiple of 16 bytes): a copy of A or B to
/// padded rows, and stores of C that need no alignment.
#pragma once

#include <cstdint>

#include "chapters/06_tma/level_8_tma_store.cuh"

namespace cookbook::gemm {

namespace pad_rows {

struct Config {
  static constexpr int kThreads = 256;
  static constexpr int kElements = 8;  // per thread, all loads in flight at once
};

/// to[row][col] = from[row][col]. A block copies kThreads * kElements elements of a row. A warp
/// accesses 64 contiguous bytes at a time, whatever the row's alignment. row_blocks: blocks per
/// row.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const bf16* __restrict__ from, std::int64_t from_pitch, bf16* __restrict__ to,
           std::int64_t to_pitch, int cols, int row_blocks) {
  const std::int64_t row = blockIdx.x / static_cast<unsigned>(row_blocks);
  const int first = static_cast<int>(blockIdx.x % static_cast<unsigned>(row_blocks)) *
                    (C::kThreads * C::kElements);
  bf16 values[C::kElements];
#pragma unroll
  for (int i = 0; i < C::kElements; ++i) {
    const int col = first + i * C::kThreads + static_cast<int>(threadIdx.x);
    if (col < cols) values[i] = from[row * from_pitch + col];
  }
#pragma unroll
  for (int i = 0; i < C::kElements; ++i) {
    const int col = first + i * C::kThreads + static_cast<int>(threadIdx.x);
    if (col < cols) to[row * to_pitch + col] = values[i];
  }
}

}  // namespace pad_rows

/// A matrix for TMA: the original, or a padded copy in `memory`.
struct PaddedMatrix {
  const bf16* from = nullptr;
  std::int64_t rows = 0, cols = 0, pitch = 0;
  DeviceMemory memory{};  // empty if no copy is needed

  bool is_copied() const { return memory.data() != nullptr; }
  std::int64_t padded_pitch() const { return (cols + 63) / 64 * 64; }
  const bf16* base() const { return is_copied() ? memory.as<bf16>() : from; }
  std::int64_t base_pitch() const { return is_copied() ? padded_pitch() : pitch; }
};

/// Allocates the copy if `pitch` or the base address requires one.
inline PaddedMatrix padded_matrix(const bf16* from, std::int64_t rows, std::int64_t cols,
                                  std::int64_t pitch, const char* name) {
  PaddedMatrix matrix{from, rows, cols, pitch, {}};
  if (!rows_are_16_byte_aligned(from, pitch)) {
    matrix.memory =
        DeviceMemory(static_cast<size_t>(rows * matrix.padded_pitch()) * sizeof(bf16), name);
  }
  return matrix;
}

/// Fills the copy. The problem requires this work, so every GEMM launches it and its time counts.
inline void launch_padding(const PaddedMatrix& matrix, Stream stream) {
  using C = pad_rows::Config;
  if (!matrix.is_copied()) return;
  constexpr std::int64_t kBlockCols = C::kThreads * C::kElements;
  const std::int64_t row_blocks = (matrix.cols + kBlockCols - 1) / kBlockCols;
  launch(pad_rows::kernel<C>,
         {dim3(static_cast<unsigned>(matrix.rows * row_blocks)), dim3(C::kThreads)}, stream,
         matrix.from, matrix.pitch, matrix.memory.as<bf16>(), matrix.padded_pitch(),
         static_cast<int>(matrix.cols), static_cast<int>(row_blocks));
}

/// As tma_store::store_tile, to rows of any pitch: two instructions store each row of a packed box,
/// with 64 contiguous bytes each, whatever their alignment. Uses the first box only.
template <int kMmaM, int kAccumulators>
__device__ __forceinline__ void store_tile_unaligned(const float (&acc)[kMmaM][kAccumulators],
                                                     const Output& out, const Extents& e,
                                                     unsigned char* box, int row, int col) {
  constexpr int kAcross = kAccumulators / 32;
  __syncwarp();  // lane 0 may have arrived at a barrier alone; stmatrix needs the whole warp
#pragma unroll
  for (int i = 0; i < kMmaM * kAcross; ++i) {
    tma_store::pack_box(box, acc[i / kAcross], i % kAcross);
    __syncwarp();  // all lanes have packed the box
    const int first_row = row + 64 * (i / kAcross), first_col = col + 64 * (i % kAcross);
#pragma unroll 4
    for (int r = 0; r < tma_store::kBoxRows; ++r) {
      bf16* destination = out.c + (first_row + r) * out.ldc + first_col;
#pragma unroll
      for (int c = lane_idx(); c < tma_store::kBoxCols; c += kWarpSize) {
        const bf16 value = *reinterpret_cast<const bf16*>(
            box + swizzle_address<Swizzle::b128>(r * 128 + c * 2));  // [unaligned]
        if (first_row + r < e.m && first_col + c < e.n) destination[c] = value;
      }
    }
    __syncwarp();  // all lanes have read it before it is packed again
  }
}

}  // namespace cookbook::gemm
