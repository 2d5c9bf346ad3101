// SPDX-License-Identifier: MIT
// RMSNorm of many rows: persistent blocks, to which a counter gives the rows in order. A block
// loads its weights once, and the next rows while it finishes this one.
#pragma once

#include "chapters/09_online_softmax/level_5_on_chip.cuh"
#include "common/device/sync.cuh"
#include "common/device/tma.cuh"

namespace cookbook::softmax {

template <class Client, int kThreadsValue>
struct InOrderConfig : RowConfig<Client> {
  static constexpr int kThreads = kThreadsValue;  // for one row
  static constexpr int kBlock = kThreads > 128 ? kThreads : 128;
  static constexpr int kRows = kBlock / kThreads;              // a block computes side by side
  static constexpr int kMinBlocks = 512 / kBlock;              // of each SM
  using RowConfig<Client>::kPack;                              // elements per access
  static constexpr int kVectors = kElementsPerThread / kPack;  // accesses of a row per thread
  static constexpr int kRow = kThreads * kVectors;             // accesses
  static constexpr int kCapacity = kRow * kPack;               // longest row
  static constexpr int kStages =
      12 / static_cast<int>(sizeof(typename Client::T));  // rows in shared memory
  static constexpr int kStagesBytes = kRows * kStages * kRow * 16;
  static constexpr int kTicket = kRow < 1024 ? 1024 / kRow : 1;  // rows: 16 KB at a time
  static_assert(kMinBlocks * kStagesBytes <= 200 * 1024, "what fits on an SM");
};

/// What the blocks of a launch share; zeros before it and after it.
struct RowCounter {
  unsigned taken;  // tickets
  unsigned ended;  // groups of threads
};

/// The weights of this thread's elements, which are the same in every row. Below, `count` is the
/// number of accesses of the row or slice.
template <class C>
using Weights = Pack<typename C::T, C::kPack>[C::kVectors];

/// Reads x from the stage that begins at access `first` of `stages`, and reduces it.
template <class C>
__device__ __forceinline__ typename C::Op::Partial read_stage(const uint4* stages, int first,
                                                              int thread, int count,
                                                              const typename C::Op& op,
                                                              Elements<C>& x) {
#pragma unroll
  for (int v = 0; v < C::kVectors; ++v) {
#pragma unroll
    for (int j = 0; j < C::kPack; ++j) x[v][j] = C::Op::kPadding;
    const int i = thread + v * C::kThreads;
    if (i < count) load_pack(x[v], reinterpret_cast<const typename C::T*>(&stages[first + i]));
  }
  return op.reduce(x);
}

/// Loads this thread's weights of `count` accesses, if the operation has any.
template <class C>
__device__ __forceinline__ void load_weights(const typename C::Op& op, int thread, int count,
                                             Weights<C>& weights) {
  if constexpr (C::Op::kWeights) {
#pragma unroll
    for (int v = 0; v < C::kVectors; ++v) {
      const int i = thread + v * C::kThreads;
      if (i < count)
        weights[v] = load_vector<Pack<typename C::T, C::kPack>>(op.weight + i * C::kPack);
    }
  }
}

/// Finishes x with `factor` and the weights, and stores it. `to`: this thread's first element.
template <class C>
__device__ __forceinline__ void store_finished(const typename C::Op& op, typename C::T* to,
                                               int thread, int count, float factor,
                                               const Weights<C>& weights, Elements<C>& x) {
#pragma unroll
  for (int v = 0; v < C::kVectors; ++v) {
    if (thread + v * C::kThreads < count) {
      if constexpr (C::Op::kWeights) {
#pragma unroll
        for (int j = 0; j < C::kPack; ++j) x[v][j] *= factor * as_float(weights[v][j]);
      } else {
        op.finish(x[v], factor, 0);
      }
      store_pack(to + v * C::kThreads * C::kPack, x[v]);
    }
  }
}

template <class C>
__global__ void __launch_bounds__(C::kBlock, C::kMinBlocks)
    rows_in_order(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                  Shape shape, typename C::Op op, RowCounter* counter) {
  using Partial = typename C::Op::Partial;
  constexpr int kWarps = C::kThreads / kWarpSize;  // of a row
  const int local = threadIdx.x / C::kThreads, thread = threadIdx.x % C::kThreads;
  char* memory = dynamic_shared<char>();
  auto* stages =
      reinterpret_cast<uint4*>(memory) + local * C::kStages * C::kRow;  // (stage, access)
  auto* full = reinterpret_cast<std::uint64_t*>(memory + C::kStagesBytes) + local * C::kStages;
  __shared__ std::int64_t rows[C::kRows][C::kStages];  // what a stage holds; -1: no more rows
  __shared__ Partial warps[C::kRows][2][kWarps];       // (table, warp)

  const int vectors = static_cast<int>(shape.cols) / C::kPack;
  const std::int64_t groups = std::int64_t{gridDim.x} * C::kRows;
  std::int64_t row = 0;       // the next one of this ticket
  int left = 0, tickets = 0;  // rows of the ticket left, tickets taken
  const auto load = [&](int stage) {
    if (left == 0) {
      // The first tickets are the same in every launch; all would ask for them at once.
      std::int64_t ticket = std::int64_t{blockIdx.x} * C::kRows + local + tickets * groups;
      if (tickets >= C::kStages) ticket = C::kStages * groups + atomicAdd(&counter->taken, 1u);
      ++tickets;
      row = ticket * C::kTicket;
      left = C::kTicket;
    }
    rows[local][stage] = row < shape.rows ? row : -1;
    if (row < shape.rows) {
      mbarrier_arrive_expect_tx(&full[stage], 16 * vectors);
      bulk_load(&stages[stage * C::kRow], in + row * shape.in_pitch, 16 * vectors, &full[stage]);
    } else {
      mbarrier_arrive(&full[stage]);
    }
    ++row, --left;
  };
  if (thread == 0) {
    for (int s = 0; s < C::kStages; ++s) mbarrier_init(&full[s], 1);
    fence_mbarrier_init();
    for (int s = 0; s < C::kStages; ++s) load(s);
  }
  out += thread * C::kPack;
  Weights<C> weights;
  load_weights<C>(op, thread, vectors, weights);
  __syncthreads();  // the barriers are initialised

  for (int stage = 0, parity = 0, table = 0;; table ^= 1) {
    mbarrier_wait(&full[stage], parity);
    const std::int64_t here = rows[local][stage];
    if (here < 0) break;
    Elements<C> x;
    const Partial mine = read_stage<C>(stages, stage * C::kRow, thread, vectors, op, x);
    Partial whole = op.template merge_lanes<kWarpSize>(mine);
    if (kWarps > 1 && lane_idx() == 0) warps[local][table][thread / kWarpSize] = whole;
    // All threads of the row have read the stage, and their Partials are in the table.
    if constexpr (kWarps == 1) {
      __syncwarp();
    } else {
      named_barrier_sync(1 + local, C::kThreads);
      whole = op.template merge_lanes<kWarps>(warps[local][table][lane_idx() % kWarps]);
    }
    if (thread == 0) load(stage);

    const float factor = op.factor(mine, whole);
    store_finished<C>(op, out + here * shape.out_pitch, thread, vectors, factor, weights, x);
    if (++stage == C::kStages) stage = 0, parity ^= 1;
  }
  if (thread == 0) {  // the last group leaves zeros for the next launch
    const unsigned last = static_cast<unsigned>(groups) - 1;
    if (atomicInc(&counter->ended, last) == last) counter->taken = 0;
  }
}

template <class C>
void start_in_order(const RowLaunch<typename C::Client>& plan, Stream stream) {
  const size_t barriers = C::kRows * C::kStages * sizeof(std::uint64_t);
  launch(rows_in_order<C>,
         {dim3(static_cast<unsigned>(plan.resident)), dim3(C::kBlock), C::kStagesBytes + barriers},
         stream, plan.buffers.in, plan.buffers.out, plan.problem.shape, C::Client::op(plan),
         plan.counter->template as<RowCounter>());
}

/// A counter in device memory, for one launch after another.
inline std::shared_ptr<DeviceMemory> row_counter() {
  auto counter = std::make_shared<DeviceMemory>(sizeof(RowCounter), "row counter");
  counter->fill(0);
  return counter;
}

template <class Client>
struct RowsInOrder : RowLevel<Client, RowsInOrder<Client>> {
  static constexpr LevelText text{
      .name = "rows_in_order",
      .changed =
          "persistent blocks, with their weights in registers, take the next row from a counter",
      .expect =
          "the next rows are always on their way, and no block waits for weights after its row. "
          "The counter keeps the rows in flight in one window of memory",
      .cost = "an atomic operation per 16 KB, and 8 bytes of memory that hold it",
  };

