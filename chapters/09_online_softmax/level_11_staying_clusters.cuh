// SPDX-License-Identifier: MIT
// Level 11: the longest rows: a cluster stays for many rows, and the next one arrives while it
// finishes this one. The kernel of RMSNorm's last level, without weights.
#pragma once

#include "chapters/09_online_softmax/rms_level_2_held_weights.cuh"

namespace cookbook::softmax {

template <class Client>
struct StayingClusters : Client::Level {
  using Plan = typename RowsInOrder<Client>::Plan;
  /// Two blocks per SM: rows in 1,024 x 32 registers, and the next 128 KB in shared memory.
  using Config = StayingConfig<Client, 512, 1024>;
  /// bf16 rows up to 131,072 elements: blocks of 256 threads, 3 or 4 per SM, and as many per row as
  /// it needs. Where the cluster is larger, 4 per SM: a GPC has room for more clusters.
  template <int kBlocksPerSm>
  using Small = StayingConfig<Client, 256, kBlocksPerSm * 256>;
  static constexpr LevelText text{
      .name = "staying_clusters",
      .changed =
          "rows beyond 131,072 elements, and bf16 rows that fill level 8's slices in part: a "
          "cluster "
          "stays, takes the next row from a counter, and "
          "keeps a row in registers while bulk copies load the next",
      .expect =
          "no SM waits for the end of a cluster of 16 blocks, and one exponential per element "
          "instead of two. Other rows: the level before",
      .cost = "a counter in memory; vectors only",
  };

  static Claims claims(const typename Client::Level::Problem& p) {
    return chosen_claims<Client>(p);
  }

  static Plan prepare(const typename Client::Level::Problem& problem,
                      const typename Client::Level::Buffers& buffers) {
    Plan plan{PackedRows<Client>::prepare(problem, buffers)};
    if (staying_clusters_pay(row_case<Client>(plan))) {
      stay(plan, 0);
    }
    return plan;
  }

  /// A cluster for `rows` rows; 0: as many clusters as fit on the GPU.
  static void stay(Plan& plan, std::int64_t rows) {
    using Clusters = HeldWeights<Client>;
    if constexpr (sizeof(typename Client::T) == 2) {
      const std::int64_t cols = plan.problem.shape.cols;
      if (cols <= kThreeBlocksRow) return Clusters::template stay_with<Small<3>>(plan, rows, false);
      if (cols <= kSmallBlocksRow) return Clusters::template stay_with<Small<4>>(plan, rows, false);
    }
    Clusters::template stay_with<Config>(plan, rows);
  }

  static void run(const Plan& plan, Stream stream) { RowsInOrder<Client>::run(plan, stream); }
};

}  // namespace cookbook::softmax
