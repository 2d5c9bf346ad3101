// SPDX-License-Identifier: MIT
// Sidebars: softmax's last level and RMSNorm's last two, with clusters that stay for one row or for
// eight, and with three blocks for all rows.
#pragma once

#include "chapters/09_online_softmax/level_11_staying_clusters.cuh"

namespace cookbook::softmax {

/// The last level's kernel for long rows, at any length beyond one block's.
template <class Client, int kRowsPerCluster>
struct Stay : Client::Level {
  using Plan = typename HeldWeights<Client>::Plan;
  using Problem = typename Client::Level::Problem;
  using Config = typename StayingClusters<Client>::Config;  // softmax's
  static constexpr bool kOneRow = kRowsPerCluster == 1, kWeights = Client::Op::kWeights;
  static constexpr LevelText text{
      .name = kOneRow ? "one_row" : "eight_rows",
      .changed = kOneRow ? "start: a cluster computes one row" : "a cluster computes eight rows",
      .expect = kOneRow ? "a cluster loads all weights, if there are any, for one row"
                        : "the next row arrives while this one is finished; an eighth of the bytes "
                          "of weights",
      .cost = "-",
  };

  static Claims claims(const Problem& p) {
    using T = typename Client::T;
    Claims claims = {tma_loads("in").bytes(pass_bytes<T>(p.shape)),
                     global_stores("out").coalesced(), shared_loads().conflict_free()};
    if constexpr (kWeights) {
      const std::int64_t clusters = ceil_div(p.shape.rows, std::int64_t{kRowsPerCluster});
      claims.push_back(global_loads("weight").bytes(pass_bytes<T>({clusters, p.shape.cols, 0, 0})));
    }
    return claims;
  }

  static Plan prepare(const Problem& problem, const typename Client::Level::Buffers& buffers) {
    Plan plan{PackedRows<Client>::prepare(problem, buffers)};
    const RowCase c = row_case<Client>(plan);
    const bool has_cluster = c.cols > Config::kCapacity && c.cols <= kClusterRow;
    if (c.has_clusters && c.large_shared && c.access == Access::vectors && has_cluster) {
      if constexpr (kWeights) {
        HeldWeights<Client>::stay(plan, kRowsPerCluster);
      } else {
        StayingClusters<Client>::stay(plan, kRowsPerCluster);
      }
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
