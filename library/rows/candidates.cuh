// SPDX-License-Identifier: MIT
// The kernels that can compute a softmax or an RMSNorm, each with its launch configuration: what a
// choice ranks and what the measuring program times.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "chapters/09_online_softmax/level_12_few_rows.cuh"

namespace cookbook::softmax {

/// A launch of one kernel on the rows of a plan.
template <class Client>
struct Candidate {
  using Plan = typename RowsInOrder<Client>::Plan;
  std::string name;
  Plan plan;
};

/// Every candidate that supports the rows of `bare`, in a fixed order.
template <class Client>
std::vector<Candidate<Client>> candidates(const typename Client::Level::Problem& problem,
                                          const typename Client::Level::Buffers& buffers) {
  using T = typename Client::T;
  using Plan = typename Candidate<Client>::Plan;
  const Plan bare{{{problem, buffers}}};
  const RowCase c = row_case<Client>(bare);
  const bool vectors = c.access == Access::vectors, peeled = c.access == Access::peeled;
  const std::int64_t cols = c.cols, in_vectors = cols / kPackOf<T> * kPackOf<T>;
  const std::int64_t held = c.access == Access::elements ? cols : in_vectors;
  std::vector<Candidate<Client>> list;
  const auto add = [&](std::string name, void (*start)(const RowPlan<Client>&, Stream),
                       int cluster = 1) {
    Plan plan = bare;
    plan.start = start;
    plan.cluster = cluster;
    list.push_back({std::move(name), plan});
  };
  if (vectors && cols * c.element_bytes <= kShortBytes) {
    add("short_rows", pick_short_rows<Client>(cols));
  }
  if (peeled && c.packed && cols <= kPackedRow) {
    add("packed_rows", pick_packed_rows<Client>(cols));
  }
  if constexpr (Client::kExponentials) {
    using Few = FewRows<Client>;
    if (cols <= 8) add("single_2", start_on_chip<typename Few::template Single<2>>);
    if (cols <= 32) add("single_8", start_on_chip<typename Few::template Single<8>>);
    if (cols <= 64) add("single_16", start_on_chip<typename Few::template Single<16>>);
    if (cols <= 128) add("single_32", start_on_chip<typename Few::template Single<32>>);
  }
  if (held <= kRegisterRow) add("on_chip", OnChip<Client>::pick(c.access, cols));
  add("any_length", start_any_length<Client>);
  if (!c.has_clusters) return list;

  const auto shared = [&]<bool kPeeled>() {
    using Level = InShared<Client>;
    using Row32 = typename Level::template Row<32, kPeeled>;
    using Row64 = typename Level::template Row<64, kPeeled>;
    using Row128 = typename Level::template Row<128, kPeeled>;
    using Row256 = typename Level::template Row<256, kPeeled>;
    const std::int64_t row = in_vectors;
    if (row <= Row32::kCapacity) {
      add("in_shared", start_in_shared<Row32>);
    } else if (row <= Row64::kCapacity) {
      add("in_shared", start_in_shared<Row64>);
    } else if (row <= Row128::kCapacity) {
      add("in_shared", start_in_shared<Row128>);
    } else if (row <= Row256::kCapacity) {
      add("in_shared", start_in_shared<Row256>);
    } else if (row <= kMaxCluster * Row256::kCapacity) {
      const auto blocks = static_cast<int>(ceil_div(row, std::int64_t{Row256::kCapacity}));
      add("in_shared_48k", start_in_shared<Row256>, blocks);
    }
    using Small = softmax::Slice<Client, kPeeled>;
    const auto least = static_cast<int>(ceil_div(row, std::int64_t{Small::kCapacity}));
    if (least > 1 && least <= kMaxCluster) {
      add("in_shared_32k", start_in_shared<Small>, least);
    }
    for (int blocks = 2; blocks <= kMaxCluster; blocks *= 2) {
      if (blocks > least && cols * c.element_bytes >= std::int64_t{blocks} * 8192) {
        add("in_shared_32k_x" + std::to_string(blocks), start_in_shared<Small>, blocks);
      }
    }
    using Long = LongSlice<Client, kPeeled>;
    if (row > kMaxCluster * Small::kCapacity && row <= kMaxCluster * Long::kCapacity) {
      add("in_shared_64k", start_in_shared<Long>, kMaxCluster);
    }
  };
  if (c.access != Access::elements && cols * c.element_bytes >= kSharedRow) {
    vectors ? shared.template operator()<false>() : shared.template operator()<true>();
  }

  using Register = typename Signals<Client>::template Config<true>;
  const int cluster = cluster_for(cols, Register::kCapacity);
  if (cluster > 1 && cluster <= kMaxCluster) {
    using Single = typename Signals<Client>::template Config<false>;
    const bool aligned = Client::aligned(bare);
    add("cluster", aligned ? start_cluster<Register> : start_cluster<Single>, cluster);
    add("signals", aligned ? start_signalled<Register> : start_signalled<Single>, cluster);
  }
  if (!vectors) return list;

  using Few = FewRows<Client>;
  using Slice16 = typename Few::template Slice<16>;
  using Slice32 = typename Few::template Slice<32>;
  for (const int elements : {16, 32}) {
    const auto least = static_cast<int>(ceil_div(cols, std::int64_t{256} * elements));
    for (int blocks = std::max(least, 2); blocks <= kMaxCluster; blocks *= 2) {
      if (cols * c.element_bytes < std::int64_t{blocks} * 4096) break;
      add("slices_" + std::to_string(elements) + "_x" + std::to_string(blocks / std::max(least, 1)),
          elements == 16 ? start_signalled<Slice16> : start_signalled<Slice32>, blocks);
    }
  }
  if (!c.large_shared) return list;

  const auto persistent = [&](std::string name, auto plan_it) {
    Plan plan = bare;
    plan_it(plan);
    if (plan.cluster <= kMaxCluster) list.push_back({std::move(name), plan});
  };
  if constexpr (!Client::kExponentials) {
    if (cols <= 16384) {
      persistent("rows_in_order", [](Plan& plan) { RowsInOrder<Client>::plan_in_order(plan); });
    }
  }
  const auto resident = [&]<class C>(std::string name, bool power_of_two) {
    if (cols > kMaxCluster * std::int64_t{C::kCapacity} || cols <= 8192) return;
    persistent(std::move(name), [&](Plan& plan) {
      HeldWeights<Client>::template stay_with<C>(plan, 0, power_of_two);
    });
  };
  if constexpr (Client::kExponentials) {
    using Clusters = StayingClusters<Client>;
    if constexpr (sizeof(T) == 2) {
      using Three = typename Clusters::template Small<3>;
      using Four = typename Clusters::template Small<4>;
      resident.template operator()<Three>("resident_256_3", false);
      resident.template operator()<Four>("resident_256_4", false);
    }
    resident.template operator()<typename Clusters::Config>("resident_512_2", true);
  } else {
    using Held = HeldWeights<Client>;
    resident.template operator()<typename Held::template Config<256>>("resident_256_2", true);
    resident.template operator()<typename Held::template Config<512>>("resident_512_1", true);
  }
  return list;
}

}  // namespace cookbook::softmax
