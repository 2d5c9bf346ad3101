// SPDX-License-Identifier: MIT
// Level 3: a thread loads its nonzeros of the next tile as soon as it has used those of the present
// one, so loads are in flight during the sums, too. Where tiles end is found beforehand.
#pragma once

#include "level_2_merge.cuh"

namespace cookbook::spmv {

struct AheadConfig : MergeConfig {
  static constexpr int kBlocksPerSm = 6;
};

/// tile_rows[t] = rows that have ended after the steps of the first t tiles, for t = 0 .. tiles.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    find_tiles(const std::int32_t* __restrict__ offsets, int* __restrict__ tile_rows, int rows,
               int nonzeros, int tiles) {
  const int tile = static_cast<int>(blockIdx.x * C::kThreads + threadIdx.x);
  if (tile > tiles) return;
  const int step = min(tile * C::kTile, rows + nonzeros);
  int low = 0, high = rows;
  while (low < high) {
    const int row = low + (high - low) / 2;
    if (offsets[row + 1] + row < step) {
      low = row + 1;
    } else {
      high = row;
    }
  }
  tile_rows[tile] = low;
}

/// As merge_spmv(); the blocks' parts are whole tiles.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    ahead_spmv(const float* __restrict__ values, const std::int32_t* __restrict__ columns,
               const std::int32_t* __restrict__ offsets, const float* __restrict__ x,
               float* __restrict__ y, Carry* carries, const int* __restrict__ tile_rows, int rows,
               int nonzeros, int tiles) {
  __shared__ float sums[C::kTile];          // products, then their sums from the start of the row
  __shared__ int ends[C::kTile];            // how many nonzeros of the tile precede each row end
  __shared__ unsigned starts[C::kThreads];  // bit k: nonzero k of the thread is a row's first
  __shared__ float before[C::kThreads];     // what earlier threads have of a thread's first row
  __shared__ float warp_sums[C::kWarps];
  __shared__ int warp_flags[C::kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const int steps = rows + nonzeros;
  int tile = static_cast<int>(std::int64_t{tiles} * blockIdx.x / gridDim.x);
  const int last = static_cast<int>(std::int64_t{tiles} * (blockIdx.x + 1) / gridDim.x);
  int row = tile_rows[tile], row_end = tile_rows[tile + 1];
  int column[C::kPerThread];
  float value[C::kPerThread];
  // The thread's columns and values among `count` nonzeros of a tile, from nonzero `first` on.
  const auto load = [&](int first, int count) {
#pragma unroll
    for (int k = 0; k < C::kPerThread; ++k) {
      const int i = k * C::kThreads + thread;
      column[k] = 0, value[k] = 0;
      if (i < count) column[k] = columns[first + i], value[k] = values[first + i];
    }
  };
  const auto nonzeros_of = [&](int of, int tile_rows_of) {
    return min(C::kTile, steps - of * C::kTile) - tile_rows_of;
  };
  load(tile * C::kTile - row, nonzeros_of(tile, row_end - row));
  starts[thread] = 0;
  float carry = 0;
  __syncthreads();
  while (tile < last) {
    const int tile_rows_here = row_end - row;
    const int count = nonzeros_of(tile, tile_rows_here);
    const int first = tile * C::kTile - row;
    const int next_end = tile + 1 < last ? tile_rows[tile + 2] : row_end;
#pragma unroll
    for (int k = 0; k < C::kPerThread; ++k) {
      if (k * C::kThreads + thread < count) value[k] *= x[column[k]];
    }
    for (int r = thread; r < tile_rows_here; r += C::kThreads) {
      const int end = offsets[row + r + 1] - first;
      ends[r] = end;
      if (end < count) atomicOr(&starts[end / C::kPerThread], 1u << end % C::kPerThread);
    }
#pragma unroll
    for (int k = 0; k < C::kPerThread; ++k) sums[k * C::kThreads + thread] = value[k];
    if (tile + 1 < last) {
      load(first + count, nonzeros_of(tile + 1, next_end - row_end));
    }
    __syncthreads();

    const unsigned mine = starts[thread];
    starts[thread] = 0;  // for the next tile
    float sum = 0;
#pragma unroll
    for (int k = 0; k < C::kPerThread; ++k) {
      float& at = sums[thread * C::kPerThread + k];
      sum = (mine >> k & 1) != 0 ? at : sum + at;
      at = sum;
    }
    const float tile_carry = carry;
    before[thread] = sum_before<C>(sum, mine != 0, carry, warp_sums, warp_flags);
    __syncthreads();
    for (int r = thread; r < tile_rows_here; r += C::kThreads) {
      const int end = ends[r];
      const int start = r == 0 ? -1 : ends[r - 1];  // row 0 may have begun before the tile
      const int owner = (end - 1) / C::kPerThread;  // of the row's last nonzero
      float result = r == 0 ? tile_carry : 0.0f;    // of a row without nonzeros in the tile
      if (end > max(start, 0)) {
        result = sums[end - 1];
        if (start < owner * C::kPerThread) result = before[owner] + result;
      }
      y[row + r] = result;
    }
    if (tile_rows_here > 0 && ends[tile_rows_here - 1] == count)
      carry = 0;      // the next tile begins with a row
    __syncthreads();  // the next tile overwrites `ends`, `sums` and `before`
    ++tile, row = row_end, row_end = next_end;
  }
  if (thread == 0) carries[blockIdx.x] = {row, carry};
}

struct Ahead : Level {
  using Config = AheadConfig;
  static constexpr LevelText text{
      .name = "ahead",
      .changed = "the next tile's columns and values are loaded during the sums of the present one",
      .expect =
          "0.75 of the roof: a block of `merge` has loads in flight for a third of the time; now "
          "90 KB per SM are in flight at all times",
      .cost =
          "80 registers per thread, so 6 blocks per SM instead of 8; a kernel that finds the tiles "
          "first",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    int tiles = 0, blocks = 0;
    DeviceMemory carries{}, tile_rows{};
  };

  static Claims claims(const Problem& p) {
    const double nonzeros = static_cast<double>(p.nonzeros);
    return {global_loads("values").bytes(4 * nonzeros),
            global_loads("values").sectors_over_ideal(1.25, Relation::at_most),
            global_loads("columns").bytes(4 * nonzeros), shared_stores().conflict_free()};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const std::int64_t resident = std::int64_t{device_info().sm_count} * Config::kBlocksPerSm;
    const std::int64_t tiles =
        ceil_div(problem.rows + problem.nonzeros, std::int64_t{Config::kTile});
    const auto blocks = std::min(resident, tiles);
    return {
        problem,
        buffers,
        static_cast<int>(tiles),
        static_cast<int>(blocks),
        DeviceMemory(static_cast<std::size_t>(std::max<std::int64_t>(blocks, 1)) * sizeof(Carry),
                     "carries"),
        DeviceMemory(static_cast<std::size_t>(tiles + 1) * sizeof(int), "tile_rows")};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& at = plan.buffers;
    const int rows = static_cast<int>(plan.problem.rows);
    const int nonzeros = static_cast<int>(plan.problem.nonzeros);
    int* tile_rows = plan.tile_rows.as<int>();
    auto* carries = plan.carries.as<Carry>();
    launch(find_tiles<Config>,
           {blocks_for(plan.tiles + 1, Config::kThreads), dim3(Config::kThreads)}, stream,
           at.offsets, tile_rows, rows, nonzeros, plan.tiles);
    launch(ahead_spmv<Config>, {dim3(static_cast<unsigned>(plan.blocks)), dim3(Config::kThreads)},
           stream, at.values, at.columns, at.offsets, at.x, at.y, carries, tile_rows, rows,
           nonzeros, plan.tiles);
    launch(add_carries<Config>, {dim3(plan.blocks > 0 ? 1 : 0), dim3(Config::kThreads)}, stream,
           carries, at.y, plan.blocks, rows);
  }
};

}  // namespace cookbook::spmv
