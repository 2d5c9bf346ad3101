// SPDX-License-Identifier: MIT
// Level 9: short rows. As few lanes per row as it has 16-byte accesses, and several rows per
// thread.
#pragma once

#include "chapters/09_online_softmax/level_8_in_shared.cuh"

namespace cookbook::softmax {

template <class ClientValue, int kLanesValue>
struct ShortRowsConfig {
  using Client = ClientValue;
  using T = typename Client::T;
  using Op = typename Client::Op;
  static constexpr int kLanes = kLanesValue;  // for one row: 1 ... 8, a power of two
  static constexpr int kPack = kPackOf<T>;    // elements per access; a lane has one access of a row
  static constexpr int kRows = kElementsPerThread / kPack;  // of a thread
  static constexpr int kBlock = 128;
  static constexpr int kTogether = kBlock / kLanes;  // rows that lie side by side
  static constexpr int kCapacity = kLanes * kPack;   // longest row
};

template <class C>
__global__ void __launch_bounds__(C::kBlock, 1024 / C::kBlock)
    short_rows(const typename C::T* __restrict__ in, typename C::T* __restrict__ out, Shape shape,
               typename C::Op op) {
  using Partial = typename C::Op::Partial;
  const int lane = threadIdx.x % C::kLanes;
  const bool in_row = lane < static_cast<int>(shape.cols) / C::kPack;
  const std::int64_t row0 =
      std::int64_t{blockIdx.x} * (C::kRows * C::kTogether) + threadIdx.x / C::kLanes;
  in += row0 * shape.in_pitch + lane * C::kPack;
  out += row0 * shape.out_pitch + lane * C::kPack;
  op.skip(lane * C::kPack);

  float x[C::kRows][1][C::kPack];  // (rows, accesses of a row, elements) per thread
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
#pragma unroll
    for (int j = 0; j < C::kPack; ++j) x[r][0][j] = C::Op::kPadding;
    const bool inside = in_row && row0 + r * C::kTogether < shape.rows;
    if (inside) load_pack_streaming(x[r][0], in + r * C::kTogether * shape.in_pitch);
  }
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    const Partial mine = op.reduce(x[r]);
    const Partial whole = op.template merge_lanes<C::kLanes>(mine);
    const float factor = op.factor(mine, whole);
    const bool inside = in_row && row0 + r * C::kTogether < shape.rows;
    if (inside) {
      op.finish(x[r][0], factor, 0);
      store_pack(out + r * C::kTogether * shape.out_pitch, x[r][0]);
    }
  }
}

template <class C>
void start_short_rows(const RowPlan<typename C::Client>& plan, Stream stream) {
  const Shape& shape = plan.problem.shape;
  launch(short_rows<C>, {row_grid(shape, C::kRows * C::kTogether), dim3(C::kBlock)}, stream,
         plan.buffers.in, plan.buffers.out, shape, C::Client::op(plan));
}

/// The fewest lanes that hold a row.
template <class Client, int kLanes = 1>
auto pick_short_rows(std::int64_t cols) -> void (*)(const RowPlan<Client>&, Stream) {
  using Config = ShortRowsConfig<Client, kLanes>;
  if constexpr (Config::kLanes * 16 < kShortBytes) {
    if (cols > Config::kCapacity) return pick_short_rows<Client, kLanes * 2>(cols);
  }
  return start_short_rows<Config>;
}

/// What the choice of a kernel depends on.
template <class Client>
RowCase row_case(const typename Client::Level::Plan& plan) {
  const Shape& s = plan.problem.shape;
  RowCase c;
  c.rows = s.rows;
  c.cols = s.cols;
  c.element_bytes = static_cast<int>(sizeof(typename Client::T));
  c.access = Client::access(plan);
  c.packed = s.in_pitch == s.cols && s.out_pitch == s.cols;
  c.exponentials = Client::kExponentials;
  c.sm_count = device_info().sm_count;
  c.has_clusters = device_info().cc() >= 90;
  c.large_shared = device_info().smem_per_block_bytes >= 200 * 1024;
  return c;
}

/// Plans the kernel that was chosen. Level 10 plans packed_rows.
template <class Client>
RowPlan<Client> plan_rows(const RowPlan<Client>& bare, const RowCase& c, RowKernel kernel) {
  RowPlan<Client> plan = bare;
  switch (kernel) {
    case RowKernel::short_rows: plan.start = pick_short_rows<Client>(c.cols); return plan;
    case RowKernel::in_shared: {
      InShared<Client>::pick(plan);
      const int cluster = cluster_for_few_rows(c);
      if (cluster <= plan.cluster) return plan;
      plan.cluster = cluster;
      plan.start = c.access == Access::vectors ? start_in_shared<Slice<Client>>
                                               : start_in_shared<Slice<Client, true>>;
      return plan;
    }
    case RowKernel::cluster: return Signals<Client>::prepare(plan.problem, plan.buffers);
    case RowKernel::any_length: plan.start = start_any_length<Client>; return plan;
    default: return OnChip<Client>::prepare(plan.problem, plan.buffers);
  }
}

/// What levels 9 and 10 claim: of short rows, and of those for which they keep the level before.
template <class Client>
Claims chosen_claims(const typename Client::Level::Problem& p) {
  using T = typename Client::T;
  if (pass_bytes<T>({1, p.shape.cols, 0, 0}) < kSharedRow) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced(),
            global_loads("in").bytes(pass_bytes<T>(p.shape))};
  }
  const double accesses = static_cast<double>(p.shape.elements()) / kPackOf<T> / 32;
  Claims claims = {global_stores("out").coalesced(), global_stores("out").requests(accesses),
                   at_least_previous(0.98, "the same kernel for longer rows")};
  if (Client::kExponentials) claims.push_back(fraction_of_roof(0.95));
  return claims;
}

template <class Client>
struct ShortRows : Client::Level {
  using Plan = RowPlan<Client>;
  static constexpr LevelText text{
      .name = "short_rows",
      .changed =
          "rows of up to 128 bytes: as few lanes per row as it has 16-byte accesses, several rows "
          "per thread",
      .expect =
          "32 elements of loads in flight per thread at any row length; rows of 64 bf16 elements "
          "had 8. Longer rows: the level before",
      .cost = "one more kernel per range of lengths, and a rule that chooses",
  };

  static Claims claims(const typename Client::Level::Problem& p) {
    return chosen_claims<Client>(p);
  }

  static Plan prepare(const typename Client::Level::Problem& problem,
                      const typename Client::Level::Buffers& buffers) {
    const Plan plan{{problem, buffers}};
    RowCase c = row_case<Client>(plan);
    c.packed = false;  // that is level 10
    return plan_rows(plan, c, choose_row_kernel(c));
  }

  static void run(const Plan& plan, Stream stream) { plan.start(plan, stream); }
};

}  // namespace cookbook::softmax
