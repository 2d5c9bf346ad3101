// SPDX-License-Identifier: MIT
/// @file
/// One operand's tile in shared memory: how TMA writes it and how wgmma addresses it.
///
/// A TMA box is at most as wide as the swizzle's span. A tile is therefore a row of *panels*, each
/// one span wide. The operand's major says which index runs along the span:
///
///     Major::k    A stored M x K, B stored N x K      Major::mn   A stored K x M, B stored K x N
///
///          <- span ->                                      <- span ->
///      mn 0 [k 0 ..  ] [k 64 .. ]                       k 0 [mn 0 ..  ] [mn 64 .. ]
///      mn 1 [        ] [        ]                       k 1 [         ] [         ]
///       .      panel 0    panel 1                        .     panel 0     panel 1
///
/// TMA keeps the order that the matrix has in memory. The tensor cores transpose as they read, so
/// the four layouts NN, NT, TN and TT need no transpose kernel.
#pragma once

#include <cstdint>

#include "common/backend/tensor_map.hpp"
#include "common/device/cuda.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::gemm {

/// Tensor map of a row-major bf16 matrix of rows x cols with a leading dimension of `pitch`
/// elements, read or written in boxes of box_rows x box_cols. Throws std::invalid_argument naming
/// the rule that is broken.
inline TensorMap matrix_map(const bf16* base, std::int64_t rows, std::int64_t cols,
                            std::int64_t pitch, int box_rows, int box_cols, Swizzle swizzle) {
  TensorMapSpec spec;
  spec.dtype = TensorType::bf16;
  spec.base = base;
  spec.extents = {static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows)};
  spec.strides_bytes = {static_cast<std::uint64_t>(pitch) * sizeof(bf16)};
  spec.box = {static_cast<std::uint32_t>(box_cols), static_cast<std::uint32_t>(box_rows)};
  spec.swizzle = swizzle;
  spec.l2_promotion = L2Promotion::b256;
  return make_tensor_map(spec);
}

/// A tile of kMn x kK elements (mn: rows of A or columns of B).
/// kSlices: the number of slices of one tile that the blocks of a cluster load separately.
template <Major kMajor, Swizzle kSwizzle, int kMn, int kK, int kSlices = 1>
struct OperandTile {
  static constexpr bool kAlongK = kMajor == Major::k;
  static constexpr int kSpanBytes = static_cast<int>(swizzle_span_bytes(kSwizzle));
  static constexpr int kPanelCols = kSpanBytes / 2;  // elements
  static constexpr int kPanelRows = kAlongK ? kMn : kK;
  static constexpr int kPanels = (kAlongK ? kK : kMn) / kPanelCols;
  static constexpr int kPanelBytes = kPanelRows * kSpanBytes;
  static constexpr int kBytes = kPanels * kPanelBytes;
  static constexpr int kBoxRows = kPanelRows / kSlices;
  static_assert((kAlongK ? kK : kMn) % kPanelCols == 0, "whole panels");
  static_assert(kPanelRows % (8 * kSlices) == 0 && kBoxRows <= 256,
                "a box: whole groups, 256 rows");

  /// Tensor map of the whole operand, stored as rows x cols with `pitch`.
  static TensorMap map(const bf16* base, std::int64_t rows, std::int64_t cols, std::int64_t pitch) {
    return matrix_map(base, rows, cols, pitch, kBoxRows, kPanelCols, kSwizzle);
  }

  /// Starts the loads of the tile at (mn, k); `bar` counts kBytes. Called by one thread.
  static __device__ __forceinline__ void load(unsigned char* tile, const TensorMap* map,
                                              uint64_t* bar, int mn, int k) {
    static_assert(kSlices == 1, "a tile in several slices needs load_slice");
    const int x = kAlongK ? k : mn, y = kAlongK ? mn : k;
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      tma_load_2d(tile + panel * kPanelBytes, map, bar, x + panel * kPanelCols, y);
    }
  }

  /// Loads slice `slice` of the tile into every block of a cluster of kSlices; each block's `bar`
  /// counts kBytes / kSlices. Called by one thread of each block, with its own rank as `slice`.
  static __device__ __forceinline__ void load_slice(unsigned char* tile, const TensorMap* map,
                                                    uint64_t* bar, int mn, int k, int slice) {
    const int x = kAlongK ? k : mn, y = (kAlongK ? mn : k) + slice * kBoxRows;
    unsigned char* begin = tile + slice * kBoxRows * kSpanBytes;
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      tma_load_2d_multicast(begin + panel * kPanelBytes, map, bar, x + panel * kPanelCols, y,
                            static_cast<uint16_t>((1 << kSlices) - 1));
    }
  }

  /// What a wgmma descriptor needs to know of a tile; see wgmma_descriptor for the two strides.
  static __device__ __forceinline__ uint64_t descriptor(const unsigned char* tile) {
    constexpr bool kPlain = kSwizzle == Swizzle::none;
    constexpr int kEightRows = 8 * kSpanBytes;  // from one group of eight rows to the next
    if constexpr (kPlain && !kAlongK) {
      return wgmma_descriptor<kSwizzle>(tile, kEightRows, kPanelBytes);
    } else {
      return wgmma_descriptor<kSwizzle>(tile, kPanelBytes, kEightRows);
    }
  }

  /// Bytes from the start of the tile to element (mn, k); mn a multiple of 64, k of 16.
  static __host__ __device__ constexpr int offset_bytes(int mn, int k) {
    return kAlongK ? k / kPanelCols * kPanelBytes + mn * kSpanBytes + k % kPanelCols * 2
                   : mn / kPanelCols * kPanelBytes + k * kSpanBytes + mn % kPanelCols * 2;
  }
};

/// One stage: the tiles of A and B for one k-block in shared memory.
///
/// C: a level's Config. kMajorA, kMajorB, kSwizzle, kBlockM, kBlockN, kBlockK and kCluster (the
/// number of blocks that each load a slice of B's tile) define the tiles.
template <class C>
struct Stage {
  // Columns of B along the span are loaded in whole panels.
  static constexpr int kSpan = static_cast<int>(swizzle_span_bytes(C::kSwizzle)) / 2;
  static constexpr int kColumns =
      C::kMajorB == Major::k ? C::kBlockN : (C::kBlockN + kSpan - 1) / kSpan * kSpan;
  using A = OperandTile<C::kMajorA, C::kSwizzle, C::kBlockM, C::kBlockK>;
  using B = OperandTile<C::kMajorB, C::kSwizzle, kColumns, C::kBlockK, C::kCluster>;
  unsigned char a[A::kBytes];
  unsigned char b[B::kBytes];
};

/// Defaults of most levels. A level's Config derives from this and adds the rest.
struct DefaultOperands {
  static constexpr Major kMajorA = Major::k, kMajorB = Major::mn;  // both row-major
  static constexpr Swizzle kSwizzle = Swizzle::b128;
  static constexpr int kCluster = 1;  // every block loads its own tiles
};

}  // namespace cookbook::gemm