  static Claims claims(const RowProblem<Client>& p) {
    return one_bulk_read<Client>(p, {faster_than_previous(1.02), fraction_of_roof(0.94)});
  }

  /// Plans the kernel with at most `most` blocks; 0: as many as fit on the GPU. The fewest threads
  /// per row with at most four accesses each, or 512: more were measured to be slower.
  template <int kThreads = 32>
  static void plan_in_order(RowLaunch<Client>& plan, std::int64_t most = 0) {
    using C = InOrderConfig<Client, kThreads>;
    const Shape& shape = plan.problem.shape;
    if constexpr (kThreads < 512) {
      if (shape.cols > kThreads * 4 * C::kPack) return plan_in_order<kThreads * 2>(plan, most);
    }
    if (most == 0) most = std::int64_t{device_info().sm_count} * C::kMinBlocks;
    plan.resident = std::min(ceil_div(shape.rows, std::int64_t{C::kRows}), most);
    plan.counter = row_counter();
    plan.start = start_in_order<C>;
  }

  /// Whether persistent kernels support these rows: bulk copies, and shared memory for stages.
  static bool reaches(const RowLaunch<Client>& plan, std::int64_t longest = 16384) {
    return device_info().cc() >= 90 && device_info().smem_per_block_bytes >= 200 * 1024 &&
           plan.aligned() && plan.problem.shape.elements() > 0 &&
           plan.problem.shape.cols <= longest;
  }

  static void choose(RowLaunch<Client>& plan) {
    OnChip<Client>::choose(plan);
    if (reaches(plan)) plan_in_order(plan);
  }
};

}  // namespace cookbook::softmax
