// SPDX-License-Identifier: MIT
// RMSNorm of long rows: a persistent cluster takes many rows, in order. Each of its blocks loads
// its slice of the weights once, and the next rows while it finishes this one.
#pragma once

#include <algorithm>

#include "chapters/09_online_softmax/level_8_in_shared.cuh"
#include "chapters/09_online_softmax/rms_level_1_rows_in_order.cuh"

namespace cookbook::softmax {

template <class Client, int kThreadsValue, int kThreadsPerSm = 512>
struct PersistentConfig : RowConfig<Client> {
  static constexpr int kThreads = kThreadsValue;  // of each block, for its slice of the rows
  static constexpr int kMinBlocks = kThreadsPerSm / kThreads;  // of each SM
  using RowConfig<Client>::kPack;                              // elements per access
  static constexpr int kVectors = kElementsPerThread / kPack;  // accesses of a slice per thread
  static constexpr int kSlice = kThreads * kVectors;           // accesses
  static constexpr int kCapacity = kSlice * kPack;             // longest slice
  /// Slices in shared memory. Two blocks per SM were measured to need less of it than one.
  static constexpr int kStages = (kMinBlocks == 1 ? 192 : 128) * 1024 / (kMinBlocks * kSlice * 16);
  static constexpr int kStagesBytes = kStages * kSlice * 16;
  static_assert(kMinBlocks * kStagesBytes <= 200 * 1024, "what fits on an SM");
  /// What a block tells the others of its cluster about a row. The first block's has the number of
  /// a later row as well: that of the load that the next row's stage makes room for.
  struct alignas(2 * sizeof(typename Client::Op::Partial)) Message {
    typename Client::Op::Partial part;
    int row;
  };
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kMinBlocks)
    persistent_rows(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                    Shape shape, typename C::Op op, RowCounter* counter) {
  using Partial = typename C::Op::Partial;
  using Message = typename C::Message;
  constexpr int kWarps = C::kThreads / kWarpSize;
  const int blocks = cluster_size(), rank = cluster_block_rank();
  const int thread = threadIdx.x;
  char* memory = dynamic_shared<char>();
  auto* stages = reinterpret_cast<uint4*>(memory);                      // (stage, access)
  auto* tables = reinterpret_cast<Message*>(memory + C::kStagesBytes);  // (table, block of cluster)
  auto* full = reinterpret_cast<std::uint64_t*>(tables + 2 * blocks);   // stage s has arrived
  auto* tables_full = full + C::kStages;                                // table t is complete
  auto* warps = reinterpret_cast<Partial*>(tables_full + 2);  // (table, warp of this block)
  auto* rows = reinterpret_cast<int*>(warps + 2 * kWarps);  // what a stage holds; -1: no more rows

  const int vectors = static_cast<int>(shape.cols) / C::kPack;
  const int slice = slice_of(vectors, blocks);                   // contiguous accesses
  const int count = max(min(vectors - rank * slice, slice), 0);  // of them in this block's slice
  const auto table_bytes = static_cast<std::uint32_t>(blocks * sizeof(Message));
  const int clusters = gridDim.x / blocks, cluster = blockIdx.x / blocks;
  in += rank * slice * C::kPack;
  out += (rank * slice + thread) * C::kPack;
  op.skip(rank * slice * C::kPack);
  const auto load = [&](int stage, int row) {  // by one thread
    rows[stage] = row < shape.rows ? row : -1;
    if (row < shape.rows && count > 0) {
      mbarrier_arrive_expect_tx(&full[stage], 16 * count);
      bulk_load(&stages[stage * C::kSlice], in + row * shape.in_pitch, 16 * count, &full[stage]);
    } else {
      mbarrier_arrive(&full[stage]);
    }
  };
  if (thread == 0) {
    for (int s = 0; s < C::kStages; ++s) mbarrier_init(&full[s], 1);
    for (int t = 0; t < 2; ++t) mbarrier_init(&tables_full[t], 1);
    fence_mbarrier_init();
    for (int s = 0; s < C::kStages; ++s) load(s, cluster + s * clusters);
  }
  __syncthreads();  // the barriers are initialised
  cluster_arrive_relaxed();
  Weights<C> weights;
  load_weights<C>(op, thread, count, weights);
  // The first rows are the same in every launch. The counter gives the others, to the first block.
  int next = cluster + C::kStages * clusters;  // the row of the next load
  const bool asks = rank == 0 && thread == 0;
  unsigned ticket = asks ? atomicAdd(&counter->taken, 1u) : 0;
  cluster_wait();  // all blocks have initialised their barriers

  for (int stage = 0, stage_parity = 0, table = 0, table_parity = 0;;) {
    mbarrier_wait(&full[stage], stage_parity);
    const std::int64_t row = rows[stage];
    if (row < 0) break;  // in all blocks of the cluster
    Elements<C> x;
    const Partial mine = read_stage<C>(stages, stage * C::kSlice, thread, count, op, x);
    Partial whole = op.template merge_lanes<kWarpSize>(mine);
    if (lane_idx() == 0) warps[table * kWarps + warp_idx()] = whole;
    __syncthreads();  // every warp's Partial is in the table, and the stage has been read
    if (thread == 0) {
      load(stage, next);
      mbarrier_arrive_expect_tx(&tables_full[table], table_bytes);  // some may be here already
    }
    if (warp_idx() == 0) {
      whole = op.template merge_lanes<kWarps>(warps[table * kWarps + lane_idx() % kWarps]);
      const int later = (C::kStages + 1) * clusters + __shfl_sync(kFullWarp, ticket, 0);
      if (lane_idx() < blocks) {  // lane r sends this block's message to block r
        Message message{};        // its padding is sent, too
        message.part = whole;
        message.row = later;
        store_async_cluster(&tables[table * blocks + rank], message, &tables_full[table],
                            lane_idx());
      }
      if (asks) ticket = atomicAdd(&counter->taken, 1u);  // it arrives while this row is finished
    }
    mbarrier_wait_cluster(&tables_full[table], table_parity);
    // No block sends to this table again before all have sent the next row's messages.
    next = tables[table * blocks].row;
    const int block = lane_idx() % kMaxCluster;
    whole = block < blocks ? tables[table * blocks + block].part : Partial{};
    whole = op.template merge_lanes<kMaxCluster>(whole);

    const float factor = op.factor(mine, whole);
    store_finished<C>(op, out + row * shape.out_pitch, thread, count, factor, weights, x);
    if (++stage == C::kStages) stage = 0, stage_parity ^= 1;
    table ^= 1;
    if (table == 0) table_parity ^= 1;
  }
  if (asks) {  // the last cluster leaves zeros for the next launch
    const unsigned last = static_cast<unsigned>(clusters) - 1;
    if (atomicInc(&counter->ended, last) == last) counter->taken = 0;
  }
}

/// Clusters of this launch that fit on the GPU at once. Their blocks share a GPC, so this may be
/// less than its SMs allow.
template <class... P>
int clusters_at_once([[maybe_unused]] void (*kernel)(P...), const LaunchConfig& config,
                     int blocks_per_sm) {
  int clusters = device_info().sm_count * blocks_per_sm / config.cluster;
#if defined(COOKBOOK_CUDA)
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(config.smem_bytes));
  cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(config.cluster), 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(config.cluster));
  launch.blockDim = config.block;
  launch.dynamicSmemBytes = config.smem_bytes;
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch) != cudaSuccess) {
    cudaGetLastError();  // clears it: the launch will say what is wrong
  }
