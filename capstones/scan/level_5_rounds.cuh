// SPDX-License-Identifier: MIT
// Level 5: blocks stay and take one tile per round, while bulk copies load the next tiles. A block
// publishes the sum of its next tile before it needs the sums before its present one, so nobody
// waits for a sum that is just being computed.
#pragma once

#include <algorithm>

#include "common/device/mbarrier.cuh"
#include "common/device/tma.cuh"
#include "level_4_vectorised.cuh"

namespace cookbook::scan {

template <int kThreadsPerBlock, int kStageCount, int kBlocks>
struct RoundsConfigOf {
  static constexpr int kThreads = kThreadsPerBlock;
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kPerThread = 16;
  static constexpr int kTile = kThreads * kPerThread;
  static constexpr int kPerWarp = kTile / kWarps;
  static constexpr int kPack = 4;
  static constexpr int kRun = kPack * kWarpSize;
  static constexpr int kRuns = kPerThread / kPack;
  static constexpr int kStages = kStageCount;   // tiles in flight per block
  static constexpr int kBlocksPerSm = kBlocks;  // resident
};
using RoundsConfig = RoundsConfigOf<512, 3, 2>;

template <class C>
struct RoundsSmem {
  alignas(128) float tiles[C::kStages][C::kTile];
  std::uint64_t full[C::kStages];
  float totals[2][C::kWarps];  // of even and of odd rounds
  float scratch[C::kWarps];
  unsigned run;
};

/// What is kept from one launch to the next. Both are 0 at first.
struct Runs {
  unsigned count;   // launches that are complete
  unsigned blocks;  // blocks of this launch that are complete
};

/// What a block publishes of a tile in launch `run`.
__device__ __forceinline__ unsigned long long sum_in_run(unsigned run, float sum) {
  return static_cast<unsigned long long>(run) << 32 | static_cast<unsigned>(__float_as_int(sum));
}

/// The sum of tiles [begin, end), which this launch publishes; `run` is its number. Each thread
/// waits for its own tiles, and the order of the additions is fixed. All threads must call.
template <class C>
__device__ __forceinline__ float sum_of_tiles(const unsigned long long* words, std::int64_t begin,
                                              std::int64_t end, unsigned run, float* scratch) {
  float sum = 0;
  for (std::int64_t tile = begin + threadIdx.x; tile < end; tile += C::kThreads) {
    unsigned long long word;
    while (static_cast<unsigned>((word = load_acquire(&words[tile])) >> 32) != run) {
      spin_pause();  // [spin]
    }
    sum += value_of(word);
  }
  return block_sum<C::kThreads>(sum, scratch);
}

/// Block b scans tiles b, b + blocks, b + 2 blocks ... All blocks must be resident at once.
///
/// A word holds the sum of a tile and the number of the launch that wrote it. So no word has to be
/// cleared: what an earlier launch left has another number.
///
/// No deadlock: a block publishes its sum of round r before it waits for sums of round r - 1. Of
/// all blocks that wait, take one in the least round: every sum that it waits for has been
/// published.
template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    rounds_scan(const float* __restrict__ in, float* __restrict__ out, unsigned long long* words,
                Runs* runs, std::int64_t n) {
  auto& smem = *dynamic_shared<RoundsSmem<C>>();
  const std::int64_t whole_tiles = kAligned ? n / C::kTile : 0;  // a bulk copy loads them
  const auto load = [&](std::int64_t tile, int stage) {          // called by one thread
    mbarrier_arrive_expect_tx(&smem.full[stage], sizeof(smem.tiles[stage]));
    bulk_load(smem.tiles[stage], &in[tile * C::kTile], sizeof(smem.tiles[stage]),
              &smem.full[stage]);
  };
  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) mbarrier_init(&smem.full[s], 1);
    fence_mbarrier_init();
    for (int s = 0; s < C::kStages; ++s) {
      const std::int64_t tile = blockIdx.x + std::int64_t{s} * gridDim.x;
      if (tile < whole_tiles) load(tile, s);
    }
    smem.run = runs->count + 1;
  }
  __syncthreads();  // the barriers are initialised
  const unsigned run = smem.run;

  floatx4 packs[C::kRuns], held[C::kRuns];  // of this round and of the round before, scanned
  float held_sum = 0;
  float before = 0;  // the sum of all tiles before the held one's
  int stage = 0;
  unsigned parity = 0;
