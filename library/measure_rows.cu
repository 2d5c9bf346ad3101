// SPDX-License-Identifier: MIT
// needs: cuda
// Times every candidate of softmax, RMSNorm and transpose at the shapes of a list, cold and in
// interleaved rounds, and prints one line of JSON per candidate.
//
//   library-measure-rows ROUNDS LIST       LIST: lines "ladder rows cols"; # begins a comment
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/bench/bench.hpp"
#include "common/harness/arguments.hpp"
#include "library/rows/candidates.cuh"
#include "library/transpose/candidates.hpp"

namespace cookbook {
namespace {

constexpr double kSecondsPerShape = 0.5;  // of timing, at most

struct Asked {
  std::string ladder;
  std::int64_t rows = 0, cols = 0;
};

/// Numbers from -2 to 2: what kernels read decides the power they draw.
template <class T>
__global__ void fill(T* out, std::int64_t count) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    auto bits = static_cast<std::uint32_t>(i) * 2654435761u;
    bits ^= bits >> 15;
    bits *= 2246822519u;
    const float x = static_cast<float>(bits >> 8) * (4.0f / (1 << 24)) - 2.0f;
    out[i] = softmax::rounded<T>(x);
  }
}

struct Memory {
  DeviceMemory in, weight, out;
};

/// Times `contenders`, the names of which are candidates; `chosen` is what was chosen before.
void report(const Asked& asked, const char* dtype, const std::vector<Contender>& contenders,
            const std::string& chosen, int rounds) {
  BenchOptions options;
  options.hot = options.clocks = false;
  options.min_rounds = 7;
  options.max_rounds = rounds;
  options.seconds = kSecondsPerShape;
  options.relative_spread = 0;
  const auto times = measure(contenders, options, nullptr);
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::printf(
        "{\"ladder\": \"%s\", \"rows\": %lld, \"cols\": %lld, \"dtype\": \"%s\", \"candidate\": "
        "\"%s\", \"us\": %.3f, \"q1\": %.3f, \"q3\": %.3f, \"n\": %d, \"chosen_before\": %s%s%s}\n",
        asked.ladder.c_str(), static_cast<long long>(asked.rows),
        static_cast<long long>(asked.cols), dtype, contenders[i].name.c_str(), times[i].cold.median,
        times[i].cold.q1, times[i].cold.q3, times[i].cold.n,
        contenders[i].name == chosen ? "true" : "false",
        times[i].error.empty() ? "" : ", \"error\": \"", times[i].error.empty() ? "" : "failed\"");
    if (!times[i].error.empty()) std::fprintf(stderr, "%s\n", times[i].error.c_str());
  }
  std::fflush(stdout);
}

template <class Client>
void time_rows(const Asked& asked, typename Client::Level::Buffers buffers, int rounds) {
  const auto problem = Client::Level::Problem::make({asked.rows, asked.cols}, {});
  const auto before = softmax::FewRows<Client>::prepare(problem, buffers);
  std::string chosen;
  std::vector<Contender> contenders;
  for (const auto& candidate : softmax::candidates<Client>(problem, buffers)) {
    const auto plan = candidate.plan;
    contenders.push_back({candidate.name, [plan](Stream stream) {
                            softmax::RowsInOrder<Client>::run(plan, stream);
                          }});
    const bool same = plan.start_in_order ? plan.start_in_order == before.start_in_order
                                          : !before.start_in_order && plan.start == before.start;
    if (same && plan.cluster == before.cluster) chosen = candidate.name;
  }
  if (chosen.empty()) {  // no candidate is it, so that it is one of its own
    chosen = "before";
    contenders.push_back(
        {chosen, [before](Stream stream) { softmax::RowsInOrder<Client>::run(before, stream); }});
  }
  report(asked, dtype_name(softmax::kDType<typename Client::T>), contenders, chosen, rounds);
}

