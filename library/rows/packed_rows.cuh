// SPDX-License-Identifier: MIT
// Short rows off 16-byte boundaries, without gaps between them. A block's rows are contiguous in
// memory, which is loaded and stored 16 bytes at a time, across the ends of rows.
#pragma once

#include "chapters/09_online_softmax/row_ops.cuh"

namespace cookbook::softmax {

constexpr std::int64_t kPackedRow = 64;  // longest row, in elements

template <class Client, int kLanesValue>
struct PackedRowsConfig : RowConfig<Client> {
  static constexpr int kLanes = kLanesValue;  // for one row: 1 ... 4, a power of two
  static constexpr int kBlock = 256;
  static constexpr int kMinBlocks = 6;                  // 40 registers per thread
  static constexpr int kElements = 16;                  // of a row, per lane
  static constexpr int kRows = kBlock / kLanes;         // per block
  static constexpr int kCapacity = kLanes * kElements;  // longest row
  using RowConfig<Client>::kPack;                       // elements per access
  static constexpr int kVectors = kElements / kPack;    // accesses per thread
};

template <class C>
__global__ void __launch_bounds__(C::kBlock, C::kMinBlocks)
    packed_rows(const typename C::T* __restrict__ in, typename C::T* __restrict__ out, Shape shape,
                typename C::Op op) {
  using T = typename C::T;
  using Partial = typename C::Op::Partial;
  // The rows as in memory, from the last boundary before them on.
  alignas(16) __shared__ T tile[C::kRows * C::kCapacity + C::kPack];

  const std::int64_t row0 = std::int64_t{blockIdx.x} * C::kRows;
  const int rows = static_cast<int>(min(shape.rows - row0, std::int64_t{C::kRows}));
  const int cols = static_cast<int>(shape.cols), count = rows * cols;
  in += row0 * cols;
  out += row0 * cols;
  const int head = elements_before_boundary(in, out, count);
  const int vectors = (count - head) / C::kPack;
  const int singles = count - vectors * C::kPack;  // head and tail
  T* rows_in_tile =
      tile + (C::kPack - head) % C::kPack;  // the first row; rows_in_tile + head is on a boundary

  const int thread = threadIdx.x;
  uint4 loaded[C::kVectors];
#pragma unroll
  for (int v = 0; v < C::kVectors; ++v) {
    const int i = thread + v * C::kBlock;
    if (i < vectors) loaded[v] = load_vector_streaming<uint4>(in + head + i * C::kPack);
  }
  const int single = thread < head ? thread : thread + vectors * C::kPack;
  if (thread < singles) rows_in_tile[single] = in[single];
#pragma unroll
  for (int v = 0; v < C::kVectors; ++v) {
    const int i = thread + v * C::kBlock;
    if (i < vectors) store_vector(rows_in_tile + head + i * C::kPack, loaded[v]);
  }
  __syncthreads();  // the rows are complete

  const int lane = thread % C::kLanes, local = thread / C::kLanes;
  T* const row = rows_in_tile + local * cols + lane;
  const int left = local < rows ? cols - lane : 0;
  op.skip(lane);
  float x[C::kElements][1];  // per thread, kLanes apart
#pragma unroll
  for (int i = 0; i < C::kElements; ++i) {
    x[i][0] = i * C::kLanes < left ? as_float(row[i * C::kLanes]) : C::Op::kPadding;
  }
  const Partial mine = op.reduce(x);
  const Partial whole = op.template merge_lanes<C::kLanes>(mine);
  const float factor = op.factor(mine, whole);
#pragma unroll
  for (int i = 0; i < C::kElements; ++i) {
    if (i * C::kLanes < left) {
      op.finish(x[i], factor, i * C::kLanes);
      row[i * C::kLanes] = rounded<T>(x[i][0]);
    }
  }
  __syncthreads();  // the results are complete

#pragma unroll
  for (int v = 0; v < C::kVectors; ++v) {
    const int i = thread + v * C::kBlock;
    if (i < vectors) {
      loaded[v] = load_vector<uint4>(rows_in_tile + head + i * C::kPack);
      store_vector(out + head + i * C::kPack, loaded[v]);
    }
  }
  if (thread < singles) out[single] = rows_in_tile[single];
}

template <class C>
void start_packed_rows(const RowLaunch<typename C::Client>& plan, Stream stream) {
  launch_row_kernel(packed_rows<C>, plan, stream, C::kBlock, C::kRows);
}

/// The fewest lanes that hold a row.
template <class Client, int kLanes = 1>
StartRows<Client> pick_packed_rows(std::int64_t cols) {
  using Config = PackedRowsConfig<Client, kLanes>;
  if constexpr (Config::kCapacity < kPackedRow) {
    if (cols > Config::kCapacity) return pick_packed_rows<Client, kLanes * 2>(cols);
  }
  return start_packed_rows<Config>;
}

}  // namespace cookbook::softmax
