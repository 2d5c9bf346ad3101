// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: the last level's kernel under other tiles, stages, clusters, groups and schedules, all
// timed interleaved with cuBLAS. Usage: chapter-8-configs [M N K LAYOUT]...   LAYOUT: NN NT TN TT
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chapters/05_tensor_cores/cublas_gemm.hpp"
#include "chapters/08_persistent/level_6_any_shape.cuh"
#include "common/bench/bench.hpp"

namespace cookbook::gemm {
namespace {

using any_shape::Config;
using any_shape::Schedule;
using any_shape::Tuned;

constexpr Schedule kCoop = Schedule::cooperative, kPing = Schedule::ping_pong;

struct Candidate {
  std::string name;
  std::function<any_shape::Plan(const Problem&, const Buffers&)> prepare;
};

/// One configuration; `share`: with the last wave's tiles shared (stream-K).
template <class C>
Candidate candidate(bool share, int group = C::kGroup) {
  char name[96];
  std::snprintf(name, sizeof name, "%-9s %dx%dx%d, %d stages, cluster %d, group %d%s",
                C::kSchedule == kPing ? "ping-pong" : "coop", C::kBlockM, C::kBlockN, C::kBlockK,
                C::kStages, C::kCluster, group, share ? ", stream-K" : "");
  return {name, [=](const Problem& p, const Buffers& at) {
            const int tiles = share ? any_shape::predict<C>(p).tiles_to_share : 0;
            any_shape::Plan plan = Tuned<C>::prepare(p, at, tiles);
            plan.work.group = group;
            return plan;
          }};
}

std::vector<Candidate> candidates() {
  using Large = any_shape::Large;
  return {
      candidate<Large>(false),
      candidate<Large>(true),
      candidate<Large>(false, 2),
      candidate<Large>(false, 4),
      candidate<Large>(false, 16),
      candidate<Config<128, 256, 64, 4, 1, 16, kCoop>>(false),
      candidate<Config<128, 256, 64, 4, 1, 16, kCoop>>(true),
      candidate<Config<256, 128, 64, 4, 1, 8, kCoop>>(false),
      candidate<Config<256, 192, 64, 3, 2, 4, kCoop>>(false),
      candidate<Config<128, 192, 64, 5, 2, 8, kCoop>>(false),
      candidate<Config<128, 192, 64, 5, 2, 8, kPing>>(false),
      candidate<Config<64, 256, 64, 5, 2, 16, kPing>>(false),
      candidate<Config<128, 128, 64, 6, 2, 8, kPing>>(false),
      candidate<any_shape::Medium>(false),
      candidate<any_shape::Medium>(true),
      candidate<Config<128, 128, 128, 3, 2, 8, kCoop>>(false),
      candidate<any_shape::Skinny>(false),
      candidate<any_shape::Skinny>(true),
      candidate<Config<128, 64, 64, 8, 1, 8, kCoop>>(false),
      candidate<Config<128, 64, 64, 8, 2, 8, kCoop>>(false),
      {"any_shape (chosen)", AnyShape::prepare},
  };
}

/// Uniform in [-1, 1), never all alike: zeros would make the chip faster than it is.
DeviceMemory random_matrix(std::int64_t elements, std::uint64_t seed, const char* name) {
  std::vector<std::uint16_t> host(static_cast<std::size_t>(elements));
  std::uint64_t state = seed;
  for (auto& bits : host) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const float value = static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31f;
    std::uint32_t wide;
    std::memcpy(&wide, &value, 4);
    bits = static_cast<std::uint16_t>(wide >> 16);
  }
  DeviceMemory memory(host.size() * 2, name);
  memory.copy_from_host(host.data(), memory.bytes());
  return memory;
}

/// Some rows of C as floats: the first, the last, and those between where tiles meet.
std::vector<float> sample(const Problem& p, const DeviceMemory& c) {
  std::vector<float> values;
  std::vector<std::uint16_t> row(static_cast<std::size_t>(p.n));
  for (std::int64_t i = 0; i < p.m; i += std::max<std::int64_t>(1, (p.m - 1) / 37)) {
    c.copy_to_host(row.data(), row.size() * 2, static_cast<std::size_t>(i * p.ldc) * 2);
    for (std::uint16_t bits : row) {
      const std::uint32_t wide = std::uint32_t{bits} << 16;
      float value;
      std::memcpy(&value, &wide, 4);
      values.push_back(value);
    }
  }
  return values;
}

/// Largest difference relative to the size of a typical element; NaN if anything is.
float difference(const std::vector<float>& got, const std::vector<float>& expected, double k) {
  float worst = 0;
  const float scale = static_cast<float>(std::sqrt(k) / 3);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float error = std::fabs(got[i] - expected[i]) / scale;
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

int sweep(const Size& size, bool a_transposed, bool b_transposed) {
  const Problem p = Problem::make_layout(size, {}, a_transposed, b_transposed);
  const DeviceMemory a = random_matrix(p.a_rows() * p.lda, 1, "a");
  const DeviceMemory b = random_matrix(p.b_rows() * p.ldb, 2, "b");
  DeviceMemory c(static_cast<std::size_t>(p.m * p.ldc) * 2, "c");
  const Buffers at{a.as<bf16>(), b.as<bf16>(), c.as<bf16>()};
  std::printf("%" PRId64 " x %" PRId64 " x %" PRId64 " %s\n", p.m, p.n, p.k, p.layout().c_str());

  const auto library = CublasGemm<bf16>::prepare(p, at);
  std::vector<Contender> contenders{{"cuBLAS", [&](Stream s) { CublasGemm<bf16>::run(library, s); }}};
  contenders[0].run({});
  synchronize();
  const std::vector<float> expected = sample(p, c);

  int status = 0;
  std::vector<std::unique_ptr<any_shape::Plan>> plans;
  for (const Candidate& each : candidates()) {
    try {
      plans.push_back(std::make_unique<any_shape::Plan>(each.prepare(p, at)));
      any_shape::Plan* plan = plans.back().get();
      c.fill(0xff);
      AnyShape::run(*plan, {});
      synchronize();
      const float worst = difference(sample(p, c), expected, static_cast<double>(p.k));
      if (!(worst < 0.05f)) {
        std::printf("  %-62s differs from cuBLAS by %g\n", each.name.c_str(), worst);
        status = 1;
        continue;
      }
      contenders.push_back({each.name, [plan](Stream s) { AnyShape::run(*plan, s); }});
    } catch (const std::exception& error) {
      std::printf("  %-62s %s\n", each.name.c_str(), error.what());
    }
  }

  std::vector<ClockSample> clocks;
  const auto measured = measure(contenders, {}, &clocks);
  std::printf("  %-62s %6s %6s %s\n", "TFLOP/s", "cold", "hot", "of cuBLAS, cold  hot");
  for (std::size_t i = 0; i < measured.size(); ++i) {
    std::printf("  %-62s %6.1f %6.1f   %5.3f  %5.3f %s\n", contenders[i].name.c_str(),
                p.flops() / measured[i].cold.median * 1e-6,
                p.flops() / measured[i].hot.median * 1e-6,
                measured[0].cold.median / measured[i].cold.median,
                measured[0].hot.median / measured[i].hot.median, measured[i].error.c_str());
  }
  std::fflush(stdout);
  return status;
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  using cookbook::gemm::sweep;
  int status = 0;
  for (int i = 1; i + 3 < argc; i += 4) {
    status |= sweep({std::atoll(argv[i]), std::atoll(argv[i + 1]), std::atoll(argv[i + 2])},
                    argv[i + 3][0] == 'T', argv[i + 3][1] == 'T');
  }
  if (argc > 1) return status;
  for (const cookbook::Size& size : std::vector<cookbook::Size>{{4096, 4096, 4096},
                                                                {8192, 8192, 8192},
                                                                {4096, 14336, 4096},
                                                                {8192, 28672, 8192},
                                                                {128, 8192, 8192},
                                                                {1024, 1024, 1024},
                                                                {2048, 2048, 2048},
                                                                {4095, 4095, 4096}}) {
    status |= sweep(size, false, false);
  }
  return status | sweep({4095, 4095, 4096}, false, true);
}
