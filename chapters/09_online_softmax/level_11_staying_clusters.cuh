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
  static constexpr LevelText text{
      .name = "staying_clusters",
      .changed =
          "rows beyond 131,072 elements: a cluster stays, takes the next row from a counter, and "
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
      HeldWeights<Client>::template stay_with<Config>(plan, 0);
    }
    return plan;
  }

  static void run(const Plan& plan, Stream stream) { RowsInOrder<Client>::run(plan, stream); }
};

}  // namespace cookbook::softmax
