// SPDX-License-Identifier: MIT
// Level 12: few rows. All blocks are resident, so a launch is one round trip to memory and the
// latency of its code: small kernels, and more SMs per row.
#pragma once

#include <type_traits>

#include "chapters/09_online_softmax/level_11_staying_clusters.cuh"

namespace cookbook::softmax {

template <class Client>
struct FewRows : Client::Level {
  using Plan = typename RowsInOrder<Client>::Plan;
  using Before =
      std::conditional_t<Client::kExponentials, StayingClusters<Client>, HeldWeights<Client>>;
  /// Level 7's kernel with a slice of 256 threads per block.
  template <int kElements>
  using Slice = ClusterConfig<Client, 256, true, kElements>;
  /// Level 5's kernel with four elements per lane, each in an access of its own.
  template <int kLanes>
  using Single = OnChipConfig<Client, kLanes, Access::elements, 4, 2048>;
  static constexpr LevelText text{
      .name = "few_rows",
      .changed =
          "few rows: blocks of 256 threads and 16 elements each share a row beyond 8,192 elements; "
          "softmax rows of up to 128 elements take single accesses",
      .expect =
          "every block is resident, so nothing hides a latency: fewer instructions, more SMs per "
          "row, no barrier in a short one. Other rows: the level before",
      .cost = "six more kernels, and bounds that were measured",
  };

  static Claims claims(const typename Client::Level::Problem& p) {
    return chosen_claims<Client>(p);
  }

  static Plan prepare(const typename Client::Level::Problem& problem,
                      const typename Client::Level::Buffers& buffers) {
    Plan plan = Before::prepare(problem, buffers);
    const RowCase c = row_case<Client>(plan);
    if (single_accesses_pay(c)) {
      if constexpr (Client::kExponentials) plan.start = pick_single(c);
    } else if (const int elements = elements_for_few_rows(c); elements != 0) {
      plan.cluster = blocks_for_few_rows(c);
      plan.start = elements == 16 ? start_signalled<Slice<16>> : start_signalled<Slice<32>>;
      plan.start_in_order = nullptr;
    }
    return plan;
  }

  static auto pick_single(const RowCase& c) -> void (*)(const RowPlan<Client>&, Stream) {
    switch (lanes_of_single_accesses(c)) {
      case 2: return start_on_chip<Single<2>>;
      case 8: return start_on_chip<Single<8>>;
      case 16: return start_on_chip<Single<16>>;
      default: return start_on_chip<Single<32>>;
    }
  }

  static void run(const Plan& plan, Stream stream) { RowsInOrder<Client>::run(plan, stream); }
};

}  // namespace cookbook::softmax
