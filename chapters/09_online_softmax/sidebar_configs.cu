// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: the kernels of levels 5 to 8 with other shapes, for rows of 1k to 256k columns and 1 GiB
// in total. It shows how the shapes in the level files were chosen, and what to try on another GPU.
// Every candidate is compared with the reference on a few rows before any is timed.
//
//   chapter-9-configs [f32|bf16] [columns ...]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "chapters/09_online_softmax/level_8_in_shared.cuh"
#include "chapters/09_online_softmax/sidebar_prefetched.cuh"
#include "common/bench/bench.hpp"
#include "common/harness/run/arguments.hpp"
#include "common/harness/verdict/check.hpp"

namespace cookbook::softmax {
namespace {

template <class T>
struct Candidate {
  std::string name;
  int capacity = 0;   // elements of a block's slice
  bool once = false;  // a row must fit into one block
  int waves = 0;      // 0: no loop over rows
  int (*batch)(const Shape&, int cluster, int waves) = nullptr;
  StartRows<Softmax<T>> start = nullptr;

  /// How this candidate runs a problem; false if it cannot, or would leave most lanes idle.
  bool plan(RowLaunch<Softmax<T>>& plan) const {
    const Shape& shape = plan.problem.shape;
    plan.cluster = cluster_for(shape.cols, capacity);
    if (plan.cluster > (once ? 1 : kMaxCluster) || 2 * shape.cols <= capacity) return false;
    plan.start = start;
    if (batch) plan.batch = batch(shape, plan.cluster, waves);
    return true;
  }
};

std::string shape_text(const char* kernel, int threads, int elements, int per_sm) {
  return std::string(kernel) + " " + std::to_string(threads) + " threads x " +
         std::to_string(elements) + ", " + std::to_string(per_sm) + " an SM";
}

template <class T, int kThreads, int kElements = 32, int kPerSm = 1024>
Candidate<T> on_chip() {
  using C = OnChipConfig<Softmax<T>, kThreads, Access::vectors, kElements, kPerSm>;
  return {.name = shape_text("on_chip    ", kThreads, kElements, kPerSm),
          .capacity = C::kCapacity,
          .once = true,
          .start = start_on_chip<C>};
}

/// The kernels of levels 6 and 7.
template <class T, int kThreads, int kElements = 32, int kPerSm = 1024>
Candidate<T> cluster(bool signals) {
  using C = ClusterConfig<Softmax<T>, kThreads, true, kElements, kPerSm>;
  return {.name = shape_text(signals ? "signals    " : "cluster    ", kThreads, kElements, kPerSm),
          .capacity = C::kCapacity,
          .start = signals ? start_signalled<C> : start_cluster<C>};
}

template <class T, int kThreads, int kChunks, int kVectors = 4>
Candidate<T> in_shared() {
  using C = InSharedConfig<Softmax<T>, kThreads, kChunks, kVectors>;
  return {.name = "in_shared   " + std::to_string(kThreads) + " threads, " +
                  std::to_string(kChunks) + " bulk copies of " + std::to_string(C::kChunk * 16) +
                  " bytes, " + std::to_string(C::kRowsBytes / 1024) + " KB per block",
          .capacity = C::kCapacity,
          .once = C::kRows > 1,
          .start = start_in_shared<C>};
}

template <class T, int kThreads, int kElements, int kStages, int kPerSm = 1024>
Candidate<T> prefetched(int waves) {
  using C = PrefetchedConfig<Softmax<T>, kThreads, kElements, kStages, kPerSm>;
  return {.name = shape_text("prefetched ", kThreads, kElements, kPerSm) + ", " +
                  std::to_string(kStages) + " stages, " + std::to_string(waves) + " waves",
          .capacity = C::kCapacity,
          .waves = waves,
          .batch = rows_per_block<C>,
          .start = start_prefetched<C>};
}

template <class T, int kThreads>
void add_block_shapes(std::vector<Candidate<T>>& list) {
  constexpr int kBase = sizeof(T) == 4 ? 1 : 2;  // stages that hold 128 KB per SM
  list.push_back(on_chip<T, kThreads>());
  list.push_back(on_chip<T, kThreads, 16, 1536>());
  if constexpr (kThreads >= 256) {
    list.push_back(cluster<T, kThreads>(false));
    list.push_back(cluster<T, kThreads>(true));
  }
  if constexpr (kThreads <= 256) {
    list.push_back(in_shared<T, kThreads, 2>());
    list.push_back(in_shared<T, kThreads, 3>());
    list.push_back(in_shared<T, kThreads, 4>());
    list.push_back(in_shared<T, kThreads, 4, 2>());
    list.push_back(in_shared<T, kThreads, 6, 2>());
  }
  for (const int waves : {1, 2, 4, 16}) {
    list.push_back(prefetched<T, kThreads, 32, kBase>(waves));
  }
  list.push_back(prefetched<T, kThreads, 16, 2 * kBase>(1));
  list.push_back(prefetched<T, kThreads, 16, 2 * kBase>(4));
  list.push_back(prefetched<T, kThreads, 32, 2 * kBase, 512>(4));
  list.push_back(prefetched<T, kThreads, 64, kBase, 512>(4));
}

template <class T>
std::vector<Candidate<T>> candidates() {
  std::vector<Candidate<T>> list;
  add_block_shapes<T, 32>(list);
  add_block_shapes<T, 64>(list);
  add_block_shapes<T, 128>(list);
  add_block_shapes<T, 256>(list);
  add_block_shapes<T, 512>(list);
  return list;
}

/// A candidate as a level, so that the harness can compare it with the reference.
template <class T>
LevelEntry as_level(const Candidate<T>& candidate) {
  LevelEntry level = make_level<Prefetched<Softmax<T>>>();
  level.name = candidate.name;
  level.prepare = [candidate](const AnyProblem& problem, const DevicePointers& at) {
    RowLaunch<Softmax<T>> plan{
        {*static_cast<const Problem<T>*>(problem.get()), Buffers<T>::bind(at)}};
    if (!candidate.plan(plan)) throw std::invalid_argument("does not fit");
    return std::function<void(Stream)>([plan](Stream stream) { plan.start(plan, stream); });
  };
  return level;
}

template <class T>
bool sweep(const char* type, std::int64_t cols) {
  const std::int64_t rows = std::max<std::int64_t>((std::int64_t{1} << 29) / sizeof(T) / cols, 1);
  const auto ladder = ladder_over<Problem<T>>("softmax", "", {"rows", "cols"});
  Instance small(ladder, {std::max<std::int64_t>((1 << 20) / cols, 3), cols}, InputKind::normal, 1);
  Instance large(ladder, {rows, cols}, InputKind::normal, 1);
  std::vector<Contender> contenders;
  bool right = true;
  for (const Candidate<T>& candidate : candidates<T>()) {
    const LevelEntry level = as_level(candidate);
    const CheckResult check = check_level(level, small, small.drawn(2));
    if (check.status == CheckResult::Status::skipped) continue;
    if (check.status == CheckResult::Status::mismatch) {
      std::printf("%s: %s\n", candidate.name.c_str(), check.reason.c_str());
      right = false;
      continue;
    }
    contenders.push_back({candidate.name, level.prepare(large.problem(), large.pointers())});
  }
  BenchOptions options;
  options.seconds = 1;
  const std::vector<Measurement> times = measure(contenders, options, nullptr);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].error.empty()) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return times[a].cold.median < times[b].cold.median;
  });
  std::printf("\n%s, %lld x %lld\n", type, static_cast<long long>(rows),
              static_cast<long long>(cols));
  for (const std::size_t i : order) {
    std::printf("  %7.1f GB/s  %s\n", large.problem().bytes() / times[i].cold.median * 1e-3,
                contenders[i].name.c_str());
  }
  std::fflush(stdout);
  return right;
}

}  // namespace
}  // namespace cookbook::softmax

int main(int argc, char** argv) {
  using namespace cookbook::softmax;
  std::vector<std::int64_t> columns;
  bool f32 = false, b16 = false;
  for (int i = 1; i < argc; ++i) {
    const auto number = cookbook::positive_number(argv[i]);
    if (std::strcmp(argv[i], "f32") == 0) {
      f32 = true;
    } else if (std::strcmp(argv[i], "bf16") == 0) {
      b16 = true;
    } else if (number && *number % 8 == 0) {
      columns.push_back(*number);
    } else {
      cookbook::refuse_argument(argv, "f32, bf16 and row lengths that are multiples of 8", argv[i]);
    }
  }
  if (!f32 && !b16) f32 = b16 = true;
  if (columns.empty()) {
    for (std::int64_t cols = 1024; cols <= 262144; cols *= 2) columns.push_back(cols);
  }
  try {
    bool right = true;
    for (const std::int64_t cols : columns) {
      if (f32) right = sweep<float>("fp32", cols) && right;
      if (b16) right = sweep<cookbook::bf16>("bf16", cols) && right;
    }
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-9-configs: %s\n", error.what());
    return 1;
  }
}
