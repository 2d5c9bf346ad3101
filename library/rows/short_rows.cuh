// SPDX-License-Identifier: MIT
// Rows of up to 128 bytes on 16-byte boundaries. As few lanes per row as it has 16-byte accesses,
// and several rows per thread: 32 elements of loads in flight per thread at any row length.
#pragma once

#include "chapters/09_online_softmax/row_ops.cuh"

namespace cookbook::softmax {

/// Longest row. Beyond, level 5 was measured to be as fast: 128 bytes are 8 accesses, one for each
/// of its lanes.
constexpr std::int64_t kShortBytes = 128;

template <class Client, int kLanesValue>
struct ShortRowsConfig : RowConfig<Client> {
  static constexpr int kLanes = kLanesValue;                // for one row: 1 ... 8, a power of two
  using RowConfig<Client>::kPack;                           // elements per access
  static constexpr int kRows = kElementsPerThread / kPack;  // of a thread
  static constexpr int kBlock = 128;
  static constexpr int kTogether = kBlock / kLanes;  // rows that lie side by side
  static constexpr int kCapacity = kLanes * kPack;   // longest row
};

template <class C>
__global__ void __launch_bounds__(C::kBlock, 1024 / C::kBlock)
    short_rows(const typename C::T* __restrict__ in, typename C::T* __restrict__ out, Shape shape,
               typename C::Op op) {
  using Partial = typename C::Op::Partial;
  const int lane = threadIdx.x % C::kLanes;
  const bool in_row = lane < static_cast<int>(shape.cols) / C::kPack;
  const std::int64_t row0 =
      std::int64_t{blockIdx.x} * (C::kRows * C::kTogether) + threadIdx.x / C::kLanes;
  in += row0 * shape.in_pitch + lane * C::kPack;
  out += row0 * shape.out_pitch + lane * C::kPack;
  op.skip(lane * C::kPack);

  float x[C::kRows][1][C::kPack];  // (rows, accesses of a row, elements) per thread
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
#pragma unroll
    for (int j = 0; j < C::kPack; ++j) x[r][0][j] = C::Op::kPadding;
    const bool inside = in_row && row0 + r * C::kTogether < shape.rows;
    if (inside) load_pack_streaming(x[r][0], in + r * C::kTogether * shape.in_pitch);
  }
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    const Partial mine = op.reduce(x[r]);
    const Partial whole = op.template merge_lanes<C::kLanes>(mine);
    const float factor = op.factor(mine, whole);
    const bool inside = in_row && row0 + r * C::kTogether < shape.rows;
    if (inside) {
      op.finish(x[r][0], factor, 0);
      store_pack(out + r * C::kTogether * shape.out_pitch, x[r][0]);
    }
  }
}

template <class C>
void start_short_rows(const RowLaunch<typename C::Client>& plan, Stream stream) {
  launch_row_kernel(short_rows<C>, plan, stream, C::kBlock, C::kRows * C::kTogether);
}

/// The fewest lanes that hold a row.
template <class Client, int kLanes = 1>
StartRows<Client> pick_short_rows(std::int64_t cols) {
  using Config = ShortRowsConfig<Client, kLanes>;
  if constexpr (Config::kLanes * 16 < kShortBytes) {
    if (cols > Config::kCapacity) return pick_short_rows<Client, kLanes * 2>(cols);
  }
  return start_short_rows<Config>;
}

}  // namespace cookbook::softmax
