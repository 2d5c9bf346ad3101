// SPDX-License-Identifier: MIT
// Sidebar: each block processes several rows, and loads the next rows while it works on one.
#pragma once

#include "chapters/09_online_softmax/level_6_cluster.cuh"
#include "common/device/cp_async.cuh"

namespace cookbook::softmax {

template <class Client, int kThreadsValue, int kElements = kElementsPerThread,
          int kStagesValue = sizeof(typename Client::T) == 4 ? 1 : 2, int kThreadsPerSm = 1024>
struct PrefetchedConfig : RowConfig<Client> {
  static constexpr int kThreads = kThreadsValue;  // per block, for one row or its slice of one
  static constexpr int kBlock = kThreads > kWarpSize ? kThreads : 128;  // threads of a block
  static constexpr int kRows = kBlock / kThreads;                       // rows per block at a time
  using RowConfig<Client>::kPack;                                       // elements per access
  static constexpr int kVectors = kElements / kPack;  // accesses per thread and row
  static constexpr int kStages = kStagesValue;        // rows in flight
  static constexpr int kMinBlocks = kThreadsPerSm / kBlock > 0 ? kThreadsPerSm / kBlock : 1;
  static constexpr int kCapacity = kThreads * kElements;  // longest slice
  static constexpr size_t kStageBytes = size_t{kVectors} * kBlock * 16;
};

template <class C>
__global__ void __launch_bounds__(C::kBlock, C::kMinBlocks)
    prefetched_rows(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                    Shape shape, typename C::Op op, int batch) {
  using T = typename C::T;
  using Partial = typename C::Op::Partial;
  constexpr int kLanes = C::kThreads < kWarpSize ? C::kThreads : kWarpSize;
  constexpr int kWarps = C::kThreads / kLanes;
  char* memory = dynamic_shared<char>();
  uint4* stages = reinterpret_cast<uint4*>(memory) + threadIdx.x;  // (stage, access) of this thread
  auto* tables = reinterpret_cast<Partial*>(memory + C::kStages * C::kStageBytes);

  const int blocks = cluster_size(), rank = cluster_block_rank();
  const std::int64_t row0 =  // rows row0, row0 + kRows, ... are this thread's
      std::int64_t{blockIdx.x / blocks} * batch * C::kRows + threadIdx.x / C::kThreads;
  const int vectors = static_cast<int>(shape.cols) / C::kPack;
  const int slice = (vectors + blocks - 1) / blocks;           // contiguous accesses of this block
  const int first = rank * slice + threadIdx.x % C::kThreads;  // this thread's first access
  const int left = min(vectors, (rank + 1) * slice) - first;  // accesses up to the end of the slice
  in += row0 * shape.in_pitch + first * C::kPack;
  out += row0 * shape.out_pitch + first * C::kPack;
  op.skip(first * C::kPack);
  if (blocks > 1) cluster_arrive();  // "this block has started"; the wait follows

  // Every thread loads what it uses itself, so its own wait is enough: no barrier.
  const auto fetch = [&](int step) {
    const bool is_row = step < batch && row0 + std::int64_t{step} * C::kRows < shape.rows;
    uint4* stage = stages + step % C::kStages * C::kVectors * C::kBlock;
#pragma unroll
    for (int v = 0; v < C::kVectors; ++v) {
      if (v * C::kThreads < (is_row ? left : 0)) {
        cp_async<16>(stage + v * C::kBlock, in + v * C::kThreads * C::kPack);
      }
    }
    cp_async_commit();  // even an empty group: it keeps the count right
    in += C::kRows * shape.in_pitch;
  };
#pragma unroll
  for (int step = 0; step < C::kStages; ++step) fetch(step);
  if (blocks > 1) cluster_wait();  // all blocks have started: their shared memory may be written

  for (int step = 0; step < batch; ++step) {
    const std::int64_t row = row0 + std::int64_t{step} * C::kRows;
    if (row - threadIdx.x / C::kThreads >= shape.rows) break;  // no row left for the whole block
    const int row_left = row < shape.rows ? left : 0;
    cp_async_wait<C::kStages - 1>();  // this thread's part of the row has arrived
    float x[C::kVectors][C::kPack];   // (accesses, elements) per thread
    const uint4* stage = stages + step % C::kStages * C::kVectors * C::kBlock;
#pragma unroll
    for (int v = 0; v < C::kVectors; ++v) {
#pragma unroll
      for (int j = 0; j < C::kPack; ++j) x[v][j] = C::Op::kPadding;
      if (v * C::kThreads < row_left) {
        load_pack(x[v], reinterpret_cast<const T*>(stage + v * C::kBlock));
      }
    }
    fetch(step + C::kStages);  // into the stage just read

    const Partial mine = op.reduce(x);
    Partial whole = op.template merge_lanes<kLanes>(mine);
    if constexpr (kWarps > 1) {
      // Two tables, alternately: when the next row's Partials arrive, this row's may still be read.
      Partial* table = tables + step % 2 * blocks * kWarps;  // (block of the cluster, warp)
      if (lane_idx() < blocks) {                             // lane r writes to block r
        Partial* entry = &table[rank * kWarps + warp_idx()];
        store_vector(blocks > 1 ? map_shared(entry, lane_idx()) : entry, whole);
      }
      if (blocks > 1) {
        cluster_sync();
      } else {
        __syncthreads();
      }
      merge_table(op, whole, table, blocks * kWarps);
    }

    const float factor = op.factor(mine, whole);
    store_elements<C>(op, x, factor, out, row_left);
    out += C::kRows * shape.out_pitch;
  }
}

template <class C>
void start_prefetched(const RowLaunch<typename C::Client>& plan, Stream stream) {
  const size_t tables_bytes =
      2 * plan.cluster * (C::kBlock / kWarpSize) * sizeof(typename C::Op::Partial);
  launch_row_kernel(prefetched_rows<C>, plan, stream, C::kBlock,
                    std::int64_t{plan.batch} * C::kRows, C::kStages * C::kStageBytes + tables_bytes,
                    plan.batch);
}

/// Rows per block (or cluster), so that the grid has `waves` times the blocks that the device
/// holds.
template <class C>
int rows_per_block(const Shape& shape, int cluster, int waves) {
  const std::int64_t resident = std::int64_t{device_info().sm_count} * C::kMinBlocks / cluster;
  const std::int64_t batch = shape.rows / (resident * C::kRows * waves + 1);
  return static_cast<int>(batch < 1 ? 1 : batch);
}

template <class Client>
struct Prefetched : RowLevel<Client, Prefetched<Client>> {
  static constexpr int kWaves = 4;  // enough that SMs which finish early get more blocks
  static constexpr LevelText text{
      .name = "prefetched",
      .changed =
          "each block computes several rows; cp.async loads the next while one is reduced and "
          "stored",
      .expect = "a full load of bytes in flight at all times, not only between two rows",
      .cost = "128 KB of shared memory per SM; 16-byte boundaries",
  };

