// SPDX-License-Identifier: MIT
// Level 8: bulk copies load the row into shared memory, which holds it instead of the registers.
#pragma once

#include "chapters/09_online_softmax/level_7_signals.cuh"
#include "common/device/tma.cuh"

namespace cookbook::softmax {

template <class Client, int kThreadsValue, int kChunksValue = 3, int kVectorsValue = 4,
          bool kPeeledValue = false>
struct InSharedConfig : RowConfig<Client> {
  static constexpr int kThreads = kThreadsValue;  // for one row, or one slice of a row
  static constexpr int kBlock = 256;
  static constexpr int kRows = kBlock / kThreads;  // rows per block
  static constexpr bool kPeeled = kPeeledValue;
  using RowConfig<Client>::kPack;                     // elements per access
  static constexpr int kVectors = kVectorsValue;      // accesses per thread and chunk
  static constexpr int kChunk = kVectors * kThreads;  // accesses per bulk copy
  static constexpr int kChunks = kChunksValue;        // bulk copies per row or slice
  static constexpr int kSlice = kChunks * kChunk;     // accesses
  static constexpr int kCapacity = kSlice * kPack;    // longest row or slice
  static constexpr int kRowsBytes = kRows * kSlice * 16;
  static constexpr int kMinBlocks = 200 * 1024 / kRowsBytes;  // blocks that fit on an SM
  static_assert(kThreads >= kWarpSize && kBlock % kThreads == 0, "whole warps");
};

/// Slices of rows that a cluster holds together: 32 KB in chunks of 8 KB, six blocks per SM.
template <class Client, bool kPeeled = false>
using Slice = InSharedConfig<Client, 256, 4, 2, kPeeled>;
static_assert(Slice<Softmax<float>>::kRowsBytes == 32 * 1024);
static_assert(Slice<Softmax<float>>::kMinBlocks == 6);
/// The same for rows beyond 16 such slices: 64 KB in chunks of 16 KB, three blocks per SM.
template <class Client, bool kPeeled = false>
using LongSlice = InSharedConfig<Client, 256, 4, 4, kPeeled>;

template <class C>
__global__ void __launch_bounds__(C::kBlock, C::kMinBlocks)
    rows_in_shared(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                   Shape shape, typename C::Op op) {
  using T = typename C::T;
  using Partial = typename C::Op::Partial;
  constexpr int kWarps = C::kThreads / kWarpSize;  // of a row
  const int blocks = cluster_size(), rank = cluster_block_rank();
  const int local = threadIdx.x / C::kThreads,
            lane = threadIdx.x % C::kThreads;  // row, thread of it
  char* memory = dynamic_shared<char>();
  auto* chunks = reinterpret_cast<uint4*>(memory) + local * C::kSlice;  // (chunk, access)
  auto* table_full =
      reinterpret_cast<std::uint64_t*>(memory + C::kRowsBytes);  // the table is complete
  auto* full = table_full + 1 + local * C::kChunks;              // chunk c has arrived
  auto* table = reinterpret_cast<Partial*>(table_full + 2 + C::kRows * C::kChunks) + local * kWarps;

  const std::int64_t row = std::int64_t{blockIdx.x / blocks} * C::kRows + local;
  const int cols = row < shape.rows ? static_cast<int>(shape.cols) : 0;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  const int head = C::kPeeled ? elements_before_boundary(in, out, cols) : 0;
  const int vectors = (cols - head) / C::kPack;
  const int slice = slice_of(vectors, blocks);  // contiguous accesses of this block
  const int first = rank * slice;
  const int count = max(min(vectors - first, slice), 0);  // their number
  const typename C::Op row_op = op;
  const T* const row_in = in;
  T* const row_out = out;
  in += head + first * C::kPack;
  out += head + first * C::kPack;
  op.skip(head + first * C::kPack);
  if (threadIdx.x == 0 && blocks > 1) {
    mbarrier_init(table_full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(table_full,
                              static_cast<std::uint32_t>(blocks * kWarps * sizeof(Partial)));
  }
  if (lane == 0) {  // one thread per row starts all of its copies
    for (int c = 0; c < C::kChunks; ++c) mbarrier_init(&full[c], 1);
    fence_mbarrier_init();
    // [quote in_shared]
    for (int c = 0, at = 0; at < count; ++c, at += C::kChunk) {
      const int bytes = 16 * min(count - at, C::kChunk);
      mbarrier_arrive_expect_tx(&full[c], bytes);
      bulk_load(&chunks[at], in + at * C::kPack, bytes, &full[c]);
    }
    // [end quote]
  }
  __syncthreads();  // the barriers are initialised
  if (blocks > 1) cluster_arrive_relaxed();
  // The first block of a cluster has the edges.
  Edges<C::kPeeled, T, typename C::Op, C::kThreads> edges(row_in, lane, head, vectors,
                                                          rank == 0 ? cols : vectors * C::kPack);

  Partial mine;
  for (int c = 0, at = lane; at - lane < count; ++c, at += C::kChunk) {
    mbarrier_wait(&full[c], 0);
    float x[C::kVectors][C::kPack];  // (accesses, elements) per thread
#pragma unroll
    for (int v = 0; v < C::kVectors; ++v) {
#pragma unroll
      for (int j = 0; j < C::kPack; ++j) x[v][j] = C::Op::kPadding;
      const int i = at + v * C::kThreads;
      if (i < count) load_pack(x[v], reinterpret_cast<const T*>(&chunks[i]));
    }
    mine = op.merge(mine, op.reduce(x));
  }

  Partial whole = op.template merge_lanes<kWarpSize>(edges.merged(row_op, mine));
  if (blocks > 1) {
    cluster_wait();             // all blocks have started and initialised their barriers
    if (lane_idx() < blocks) {  // lane r writes to block r
      store_async_cluster(&table[rank * kWarps + warp_idx()], whole, table_full, lane_idx());
    }
    mbarrier_wait_cluster(table_full, 0);  // the Partials of all warps of the cluster have arrived
  } else if constexpr (kWarps > 1) {
    if (lane_idx() == 0) store_vector(&table[warp_idx() % kWarps], whole);
    __syncthreads();  // every warp's Partial is in the table
  }
  if (kWarps > 1) {
    whole = Partial{};
    for (int i = lane_idx(); i < blocks * kWarps; i += kWarpSize) {
      whole = op.merge(whole, load_vector<Partial>(&table[i]));
    }
    whole = op.template merge_lanes<kWarpSize>(whole);
  }

  const float scale = op.scale(whole);
  for (int at = lane; at < count; at += C::kChunk) {
#pragma unroll
    for (int v = 0; v < C::kVectors; ++v) {
      const int i = at + v * C::kThreads;
      if (i < count) {
        float x[C::kPack];
        load_pack(x, reinterpret_cast<const T*>(&chunks[i]));
        op.template finish_anew<C::kPeeled>(x, whole, scale, i * C::kPack);
        store_pack(out + i * C::kPack, x);
      }
    }
  }
  edges.finish(row_op, whole, row_out);
}

template <class C>
void start_in_shared(const RowLaunch<typename C::Client>& plan, Stream stream) {
  const size_t barriers = (2 + C::kRows * C::kChunks) * sizeof(std::uint64_t);
  const size_t table_bytes =
      plan.cluster * (C::kBlock / kWarpSize) * sizeof(typename C::Op::Partial);
  launch_row_kernel(rows_in_shared<C>, plan, stream, C::kBlock, C::kRows,
                    C::kRowsBytes + barriers + table_bytes);
}

template <class Client>
struct InShared : RowLevel<Client, InShared<Client>> {
  template <int kThreads, bool kPeeled>
  using Row = InSharedConfig<Client, kThreads, 3, 4, kPeeled>;
  static constexpr LevelText text{
      .name = "in_shared",
      .changed =
          "bulk copies load the row into shared memory: 192 KB per SM, started at once by one "
          "thread",
      .expect =
          "small blocks, 32 KB of a row each, four or more per SM: one is always loading, and rows "
          "up to 524,288 elements are read once. The copy hides two exponentials per element",
      .cost =
          "the exponentials again for the output; where `in` and `out` reach boundaries at "
          "different elements, it falls back to level 7",
  };

  static Claims claims(const RowProblem<Client>& p) {
    return one_bulk_read<Client>(p, {faster_than_previous(1.02), fraction_of_roof(0.95)});
  }

  /// The fewest threads per row that hold it; a cluster holds longer rows in slices.
  static void pick(RowLaunch<Client>& plan) {
    plan.aligned() ? pick_row<false>(plan) : pick_row<true>(plan);
  }

  template <bool kPeeled, int kThreads = 32>
  static void pick_row(RowLaunch<Client>& plan) {
    constexpr int kPack = kPackOf<typename Client::T>;
    const std::int64_t cols = plan.problem.shape.cols / kPack * kPack;  // without edges
    plan.cluster = 1;
    if (cols <= Row<kThreads, kPeeled>::kCapacity) {
      plan.start = start_in_shared<Row<kThreads, kPeeled>>;
    } else if constexpr (kThreads < 256) {
      pick_row<kPeeled, 2 * kThreads>(plan);
    } else if (cols <= kMaxCluster * Slice<Client>::kCapacity) {
      // As many blocks as the row needs: the more rows are in flight.
      plan.cluster = static_cast<int>(ceil_div(cols, std::int64_t{Slice<Client>::kCapacity}));
      plan.start = start_in_shared<Slice<Client, kPeeled>>;
    } else {
      plan.cluster = kMaxCluster;
      plan.start = start_in_shared<LongSlice<Client, kPeeled>>;
    }
  }

  /// Whether bulk copies can load these rows: long enough for one copy to pay, and not too long.
  static bool reaches(const RowLaunch<Client>& plan) {
    constexpr std::int64_t kShortest = 4096 / sizeof(typename Client::T);
    constexpr std::int64_t kLongest = kMaxCluster * LongSlice<Client>::kCapacity;
    const std::int64_t cols = plan.problem.shape.cols;
    return device_info().cc() >= 90 && Client::access(plan) != Access::elements &&
           cols >= kShortest && cols <= kLongest;
  }

  static void choose(RowLaunch<Client>& plan) {
    Signals<Client>::choose(plan);
    if (reaches(plan)) pick(plan);
  }
};

}  // namespace cookbook::softmax
