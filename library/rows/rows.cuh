// SPDX-License-Identifier: MIT
// The softmax of every row and RMSNorm, fp32 and bf16: any shape and any pitch, by the kernel that
// suits it.
#pragma once

#include <stdexcept>

#include "chapters/09_online_softmax/rms_level_2_held_weights.cuh"
#include "library/rows/choose.hpp"
#include "library/rows/packed_rows.cuh"
#include "library/rows/short_rows.cuh"

namespace cookbook::softmax {

/// What the choice depends on besides the extents.
template <class Client>
RowCase row_case(const RowLaunch<Client>& plan) {
  const Shape& s = plan.problem.shape;
  const Access access = Client::access(plan);
  const bool hopper = device_info().cc() >= 90 && device_info().smem_per_block_bytes >= 200 * 1024;
  return {.element_bytes = static_cast<int>(sizeof(typename Client::T)),
          .vectors = access == Access::vectors,
          .peeled = access == Access::peeled,
          .packed = s.in_pitch == s.cols && s.out_pitch == s.cols,
          .exponentials = Client::kExponentials,
          .has_clusters = hopper,
          .sms = device_info().sm_count};
}

template <class Client, bool kPeeled>
void plan_in_shared(RowLaunch<Client>& plan, const RowCandidate& k) {
  using Level = InShared<Client>;
  if (k.kernel == RowKernel::in_shared) return Level::template pick_row<kPeeled>(plan);
  plan.start = k.elements == 48   ? start_in_shared<typename Level::template Row<256, kPeeled>>
               : k.elements == 64 ? start_in_shared<LongSlice<Client, kPeeled>>
                                  : start_in_shared<softmax::Slice<Client, kPeeled>>;
}

template <class Client>
StartRows<Client> pick_single(int lanes) {
  if constexpr (Client::kExponentials) {
    return lanes == 2    ? start_on_chip<OnChipConfig<Client, 2, Access::elements, 4, 2048>>
           : lanes == 8  ? start_on_chip<OnChipConfig<Client, 8, Access::elements, 4, 2048>>
           : lanes == 16 ? start_on_chip<OnChipConfig<Client, 16, Access::elements, 4, 2048>>
                         : start_on_chip<OnChipConfig<Client, 32, Access::elements, 4, 2048>>;
  }
  return nullptr;
}

template <class Client>
StartRows<Client> pick_signals(const RowCandidate& k, bool aligned) {
  if (k.elements == 16) return start_signalled<ClusterConfig<Client, 256, true, 16>>;
  if (k.threads == 256) return start_signalled<ClusterConfig<Client, 256, true, 32>>;
  using Level = Signals<Client>;
  return aligned ? start_signalled<typename Level::template Config<true>>
                 : start_signalled<typename Level::template Config<false>>;
}

/// Softmax: two blocks of 512 threads per SM, or three or four of 256. RMSNorm: as its level 2.
template <class Client>
void plan_persistent(RowLaunch<Client>& plan, const RowCandidate& k, std::int64_t rows) {
  if constexpr (!Client::kExponentials) {
    k.threads == 256 ? plan_persistent<typename HeldWeights<Client>::Config>(plan, rows)
                     : plan_persistent<typename HeldWeights<Client>::LongConfig>(plan, rows);
  } else {
    if constexpr (sizeof(typename Client::T) == 2) {
      if (k.blocks_per_sm == 3) {
        return plan_persistent<PersistentConfig<Client, 256, 3 * 256>>(plan, rows, false);
      }
      if (k.blocks_per_sm == 4) {
        return plan_persistent<PersistentConfig<Client, 256, 4 * 256>>(plan, rows, false);
      }
    }
    plan_persistent<PersistentConfig<Client, 512, 1024>>(plan, rows);
  }
}

/// Plans a candidate that supports these rows. `limit`, for tests: rows per persistent cluster, or
/// persistent blocks.
template <class Client>
void plan_rows(RowLaunch<Client>& plan, const RowCandidate& k, std::int64_t limit = 0) {
  const std::int64_t cols = plan.problem.shape.cols;
  plan.cluster = blocks_per_row(k, row_case(plan), cols);
  switch (k.kernel) {
    case RowKernel::short_rows: plan.start = pick_short_rows<Client>(cols); break;
    case RowKernel::packed_rows: plan.start = pick_packed_rows<Client>(cols); break;
    case RowKernel::single: plan.start = pick_single<Client>(k.threads); break;
    case RowKernel::on_chip: plan.start = OnChip<Client>::pick(Client::access(plan), cols); break;
    case RowKernel::any_length: plan.start = start_any_length<Client>; break;
    case RowKernel::in_shared:
    case RowKernel::slices:
      plan.aligned() ? plan_in_shared<Client, false>(plan, k)
                     : plan_in_shared<Client, true>(plan, k);
      break;
    case RowKernel::signals: plan.start = pick_signals<Client>(k, plan.aligned()); break;
    case RowKernel::in_order:
      if constexpr (!Client::kExponentials) RowsInOrder<Client>::plan_in_order(plan, limit);
      break;
    case RowKernel::persistent: plan_persistent(plan, k, limit); break;
  }
}

/// The same of any candidate. Throws std::invalid_argument if it does not support the rows.
template <class Client>
void plan_supported(RowLaunch<Client>& plan, const RowCandidate& k, std::int64_t limit = 0) {
  if (blocks_per_row(k, row_case(plan), plan.problem.shape.cols) == 0) {
    throw std::invalid_argument("its threads do not hold these rows, or not with this alignment");
  }
  plan_rows(plan, k, limit);
}

/// What was measured of this GPU, or null. The SIMT backend stands for it.
inline const library::Recording* row_recording() {
  const bool measured =
      device_info().is_simt ? device_info().cc() == 90 : device_info().name == "NVIDIA H200";
  return measured ? &h200_row_recording() : nullptr;
}

template <class Client>
struct Rows : RowLevel<Client, Rows<Client>> {
  static constexpr LevelText text{
      .name = "rows",
      .changed = "the candidate with the least predicted time, corrected by measured ones",
      .expect = "as fast as the fastest candidate",
      .cost = "nothing that a kernel sees",
  };