#pragma unroll 1
  for (int round = 0;; ++round) {
    const std::int64_t tile = blockIdx.x + std::int64_t{round} * gridDim.x;
    const bool has_tile = tile * C::kTile < n;
    float sum = 0;
    if (has_tile) {
      if (tile < whole_tiles) {
        mbarrier_wait(&smem.full[stage], parity);
        const float* first = &smem.tiles[stage][first_pack_in_tile<C>()];
#pragma unroll
        for (int k = 0; k < C::kRuns; ++k) {
          packs[k] = load_vector<floatx4>(&first[k * C::kRun]);  // [tile]
        }
      } else {
        load_packs<C, false>(in, tile * C::kTile, n, packs);
      }
      sum = scan_packs<C>(packs, smem.totals[round % 2]);
      if (threadIdx.x == 0) {
        store_release(&words[tile], sum_in_run(run, sum));
        // All threads have read the stage: scan_packs() has a barrier.
        const std::int64_t next = tile + std::int64_t{C::kStages} * gridDim.x;
        if (next < whole_tiles) load(next, stage);
      }
      if (++stage == C::kStages) stage = 0, parity ^= 1;
    }
    if (round > 0) {
      const std::int64_t held_tile = tile - gridDim.x;
      const std::int64_t begin = round > 1 ? held_tile - gridDim.x + 1 : 0;  // `before` ends there
      before += sum_of_tiles<C>(words, begin, held_tile, run, smem.scratch);
      store_packs<C, kAligned>(out, held_tile * C::kTile, n, held, before);
      before += held_sum;
    }
    if (!has_tile) break;
#pragma unroll
    for (int k = 0; k < C::kRuns; ++k) held[k] = packs[k];
    held_sum = sum;
  }
  if (threadIdx.x == 0) {
    __threadfence();  // the block has read `count`, and all words that it needs
    if (atomicAdd(&runs->blocks, 1u) == gridDim.x - 1) {
      __threadfence();
      *runs = {run, 0};
    }
  }
}

struct Rounds : Level {
  using Config = RoundsConfig;
  static constexpr LevelText text{
      .name = "rounds",
      .changed =
          "blocks stay; bulk copies load three tiles ahead; sums are published one round before "
          "they are needed",
      .expect =
          "192 KB in flight per SM at all times, and no wait for another block: 0.9 of the copy",
      .cost =
          "sm_90; 97 KB of shared memory per block; all blocks must be resident; a block reads "
          "the sums of as many tiles as there are blocks",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory words{};  // of every tile
    DeviceMemory runs{};
  };

  static Support supports(const Problem&, const DeviceInfo& device) {
    return device.cc() < 90 ? Support::no("needs sm_90 (bulk copies)") : Support::yes();
  }

  static Claims claims(const Problem& p) {
    const double tiles = static_cast<double>(p.n / Config::kTile);
    return {tma_loads("in").requests(tiles),
            tma_loads("in").bytes(4 * tiles * Config::kTile),
            shared_loads().on("tile").conflict_free(),
            global_stores("out").coalesced(),
            global_loads("words").bytes(8 * tiles * tiles, Relation::at_most),
            faster_than_previous(1.2),
            against_library("cub::DeviceScan", 0.97)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const std::int64_t tiles = ceil_div(problem.n, std::int64_t{Config::kTile});
    Plan plan{problem, buffers, workspace<unsigned long long>(tiles, "words"),
              workspace<Runs>(1, "runs")};
    plan.words.fill(0);
    plan.runs.fill(0);
    return plan;
  }

  static void run(const Plan& plan, Stream stream) { run_as<Config>(plan, stream); }

  template <class C>
  static void run_as(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t resident = std::int64_t{C::kBlocksPerSm} * device_info().sm_count;
    const auto blocks =
        static_cast<unsigned>(std::min(resident, ceil_div(n, std::int64_t{C::kTile})));
    LaunchConfig config{dim3(blocks), dim3(C::kThreads), sizeof(RoundsSmem<C>)};
    config.cooperative = true;
    launch(is_aligned(plan.buffers) ? rounds_scan<C, true> : rounds_scan<C, false>, config, stream,
           plan.buffers.in, plan.buffers.out, plan.words.as<unsigned long long>(),
           plan.runs.as<Runs>(), n);
  }
};

}  // namespace cookbook::scan