void time_transpose(const Asked& asked, const transpose::Buffers& buffers, int rounds) {
  const auto problem = transpose::Problem::make({asked.rows, asked.cols}, {});
  const transpose::Level::Plan plan{problem, buffers};
  std::vector<Contender> contenders;
  for (const auto& candidate : transpose::candidates(plan)) {
    const auto run = candidate.run;
    contenders.push_back({candidate.name, [plan, run](Stream stream) { run(plan, stream); }});
  }
  report(asked, "f32", contenders, transpose::chosen_before(plan), rounds);
}

std::vector<Asked> read_list(char** argv) {
  std::ifstream file(argv[2]);
  if (!file) refuse_argument(argv, "ROUNDS and a list of shapes", argv[2]);
  std::vector<Asked> list;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    Asked asked;
    if (words >> asked.ladder >> asked.rows >> asked.cols) list.push_back(asked);
  }
  return list;
}

void measure_list(const std::vector<Asked>& list, int rounds) {
  using namespace softmax;
  std::int64_t most = 0, longest = 0;
  for (const Asked& asked : list) {
    const int bytes = asked.ladder.ends_with("bf16") ? 2 : 4;
    most = std::max(most, asked.rows * asked.cols * bytes);
    longest = std::max(longest, asked.cols * bytes);
  }
  Memory memory{{static_cast<std::size_t>(most), "in"},
                {static_cast<std::size_t>(longest), "weight"},
                {static_cast<std::size_t>(most), "out"}};
  const auto start = std::chrono::steady_clock::now();
  int filled = 0;  // bytes per element of what the memory holds
  for (const Asked& asked : list) {
    const bool is_b16 = asked.ladder.ends_with("bf16");
    if (const int bytes = is_b16 ? 2 : 4; bytes != filled) {
      const LaunchConfig config{dim3(4096), dim3(256)};
      for (const DeviceMemory* one : {&memory.in, &memory.weight}) {
        const auto count = static_cast<std::int64_t>(one->bytes()) / bytes;
        is_b16 ? launch(fill<bf16>, config, {}, one->as<bf16>(), count)
               : launch(fill<float>, config, {}, one->as<float>(), count);
      }
      filled = bytes;
    }
    if (asked.ladder == "softmax") {
      time_rows<Softmax<float>>(asked, {memory.in.as<float>(), memory.out.as<float>()}, rounds);
    } else if (asked.ladder == "softmax_bf16") {
      time_rows<Softmax<bf16>>(asked, {memory.in.as<bf16>(), memory.out.as<bf16>()}, rounds);
    } else if (asked.ladder == "rmsnorm") {
      time_rows<RmsNorm<float>>(
          asked, {memory.in.as<float>(), memory.weight.as<float>(), memory.out.as<float>()},
          rounds);
    } else if (asked.ladder == "rmsnorm_bf16") {
      time_rows<RmsNorm<bf16>>(
          asked, {memory.in.as<bf16>(), memory.weight.as<bf16>(), memory.out.as<bf16>()}, rounds);
    } else if (asked.ladder == "transpose") {
      time_transpose(asked, {memory.in.as<float>(), memory.out.as<float>()}, rounds);
    } else {
      throw std::invalid_argument("no ladder is called " + asked.ladder);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::fprintf(stderr, "%zu shapes in %.0f s\n", list.size(), seconds.count());
}

}  // namespace
}  // namespace cookbook

int main(int argc, char** argv) {
  using namespace cookbook;
  const char* accepted = "ROUNDS and a list of shapes";
  if (argc != 3) refuse_argument(argv, accepted, argc < 2 ? "nothing" : argv[argc - 1]);
  const auto rounds = positive_number(argv[1]);
  if (!rounds) refuse_argument(argv, accepted, argv[1]);
  try {
    measure_list(read_list(argv), static_cast<int>(*rounds));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "library-measure-rows: %s\n", error.what());
    return 1;
  }
}