  static Claims claims(const RowProblem<Client>& p) {
    using T = typename Client::T;
    const double accesses = static_cast<double>(p.shape.elements()) / kPackOf<T> / 32;
    return {async_loads("in").coalesced(),
            async_loads("in").bytes(pass_bytes<T>(p.shape)),
            global_stores("out").coalesced(),
            global_stores("out").requests(accesses),
            shared_loads().conflict_free(),
            at_least_previous(
                0.85, "blocks that stay drift apart, and what they hide was hidden already")};
  }

  template <int kThreads>
  static void choose_threads(RowLaunch<Client>& plan) {
    using Config = PrefetchedConfig<Client, kThreads>;
    const Shape& shape = plan.problem.shape;
    if constexpr (kThreads < 512) {
      if (shape.cols > Config::kCapacity)
        return choose_threads<(kThreads < 32 ? 32 : 2 * kThreads)>(plan);
    }
    plan.cluster = cluster_for(shape.cols, Config::kCapacity);
    plan.batch = rows_per_block<Config>(shape, plan.cluster, kWaves);
    plan.start = start_prefetched<Config>;
  }

  static void choose(RowLaunch<Client>& plan) {
    Cluster<Client>::choose(plan);
    const int cluster = cluster_for(plan.problem.shape.cols, 512 * kElementsPerThread);
    const int largest = device_info().cc() >= 90 ? kMaxCluster : 1;
    if (plan.aligned() && cluster <= largest) choose_threads<8>(plan);
  }
};

}  // namespace cookbook::softmax
