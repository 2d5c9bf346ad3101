// SPDX-License-Identifier: MIT
// needs: cuda sm_90a
// Sidebar of chapter 10: the persistent and the multicast kernel with other tiles, stages and
// groups of heads. It shows how the configurations in schedule.cuh were chosen, and what to try on
// another GPU.
//
//   chapter-10-configs [tokens]      batch * seq; 16384 unless given
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "chapters/10_flash_attention/level_8_persistent.cuh"
#include "chapters/10_flash_attention/sidebar_multicast.cuh"
#include "common/harness/run/arguments.hpp"

namespace cookbook::attention {

struct Candidate {
  std::string name;
  std::function<void(Stream)> run;
  std::vector<float> ms;
};

/// The problem and its tensors, random bits of moderate size.
struct Bench {
  Problem problem;
  Buffers buffers;
  std::vector<DeviceMemory> memory;
  std::vector<Candidate> candidates;
  std::vector<std::shared_ptr<DeviceMemory>> counters;

  Bench(const Size& size, bool causal)
      : problem(Problem::make(size, {}, DType::bf16, causal)), buffers{} {
    for (const auto& [name, rows] : {std::pair<const char*, int64_t>{"q", problem.q_rows()},
                                     {"k", problem.k_rows()},
                                     {"v", problem.k_rows()},
                                     {"o", problem.q_rows()}}) {
      std::vector<uint16_t> bits(static_cast<size_t>(rows * problem.head_dim));
      uint32_t state = 12345u + static_cast<uint32_t>(memory.size());
      for (uint16_t& value : bits) {  // bf16 of both signs, magnitudes 2^-3 .. 2^1
        state = state * 1664525u + 1013904223u;
        const uint32_t exponent = 124 + (state >> 8) % 4;
        value = static_cast<uint16_t>((state >> 31 << 15) | exponent << 7 | (state >> 16 & 127));
      }
      memory.emplace_back(bits.size() * 2, name);
      memory.back().copy_from_host(bits.data(), bits.size() * 2);
    }
    memory.emplace_back(sizeof(float) * problem.q_rows(), "lse");
    buffers = {memory[0].data(), memory[1].data(), memory[2].data(), memory[3].data(),
               memory[4].as<float>()};
  }

  TensorMap map(const void* base, bool query, int rows) const {
    const Shape& s = problem.shape;
    return sequence_map(problem, base, query ? s.heads_q : s.heads_kv, query ? s.seq_q : s.seq_k,
                        rows);
  }

  template <class C>
  void add(const std::string& name, int heads_per_group = 0) {
    using T = typename C::Element;
    Schedule schedule = make_schedule(problem, C::kBlockM, device_info().l2_bytes);
    if (heads_per_group > 0) schedule.heads_per_group = std::min(heads_per_group, schedule.heads);
    auto counter = std::make_shared<DeviceMemory>(sizeof(TileCounters), "counters");
    counter->fill(0);
    counters.push_back(counter);
    const TensorMap q = map(buffers.q, true, C::kBlockM), k = map(buffers.k, false, C::kBlockN),
                    v = map(buffers.v, false, C::kBlockN);
    candidates.push_back(
        {name,
         [=, this](Stream stream) {
           const int grid = std::min(device_info().sm_count, schedule.tiles);
           launch(persistent_kernel<C>,
                  {static_cast<unsigned>(grid), C::kThreads, sizeof(typename C::Smem)}, stream, q,
                  k, v, static_cast<T*>(buffers.o), buffers.lse, problem.shape, schedule,
                  counter->template as<TileCounters>());
         },
         {}});
  }

  template <class Persistent>
  void add_multicast(const std::string& name) {
    using C = MulticastConfig<Persistent>;
    using T = typename C::Element;
    const Schedule schedule = make_schedule(problem, kCluster * C::kBlockM, device_info().l2_bytes);
    const TensorMap q = map(buffers.q, true, C::kBlockM),
                    k = map(buffers.k, false, C::kBlockN / kCluster),
                    v = map(buffers.v, false, C::kBlockN / kCluster);
    candidates.push_back({name,
                          [=, this](Stream stream) {
                            const int clusters =
                                std::min(device_info().sm_count / kCluster, schedule.tiles);
                            launch(multicast_kernel<C>,
                                   {static_cast<unsigned>(clusters * kCluster), C::kThreads,
                                    sizeof(typename C::Smem), kCluster},
                                   stream, q, k, v, static_cast<T*>(buffers.o), buffers.lse,
                                   problem.shape, schedule);
                          },
                          {}});
  }

