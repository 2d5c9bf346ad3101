// SPDX-License-Identifier: MIT
// Level 5: the row stays in registers between the passes: it is read once.
#pragma once

#include "chapters/09_online_softmax/row_ops.cuh"

namespace cookbook::softmax {

template <class Client, int kThreadsValue, Access kAccessValue, int kElements = kElementsPerThread,
          int kThreadsPerSm = 1024>
struct OnChipConfig : RowConfig<Client, kAccessValue != Access::elements> {
  static constexpr int kThreads = kThreadsValue;  // for one row: 8 ... 1024, a power of two
  static constexpr int kBlock = kThreads > kWarpSize ? kThreads : 128;  // threads of a block
  static constexpr int kRows = kBlock / kThreads;                       // rows per block
  static constexpr Access kAccess = kAccessValue;
  static constexpr bool kPeeled = kAccess == Access::peeled;
  using RowConfig<Client, kAccessValue != Access::elements>::kPack;  // elements per access
  static constexpr int kVectors = kElements / kPack;  // accesses in flight per thread
  static constexpr int kMinBlocks = kThreadsPerSm / kBlock > 0 ? kThreadsPerSm / kBlock : 1;
  static constexpr int kCapacity = kThreads * kElements;  // longest row
};

template <class C>
__global__ void __launch_bounds__(C::kBlock, C::kMinBlocks)
    on_chip_rows(const typename C::T* __restrict__ in, typename C::T* __restrict__ out, Shape shape,
                 typename C::Op op) {
  using Partial = typename C::Op::Partial;
  constexpr int kLanes = C::kThreads < kWarpSize ? C::kThreads : kWarpSize;
  constexpr int kWarps = C::kThreads / kLanes;
  __shared__ uint2 table[kWarps];  // the Partial of each warp, where a row has several

  const std::int64_t row = std::int64_t{blockIdx.x} * C::kRows + threadIdx.x / C::kThreads;
  const int first = threadIdx.x % C::kThreads;  // this thread's first access of the row
  const int cols = row < shape.rows ? static_cast<int>(shape.cols) : 0;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  const int head = C::kPeeled ? elements_before_boundary(in, out, cols) : 0;
  const int vectors = (cols - head) / C::kPack;
  const int left = vectors - first;  // accesses up to the end of the row
  Edges<C::kPeeled, typename C::T, typename C::Op, C::kThreads> edges(in, first, head, vectors,
                                                                      cols);
  const typename C::Op row_op = op;
  typename C::T* const row_out = out;
  in += head + first * C::kPack;
  out += head + first * C::kPack;
  op.skip(head + first * C::kPack);

  Elements<C> x;
  load_elements<C>(x, in, left);

  // [quote on_chip]
  const Partial mine = op.reduce(x);
  Partial whole = op.template merge_lanes<kLanes>(edges.merged(row_op, mine));
  if constexpr (kWarps > 1) {
    if (lane_idx() == 0) store_vector(&table[warp_idx()], whole);
    __syncthreads();  // every warp's Partial is in the table
    whole = op.template merge_lanes<kWarps>(load_vector<Partial>(&table[lane_idx() % kWarps]));
  }

  const float factor = op.factor(mine, whole);
  // [end quote]
  store_elements<C, C::kPeeled>(op, x, factor, out, left);
  edges.finish(row_op, whole, row_out);
}

template <class C>
void start_on_chip(const RowLaunch<typename C::Client>& plan, Stream stream) {
  launch_row_kernel(on_chip_rows<C>, plan, stream, C::kBlock, C::kRows);
}

/// The fewest threads per row, from kThreads upwards, that hold a row in their registers. For rows
/// without 16-byte boundaries there are fewer kernels, each for a wider range of lengths.
template <class Client, Access kAccess, int kThreads = 8>
StartRows<Client> pick_on_chip(std::int64_t cols) {
  using Config = OnChipConfig<Client, kThreads, kAccess>;
  const std::int64_t in_vectors = cols - cols % Config::kPack;  // the rest is at the edges
  if (in_vectors <= Config::kCapacity) return start_on_chip<Config>;
  constexpr int kNext = kThreads * (kAccess != Access::elements ? 2 : 4);
  if constexpr (kThreads < 1024) {
    return pick_on_chip<Client, kAccess, (kNext < 1024 ? kNext : 1024)>(cols);
  } else {
    return start_any_length<Client>;
  }
}

template <class Client>
struct OnChip : RowLevel<Client, OnChip<Client>> {
  static constexpr LevelText text{
      .name = "on_chip",
      .changed = "the row stays in registers: one read, 32 elements per thread",
      .expect =
          "the minimum of bytes, every load in flight at once; rows up to 32,768 elements, and the "
          "longest leave an SM no work while they wait",
      .cost = "32 registers; one kernel per range of row lengths",
  };

  static Claims claims(const RowProblem<Client>& p) {
    return one_read<Client>(p,
                            {at_least_previous(0.97, "the same kernel where a row does not fit")});
  }

  static void choose(RowLaunch<Client>& plan) {
    plan.start = pick(Client::access(plan), plan.problem.shape.cols);
  }

  static StartRows<Client> pick(Access access, std::int64_t cols) {
    switch (access) {
      case Access::vectors: return pick_on_chip<Client, Access::vectors>(cols);
      case Access::peeled: return pick_on_chip<Client, Access::peeled>(cols);
      default: return pick_on_chip<Client, Access::elements>(cols);
    }
  }
};

}  // namespace cookbook::softmax
