// SPDX-License-Identifier: MIT
// Sidebars: softmax's last level and RMSNorm's last two, with clusters that stay for one row or for
// eight, and with three blocks for all rows.
#pragma once

#include "chapters/09_online_softmax/level_11_staying_clusters.cuh"

namespace cookbook::softmax {

/// Softmax's kernel for long rows, at any length beyond one block's.
template <class T, int kRowsPerCluster>
struct StaySoftmax : Level<T> {
  using Client = Softmax<T>;
  using Plan = typename StayingClusters<Client>::Plan;
  static constexpr LevelText text{
      .name = kRowsPerCluster == 1 ? "one_row" : "eight_rows",
      .changed = kRowsPerCluster == 1 ? "start: a cluster computes one row"
                                      : "a cluster computes eight rows",
      .expect = kRowsPerCluster == 1 ? "nothing arrives while a row is finished"
                                     : "the next row arrives while this one is finished",
      .cost = "-",
  };

  static Claims claims(const Problem<T>& p) {
    return {tma_loads("in").bytes(pass_bytes<T>(p.shape)), global_stores("out").coalesced(),
            shared_loads().conflict_free()};
  }

  static Plan prepare(const Problem<T>& problem, const Buffers<T>& buffers) {
    Plan plan{PackedRows<Client>::prepare(problem, buffers)};
    using Config = typename StayingClusters<Client>::Config;
    const RowCase c = row_case<Client>(plan);
    const bool has_cluster = c.cols > Config::kCapacity && c.cols <= kClusterRow;
    if (c.has_clusters && c.large_shared && c.access == Access::vectors && has_cluster) {
      HeldWeights<Client>::template stay_with<Config>(plan, kRowsPerCluster);
    }
    return plan;
  }

  static void run(const Plan& plan, Stream stream) { RowsInOrder<Client>::run(plan, stream); }
};

template <class T, int kRowsPerCluster>
struct Stay : RmsLevel<T> {
  using Client = RmsNorm<T>;
  using Plan = typename HeldWeights<Client>::Plan;
  static constexpr LevelText text{
      .name = kRowsPerCluster == 1 ? "one_row" : "eight_rows",
      .changed = kRowsPerCluster == 1 ? "start: a cluster computes one row, and loads all weights"
                                      : "a cluster computes eight rows, and loads the weights once",
      .expect = kRowsPerCluster == 1 ? "as many bytes of weights as of rows, from L2"
                                     : "an eighth of the bytes of weights",
      .cost = "-",
  };

  static Claims claims(const RmsProblem<T>& p) {
    const std::int64_t clusters = ceil_div(p.shape.rows, std::int64_t{kRowsPerCluster});
    return {global_loads("weight").bytes(pass_bytes<T>({clusters, p.shape.cols, 0, 0})),
            tma_loads("in").bytes(pass_bytes<T>(p.shape)), global_stores("out").coalesced(),
            shared_loads().conflict_free()};
  }

  static Plan prepare(const RmsProblem<T>& problem, const RmsBuffers<T>& buffers) {
    Plan plan{PackedRows<Client>::prepare(problem, buffers)};
    const RowCase c = row_case<Client>(plan);
    const bool has_cluster =
        c.cols > HeldWeights<Client>::template Config<512>::kCapacity;  // of two or more
    if (c.has_clusters && c.large_shared && c.access == Access::vectors && has_cluster &&
        c.cols <= kClusterRow) {
      HeldWeights<Client>::stay(plan, kRowsPerCluster);
    }
    return plan;
  }

  static void run(const Plan& plan, Stream stream) { RowsInOrder<Client>::run(plan, stream); }
};

/// Level rows_in_order with three blocks for all rows, so that each takes many tickets.
template <class T>
struct ThreeBlocks : RmsLevel<T> {
  using Client = RmsNorm<T>;
  using Plan = typename RowsInOrder<Client>::Plan;
  static constexpr LevelText text{
      .name = "three_blocks",
      .changed = "three blocks compute all rows, and load the weights three times",
      .expect = "the rows in order; slow, since three SMs have few bytes in flight",
      .cost = "-",
  };

  static Claims claims(const RmsProblem<T>& p) {
    return {global_loads("weight").bytes(3 * pass_bytes<T>({1, p.shape.cols, 0, 0})),
            tma_loads("in").bytes(pass_bytes<T>(p.shape)), global_stores("out").coalesced(),
            shared_loads().conflict_free()};
  }

  static Plan prepare(const RmsProblem<T>& problem, const RmsBuffers<T>& buffers) {
    Plan plan{PackedRows<Client>::prepare(problem, buffers)};
    const RowCase c = row_case<Client>(plan);
    if (!c.has_clusters || !c.large_shared || c.access != Access::vectors || c.cols > 16384)
      return plan;
    plan.blocks_per_launch = 3;
    RowsInOrder<Client>::plan_in_order(plan);
    return plan;
  }

  static void run(const Plan& plan, Stream stream) { RowsInOrder<Client>::run(plan, stream); }
};

}  // namespace cookbook::softmax