  static Claims claims(const RowProblem<Client>& p) {
    Claims claims = {global_stores("out").bytes(pass_bytes<typename Client::T>(p.shape))};
    if (p.bytes() > 1e8) claims.push_back(fraction_of_roof(0.93));
    return claims;
  }

  static void choose(RowLaunch<Client>& plan) {
    const Shape& s = plan.problem.shape;
    plan_rows(plan, choose_rows(row_case(plan), s.rows, s.cols, row_recording()));
  }
};

/// A candidate as a level, so that it is tested and measured alone.
template <class Client>
LevelEntry only(const RowCandidate& candidate, std::int64_t limit = 0) {
  using Level = Rows<Client>;
  LevelEntry level = make_level<Level>();
  level.name = candidate.name;
  level.changed = "one candidate";
  level.expect = "fast at some shapes";
  level.cost = "slow at others";
  level.supports = [&candidate](const AnyProblem& any, const DeviceInfo&) {
    const RowLaunch<Client> plan{{*static_cast<const typename Level::Problem*>(any.get()), {}}};
    return blocks_per_row(candidate, row_case(plan), plan.problem.shape.cols) > 0
               ? Support::yes()
               : Support::no("its threads do not hold these rows, or not with this alignment");
  };
  level.prepare = [&candidate, limit](const AnyProblem& problem, const DevicePointers& at) {
    RowLaunch<Client> plan{
        {*static_cast<const typename Level::Problem*>(problem.get()), Level::Buffers::bind(at)}};
    plan_supported(plan, candidate, limit);
    return std::function<void(Stream)>([plan](Stream stream) { plan.start(plan, stream); });
  };
  level.claims = [&candidate](const AnyProblem& any) {
    const auto& p = *static_cast<const typename Level::Problem*>(any.get());
    const double bytes = pass_bytes<typename Client::T>(p.shape);
    Claims claims = {global_stores("out").bytes(bytes)};
    switch (candidate.kernel) {  // chapter 9 claims more of its kernels, at rows that suit them
      case RowKernel::any_length: break;
      case RowKernel::in_shared:
      case RowKernel::slices:
      case RowKernel::in_order:
      case RowKernel::persistent: claims.push_back(tma_loads("in").bytes(bytes)); break;
      case RowKernel::short_rows:
      case RowKernel::packed_rows:
        claims.push_back(global_loads("in").coalesced());
        claims.push_back(global_stores("out").coalesced());
        [[fallthrough]];
      default: claims.push_back(global_loads("in").bytes(bytes));
    }
    return claims;
  };
  return level;
}

}  // namespace cookbook::softmax