#endif
  return clusters > 0 ? clusters : 1;
}

template <class C>
LaunchConfig persistent_launch(int cluster, std::int64_t clusters) {
  const size_t barriers = (C::kStages + 2) * sizeof(std::uint64_t);
  const size_t tables = 2 * cluster * sizeof(typename C::Message) +
                        2 * C::kThreads / kWarpSize * sizeof(typename C::Op::Partial) +
                        C::kStages * sizeof(int);
  return {dim3(static_cast<unsigned>(clusters * cluster)), dim3(C::kThreads),
          C::kStagesBytes + barriers + tables, cluster};
}

template <class C>
void start_persistent(const RowLaunch<typename C::Client>& plan, Stream stream) {
  launch(persistent_rows<C>, persistent_launch<C>(plan.cluster, plan.resident), stream,
         plan.buffers.in, plan.buffers.out, plan.problem.shape, C::Client::op(plan),
         plan.counter->template as<RowCounter>());
}

/// Plans a cluster for `rows` rows; 0: as many clusters as fit on the GPU. The smallest cluster
/// that holds a row, of two blocks or more: a power of two, or as many as it needs.
template <class C>
void plan_persistent(RowLaunch<typename C::Client>& plan, std::int64_t rows,
                     bool power_of_two = true) {
  const Shape& shape = plan.problem.shape;
  plan.cluster = power_of_two ? cluster_for(shape.cols, C::kCapacity)
                              : static_cast<int>(ceil_div(shape.cols, std::int64_t{C::kCapacity}));
  plan.resident = ceil_div(shape.rows, std::max<std::int64_t>(rows, 1));
  if (rows == 0) {
    const std::int64_t fit =
        clusters_at_once(persistent_rows<C>, persistent_launch<C>(plan.cluster, 1), C::kMinBlocks);
    plan.resident = std::min(plan.resident, fit);
  }
  plan.counter = row_counter();
  plan.start = start_persistent<C>;
}

template <class Client>
struct HeldWeights : RowLevel<Client, HeldWeights<Client>> {
  /// Two blocks per SM, if they hold a row: while one waits for the rest of its cluster, the other
  /// works.
  using Config = PersistentConfig<Client, 256>;
  using LongConfig = PersistentConfig<Client, 512>;
  static constexpr LevelText text{
      .name = "held_weights",
      .changed =
          "a persistent cluster takes many rows, and its weights stay in registers. The number of "
          "its next row comes with the first block's Partial",
      .expect =
          "256k columns of fp32 are 1 MB of weights, which every row read from L2 again, after its "
          "last element had arrived: now once per cluster. The counter keeps the clusters in step",
      .cost = "registers for the weights; vectors only",
  };

  static Claims claims(const RowProblem<Client>& p) {
    return one_bulk_read<Client>(p, {faster_than_previous(1.02)});
  }

  static void choose(RowLaunch<Client>& plan) {
    InShared<Client>::choose(plan);
    const std::int64_t cols = plan.problem.shape.cols;
    if (cols <= Config::kCapacity ||
        !RowsInOrder<Client>::reaches(plan, kMaxCluster * LongConfig::kCapacity)) {
      return;
    }
    cols <= kMaxCluster* Config::kCapacity ? plan_persistent<Config>(plan, 0)
                                           : plan_persistent<LongConfig>(plan, 0);
  }
};

}  // namespace cookbook::softmax