  /// Times all candidates in interleaved rounds and prints medians, the fastest first.
  void report(int rounds) {
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    const Shape& s = problem.shape;
    std::printf("\nd %d, %s, batch %d, heads %d, seq %d\n", problem.head_dim,
                s.causal ? "causal" : "full", s.batch, s.heads_q, s.seq_q);
    for (int round = -1; round < rounds; ++round) {
      for (Candidate& candidate : candidates) {
        if (!candidate.run) continue;  // failed before
        try {
          cudaEventRecord(start);
          candidate.run({});
          cudaEventRecord(stop);
          synchronize();
        } catch (const std::exception& error) {
          if (round < 0) std::printf("  %-34s %s\n", candidate.name.c_str(), error.what());
          candidate.run = nullptr;
          continue;
        }
        float ms = 0;
        cudaEventElapsedTime(&ms, start, stop);
        if (round >= 0) candidate.ms.push_back(ms);
      }
    }
    std::erase_if(candidates, [](const Candidate& candidate) { return candidate.ms.empty(); });
    for (Candidate& candidate : candidates) std::sort(candidate.ms.begin(), candidate.ms.end());
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.ms[a.ms.size() / 2] < b.ms[b.ms.size() / 2];
    });
    for (const Candidate& candidate : candidates) {
      const float ms = candidate.ms[candidate.ms.size() / 2];
      std::printf("  %-34s %8.3f ms %8.1f TFLOP/s\n", candidate.name.c_str(), ms,
                  problem.flops() / ms / 1e9);
    }
    std::fflush(stdout);
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
  }
};

template <class C>
struct Eager : C {
  static constexpr int kSlack = 0;  // rescale whenever the maximum grows
};

void sweep_128(const Size& size, bool causal) {
  using Case = Case<bf16, 128>;
  Bench bench(size, causal);
  bench.add<PersistentConfig<Case, 2, 96>>("128 x 96");
  bench.add<PersistentConfig<Case, 2, 128>>("128 x 128");
  bench.add<PersistentConfig<Case, 2, 160>>("128 x 160");
  bench.add<PersistentConfig<Case, 2, 176>>("128 x 176");
  bench.add<PersistentConfig<Case, 3, 64>>("192 x 64");
  bench.add<Eager<PersistentConfig<Case, 2, 128>>>("128 x 128, slack 0");
  bench.add<Eager<PersistentConfig<Case, 2, 176>>>("128 x 176, slack 0");
  bench.add_multicast<PersistentConfig<Case, 2, 128>>("128 x 128, multicast");
  bench.add_multicast<PersistentConfig<Case, 2, 160>>("128 x 160, multicast");
  bench.add_multicast<PersistentConfig<Case, 2, 176>>("128 x 176, multicast");
  if (causal) {
    for (int heads : {1, 2, 4, 8, 16, 32}) {
      bench.add<PersistentConfig<Case, 2, 128>>("128 x 128, groups of " + std::to_string(heads),
                                                heads);
    }
  }
  bench.report(15);
}

void sweep_64(const Size& size, bool causal) {
  using Case = Case<bf16, 64>;
  Bench bench(size, causal);
  bench.add<PersistentConfig<Case, 2, 128>>("128 x 128");
  bench.add<PersistentConfig<Case, 2, 160>>("128 x 160");
  bench.add<PersistentConfig<Case, 2, 176>>("128 x 176");
  bench.add<PersistentConfig<Case, 2, 192>>("128 x 192");
  bench.add<PersistentConfig<Case, 2, 208>>("128 x 208");
  bench.add<PersistentConfig<Case, 2, 192, 3>>("128 x 192, 3 stages");
  bench.add<PersistentConfig<Case, 3, 96>>("192 x 96");
  bench.add<PersistentConfig<Case, 3, 128>>("192 x 128");
  bench.add<PersistentConfig<Case, 3, 128, 3>>("192 x 128, 3 stages");
  bench.add<Eager<PersistentConfig<Case, 3, 128>>>("192 x 128, slack 0");
  bench.add_multicast<PersistentConfig<Case, 3, 128>>("192 x 128, multicast");
  if (causal) {
    for (int heads : {1, 4, 16, 64}) {
      bench.add<PersistentConfig<Case, 3, 128>>("192 x 128, groups of " + std::to_string(heads),
                                                heads);
    }
  }
  bench.report(15);
}

}  // namespace cookbook::attention

int main(int argc, char** argv) {
  long tokens = 16384;
  if (argc > 1) {
    const auto number = cookbook::positive_number(argv[1]);
    if (argc > 2 || !number) {
      cookbook::refuse_argument(argv, "[TOKENS], one positive number", argv[argc > 2 ? 2 : 1]);
    }
    tokens = *number;
  }
  for (const long seq : {2048L, 8192L}) {
    for (const bool causal : {false, true}) {
      const long batch = std::max(1L, tokens / seq);
      cookbook::attention::sweep_128({batch, 16, 16, seq, seq, 128}, causal);
      cookbook::attention::sweep_64({batch, 32, 32, seq, seq, 64}, causal);
    }
  }
}
