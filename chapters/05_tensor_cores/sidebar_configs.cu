// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: the last level with other tiles, stages and raster orders, all timed interleaved with
// cuBLAS. Usage: chapter-5-configs [M N K]...   (default 4096 and 8192, square)
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "chapters/05_tensor_cores/cublas_gemm.hpp"
#include "chapters/05_tensor_cores/level_9_hoisted_addresses.cuh"
#include "common/bench/bench.hpp"
#include "common/harness/run/arguments.hpp"

namespace cookbook::gemm {
namespace {

template <int kBlockMValue, int kBlockNValue, int kBlockKValue, int kWarpsMValue, int kWarpsNValue,
          int kStagesValue, int kGroupValue>
struct Tuned : coalesced_epilogue::Config<bf16> {
  static constexpr int kBlockM = kBlockMValue, kBlockN = kBlockNValue, kBlockK = kBlockKValue;
  static constexpr int kWarpsM = kWarpsMValue, kWarpsN = kWarpsNValue;
  static constexpr int kWarpM = kBlockM / kWarpsM, kWarpN = kBlockN / kWarpsN;
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kGroup = kGroupValue;
  static constexpr int kStages = kStagesValue;
  static constexpr std::size_t kSmemBytes = kStages * sizeof(bf16) * (kBlockM + kBlockN) * kBlockK;
  static_assert(kSmemBytes >= sizeof(bf16) * kBlockM * kBlockN, "C is gathered in the tiles");

  static std::string name() {
    return std::to_string(kBlockM) + "x" + std::to_string(kBlockN) + "x" + std::to_string(kBlockK) +
           ", " + std::to_string(kWarpsM) + "x" + std::to_string(kWarpsN) + " warps, " +
           std::to_string(kStages) + " stages, groups of " + std::to_string(kGroup);
  }
};

struct Candidate {
  std::string name;
  std::function<void(const Problem&, const Buffers&, Stream)> run;
};

template <class C>
Candidate candidate() {
  return {C::name(), [](const Problem& p, const Buffers& at, Stream stream) {
            launch(hoisted_addresses::kernel<C, true>,
                   {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads),
                    C::kSmemBytes},
                   stream, product_of(p, at));
          }};
}

/// Uniform in [-1, 1). All-equal values, zeros for example, would draw less power and raise the
/// clock.
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

int sweep(const Size& size) {
  const Problem p = Problem::make(size, {});
  const DeviceMemory a = random_matrix(p.m * p.k, 1, "a"), b = random_matrix(p.k * p.n, 2, "b");
  DeviceMemory c(static_cast<std::size_t>(p.m * p.n) * 2, "c");
  const Buffers at{a.as<bf16>(), b.as<bf16>(), c.as<bf16>()};
  if (!vectors_fit(p, at)) {
    std::fprintf(stderr, "chapter-5-configs: K and N must be multiples of 8\n");
    return 2;
  }
  const std::vector<Candidate> candidates = {
      candidate<Tuned<128, 256, 64, 2, 4, 4, 8>>(),   // the level
      candidate<Tuned<128, 256, 64, 2, 4, 4, 4>>(),   // block order
      candidate<Tuned<128, 256, 64, 2, 4, 4, 16>>(),  //
      candidate<Tuned<128, 256, 64, 2, 4, 3, 8>>(),   // fewer stages
      candidate<Tuned<256, 128, 64, 4, 2, 4, 8>>(),   // the tile transposed
      candidate<Tuned<256, 128, 64, 4, 2, 4, 4>>(),   //
      candidate<Tuned<128, 128, 64, 2, 2, 3, 8>>(),   // two independent blocks of four warps
      candidate<Tuned<128, 128, 64, 2, 2, 3, 16>>(),  //
  };

  // The k steps have the same order for every tile, so all results are bitwise equal.
  std::vector<std::uint16_t> expected(static_cast<std::size_t>(p.m * p.n)), got(expected.size());
  std::vector<Contender> contenders;
  for (const Candidate& each : candidates) {
    c.fill(0xff);
    each.run(p, at, {});
    synchronize();
    auto& result = contenders.empty() ? expected : got;
    c.copy_to_host(result.data(), c.bytes());
    if (!contenders.empty() && got != expected) {
      std::printf("%s: differs from %s\n", each.name.c_str(), candidates.front().name.c_str());
      return 1;
    }
    contenders.push_back({each.name, [&](Stream stream) { each.run(p, at, stream); }});
  }
  const auto library = CublasGemm<bf16>::prepare(p, at);
  contenders.push_back({"cuBLAS", [&](Stream s) { CublasGemm<bf16>::run(library, s); }});

  std::vector<ClockSample> clocks;
  const auto measured = measure(contenders, {}, &clocks);
  std::printf("%" PRId64 " x %" PRId64 " x %" PRId64 ", TFLOP/s   cold    hot\n", p.m, p.n, p.k);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    std::printf("  %-52s %6.1f %6.1f %s\n", contenders[i].name.c_str(),
                p.flops() / measured[i].cold.median * 1e-6,
                p.flops() / measured[i].hot.median * 1e-6, measured[i].error.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  const std::vector<cookbook::Size> sizes =
      cookbook::product_sizes(argc, argv, {{4096, 4096, 4096}, {8192, 8192, 8192}});
  int status = 0;
  for (const auto& size : sizes) {
    if (const int failed = cookbook::gemm::sweep(size)) status = failed;
  }
  return status;
}
