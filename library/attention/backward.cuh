// SPDX-License-Identifier: MIT
// The gradients of attention: the fastest of chapter 13's kernels that supports the problem, and a
// variant whose bytes are the same in every run.
#pragma once

#include "chapters/13_attention_backward/level_1_tiled.cuh"
#include "chapters/13_attention_backward/level_9_persistent.cuh"
#include "common/device/sync.cuh"
#include "common/harness/contract/c_interface.hpp"

namespace cookbook::attention::backward {

struct Backward : Level {
  static constexpr LevelText text{
      .name = "backward",
      .changed = "persistent, tensor_cores or tiled, by layout and GPU",
      .expect = "the fastest of them",
      .cost = "dq differs from run to run in its last bits",
  };
  static constexpr bool same_every_run = false;
  struct Plan {
    PlannedRun run;
  };
  /// Calls f(L{}) with the level that computes the problem; false: none supports it.
  template <class F>
  static bool choose(const Problem& p, const DeviceInfo& device, const F& f) {
    const auto take = [&](auto level) {
      if (!decltype(level)::supports(p, device)) return false;
      f(level);
      return true;
    };
    return take(Persistent{}) || take(TensorCores{}) || take(Tiled{});
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return Tiled::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan;
    choose(p, device_info(),
           [&](auto level) { plan.run = prepare_level<decltype(level), Problem, Buffers>(p, at); });
    return plan;
  }
  static Claims claims(const Problem& p) {
    Claims claims;
    choose(p, device_info(), [&](auto level) { claims = mechanism(decltype(level)::claims(p)); });
    return claims;
  }
  static void run(const Plan& plan, Stream stream) { plan.run(stream); }
};

/// Key tiles add to the sums of a query tile one after the other: without a mask from the first to
/// the last, with one from the last that the queries see to the first. Blocks take key tiles in
/// this order, too, so whoever has an earlier turn is already running. With a mask a later key tile
/// reaches a query tile sooner, because it begins with later queries.
struct InOrder {
  int* turns;       // [batch * heads_q][query_tiles]: key tiles that have added; 0 between launches
  int query_tiles;  // of a head, padding included
  int queries;      // per query tile
  int key_tiles;    // of a head
  int heads_q, shift;  // shift: seq_k - seq_q
  bool causal;

  /// For one key tile.
  struct Turns {
    const InOrder& order;
    int* turns;  // of the batch
    int number;  // of the key tile

    __device__ __forceinline__ int turn(int tile) const {
      if (!order.causal) return number;
      const int seen = ((tile + 1) * order.queries + order.shift + 127) / 128;  // key tiles
      return min(order.key_tiles, seen) - 1 - number;
    }
    __device__ __forceinline__ void wait(int head, int tile) const {
      spin_wait_until_equal(turns + head * order.query_tiles + tile, turn(tile));
      __syncwarp();
    }
    __device__ __forceinline__ void done(int head, int tile) const {
      const bool last = number == (order.causal ? 0 : order.key_tiles - 1);
      if (lane_idx() == 0) {
        tma_store_wait<0>();
        store_release(turns + head * order.query_tiles + tile, last ? 0 : turn(tile) + 1);
      }
      __syncwarp();
    }
  };
  __device__ __forceinline__ Turns of(const KeyTile& own) const {
    return {*this, turns + own.batch * heads_q * query_tiles, own.first_key / 128};
  }
};

struct Deterministic : Persistent {
  static constexpr LevelText text{
      .name = "deterministic",
      .changed = "key tiles add to a dq one after the other",
      .expect = "0.85x of persistent: at the start each key tile waits for the one before it",
      .cost = "a counter per query tile",
  };
  static constexpr bool same_every_run = true;

  struct Plan {
    PersistentPlan base;
    DeviceMemory turns;
  };
  static Plan prepare(const Problem& p, const Buffers& at) {
    const size_t tiles = PlanBase::rows(p) / queries_per_tile(p);
    Plan plan{{p, at, queries_per_tile(p), p.shape().causal}, {tiles * sizeof(int), "turns"}};
    plan.turns.fill(0);
    return plan;
  }
  static Claims claims(const Problem& p) { return mechanism(Persistent::claims(p)); }
  static void run(const Plan& plan, Stream stream) {
    const Problem& p = plan.base.problem;
    const Shape& s = p.shape();
    const int queries = queries_per_tile(p);
    run_in_order(plan.base, stream,
                 InOrder{plan.turns.as<int>(), PlanBase::padded(p) / queries, queries,
                         plan.base.schedule.query_tiles, s.heads_q, s.seq_k - s.seq_q, s.causal});
  }
};

}  // namespace cookbook::attention::backward
