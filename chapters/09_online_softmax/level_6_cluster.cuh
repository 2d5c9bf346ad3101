// SPDX-License-Identifier: MIT
// Level 6: one cluster per row: blocks on several SMs hold it together. They exchange their
// Partials through distributed shared memory.
#pragma once

#include "chapters/09_online_softmax/level_5_on_chip.cuh"
#include "common/device/cluster.cuh"

namespace cookbook::softmax {

template <class Client, int kThreadsValue, bool kAligned, int kElements = kElementsPerThread,
          int kThreadsPerSm = 1024>
struct ClusterConfig : RowConfig<Client, kAligned> {
  static constexpr int kThreads = kThreadsValue;      // of each block, for its slice of the row
  using RowConfig<Client, kAligned>::kPack;           // elements per access
  static constexpr int kVectors = kElements / kPack;  // accesses in flight per thread
  static constexpr int kMinBlocks = kThreadsPerSm / kThreads;
  static constexpr int kCapacity = kThreads * kElements;  // longest slice
  static_assert(kThreads >= kWarpSize && kMinBlocks >= 1, "whole warps, at least one block");
};

/// The largest number of blocks per cluster. More than 8 is a non-portable size on Hopper, which
/// launch() requests.
constexpr int kMaxCluster = 16;

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kMinBlocks)
    cluster_rows(const typename C::T* __restrict__ in, typename C::T* __restrict__ out, Shape shape,
                 typename C::Op op) {
  using Partial = typename C::Op::Partial;
  constexpr int kWarps = C::kThreads / kWarpSize;
  Partial* table = dynamic_shared<Partial>();  // (block of the cluster, warp)

  const int blocks = cluster_size(), rank = cluster_block_rank();
  const std::int64_t row = blockIdx.x / blocks;
  const int vectors = static_cast<int>(shape.cols) / C::kPack;
  const int slice = (vectors + blocks - 1) / blocks;          // contiguous accesses of this block
  const int first = rank * slice + threadIdx.x;               // this thread's first access
  const int left = min(vectors, (rank + 1) * slice) - first;  // accesses up to the end of the slice
  cluster_arrive();  // "this block has started"; the wait follows the loads
  in += row * shape.in_pitch + first * C::kPack;
  out += row * shape.out_pitch + first * C::kPack;
  op.skip(first * C::kPack);

  Elements<C> x;
  load_elements<C>(x, in, left);

  const Partial mine = op.reduce(x);
  const Partial warp = op.template merge_lanes<kWarpSize>(mine);
  // [quote cluster]
  cluster_wait();             // all blocks have started, so their shared memory may be written
  if (lane_idx() < blocks) {  // lane r writes to block r
    store_vector(map_shared(&table[rank * kWarps + warp_idx()], lane_idx()), warp);
  }
  cluster_sync();  // every block has the Partials of all warps of the cluster
  // [end quote]
  Partial whole;
  merge_table(op, whole, table, blocks * kWarps);

  const float factor = op.factor(mine, whole);
  store_elements<C>(op, x, factor, out, left);
}

template <class C>
void start_cluster(const RowLaunch<typename C::Client>& plan, Stream stream) {
  const size_t table_bytes =
      plan.cluster * (C::kThreads / kWarpSize) * sizeof(typename C::Op::Partial);
  launch_row_kernel(cluster_rows<C>, plan, stream, C::kThreads, 1, table_bytes);
}

/// The smallest cluster, a power of two, whose blocks together hold `cols` elements at `capacity`
/// each. It may be larger than the device supports.
inline int cluster_for(std::int64_t cols, int capacity) {
  int cluster = 1;
  while (std::int64_t{cluster} * capacity < cols) cluster *= 2;
  return cluster;
}

template <class Client>
struct Cluster : RowLevel<Client, Cluster<Client>> {
  template <bool kAligned>
  using Config = ClusterConfig<Client, 512, kAligned>;  // two blocks per SM
  static constexpr LevelText text{
      .name = "cluster",
      .changed =
          "2 to 16 blocks together hold a row of over 16,384 elements, and exchange (max, sum) "
          "directly",
      .expect =
          "two rows' slices per SM: one loads while the other stores; rows up to 262,144 elements "
          "are read once",
      .cost = "one cluster barrier per row; Hopper only, other GPUs fall back to level 5",
  };

  static Claims claims(const RowProblem<Client>& p) {
    return one_read<Client>(
        p, {at_least_previous(0.96, "the same kernel where a row fits one block")});
  }

  static void choose(RowLaunch<Client>& plan) {
    OnChip<Client>::choose(plan);
    const int cluster = cluster_for(plan.problem.shape.cols, Config<true>::kCapacity);
    if (cluster == 1 || cluster > kMaxCluster || device_info().cc() < 90) return;
    plan.cluster = cluster;
    plan.start = plan.aligned() ? start_cluster<Config<true>> : start_cluster<Config<false>>;
  }
};

}  // namespace cookbook::softmax
