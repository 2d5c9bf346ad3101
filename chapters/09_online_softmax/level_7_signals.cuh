// SPDX-License-Identifier: MIT
// Level 7: the blocks of a cluster wait until the bytes of the row's Partials have arrived, and no
// longer for each other's threads.
#pragma once

#include "chapters/09_online_softmax/level_6_cluster.cuh"
#include "common/device/cluster_async.cuh"

namespace cookbook::softmax {

/// Accesses of each block's slice of a row: whole warps, which are 512 bytes, so that no two blocks
/// store to one line. The last blocks may have less, or none.
__device__ __forceinline__ int slice_of(int vectors, int blocks) {
  return ((vectors + blocks - 1) / blocks + kWarpSize - 1) / kWarpSize * kWarpSize;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kMinBlocks)
    signalled_rows(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                   Shape shape, typename C::Op op) {
  using Partial = typename C::Op::Partial;
  constexpr int kWarps = C::kThreads / kWarpSize;
  const int blocks = cluster_size(), rank = cluster_block_rank();
  auto* table_full = dynamic_shared<std::uint64_t>();        // completes when the table is complete
  auto* table = reinterpret_cast<Partial*>(table_full + 1);  // (block of the cluster, warp)

  const std::int64_t row = blockIdx.x / blocks;
  const int vectors = static_cast<int>(shape.cols) / C::kPack;
  const int slice = slice_of(vectors, blocks);                // contiguous accesses of this block
  const int first = rank * slice + threadIdx.x;               // this thread's first access
  const int left = min(vectors, (rank + 1) * slice) - first;  // accesses up to the end of the slice
  if (threadIdx.x == 0) {
    mbarrier_init(table_full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(table_full,
                              static_cast<std::uint32_t>(blocks * kWarps * sizeof(Partial)));
  }
  cluster_arrive_relaxed();  // "this block has started"; the wait follows the loads
  in += row * shape.in_pitch + first * C::kPack;
  out += row * shape.out_pitch + first * C::kPack;
  op.skip(first * C::kPack);

  Elements<C> x;
  load_elements<C>(x, in, left);

  const Partial mine = op.reduce(x);
  const Partial warp = op.template merge_lanes<kWarpSize>(mine);
  // [quote signals]
  cluster_wait();             // all blocks have started and initialised their barriers
  if (lane_idx() < blocks) {  // lane r writes to block r
    store_async_cluster(&table[rank * kWarps + warp_idx()], warp, table_full, lane_idx());
  }
  mbarrier_wait_cluster(table_full, 0);  // the Partials of all warps of the cluster have arrived
  // [end quote]
  Partial whole;
  merge_table(op, whole, table, blocks * kWarps);

  const float factor = op.factor(mine, whole);
  store_elements<C>(op, x, factor, out, left);
}

template <class C>
void start_signalled(const RowLaunch<typename C::Client>& plan, Stream stream) {
  const size_t shared_bytes = sizeof(std::uint64_t) + plan.cluster * (C::kThreads / kWarpSize) *
                                                          sizeof(typename C::Op::Partial);
  launch_row_kernel(signalled_rows<C>, plan, stream, C::kThreads, 1, shared_bytes);
}

template <class Client>
struct Signals : RowLevel<Client, Signals<Client>> {
  template <bool kAligned>
  using Config = ClusterConfig<Client, 512, kAligned>;  // two blocks per SM
  static constexpr LevelText text{
      .name = "signals",
      .changed = "st.async sends (max, sum) and signals their arrival: no second cluster barrier",
      .expect =
          "no release at cluster scope, which is a full memory barrier, between a row's loads and "
          "its stores: the more blocks share a row, the more is gained",
      .cost = "one mbarrier per block, and bytes to count",
  };

  static Claims claims(const RowProblem<Client>& p) {
    return one_read<Client>(
        p, {at_least_previous(0.97, "the same kernel where a row fits one block")});
  }

  static void choose(RowLaunch<Client>& plan) {
    Cluster<Client>::choose(plan);
    if (plan.cluster == 1) return;
    plan.start = plan.aligned() ? start_signalled<Config<true>> : start_signalled<Config<false>>;
  }
};

}  // namespace cookbook::softmax
