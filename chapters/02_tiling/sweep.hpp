// SPDX-License-Identifier: MIT
// Shared by the sidebars of chapters 2 and 4: checks and times several kernels of the same
// signature on one GEMM, and prints with each speed the facts that explain it. CUDA backend only.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "chapters/02_tiling/problem.hpp"
#include "common/bench/bench.hpp"
#include "common/harness/verdict/check.hpp"

namespace cookbook::sgemm {

/// A kernel to be timed, how to launch it, and the facts about that launch.
struct Candidate {
  std::string name;
  std::function<void(const Problem&, const Buffers&, Stream)> run;
  const void* kernel;
  int threads;
  std::size_t smem_bytes;  ///< dynamic shared memory
};

/// `extra`: arguments of the kernel after C.
template <class C, class... Extra>
Candidate candidate(std::string name,
                    void (*kernel)(int, int, int, const float*, int64_t, const float*, int64_t,
                                   float*, int64_t, Extra...),
                    std::size_t smem_bytes = 0, Extra... extra) {
  const auto run = [=](const Problem& p, const Buffers& at, Stream stream) {
    launch(kernel, {grid_of_tiles<C>(p), dim3(C::kThreads), smem_bytes}, stream, p.m, p.n, p.k,
           at.a, p.lda, at.b, p.ldb, at.c, p.ldc, extra...);
  };
  return {std::move(name), run, reinterpret_cast<const void*>(kernel), C::kThreads, smem_bytes};
}

/// Times all candidates on one GEMM, interleaved, and prints a table: registers and bytes of local
/// memory per thread ("spilled", including arrays on the stack), shared memory per block, blocks
/// that fit on an SM, TFLOP/s with a cold L2. A candidate with a wrong result, or whose launch
/// fails, prints a message instead of a speed.
inline void sweep(const Size& size, const std::vector<Candidate>& candidates) {
  auto ladder = ladder_over<Problem>("sgemm", "", {"M", "N", "K"});
  Instance instance(ladder, size, InputKind::normal, 1);
  const Problem p = Problem::make(size, {});
  const Buffers at = Buffers::bind(instance.pointers());

  std::vector<Contender> contenders;
  std::vector<std::string> wrong;
  for (const Candidate& c : candidates) {
    contenders.push_back({c.name, [&c, p, at](Stream stream) { c.run(p, at, stream); }});
    instance.reset();
    try {
      contenders.back().run({});
      synchronize();
      const auto comparison = instance.compare();
      wrong.push_back(comparison.ok ? "" : comparison.message);
    } catch (const std::exception& error) {
      wrong.push_back(error.what());
    }
  }

  std::vector<Contender> right;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (wrong[i].empty()) right.push_back(contenders[i]);
  }
  BenchOptions options;
  options.seconds = 1.0 * static_cast<double>(right.size());
  const std::vector<Measurement> measured = measure(right, options, nullptr);

  std::printf("\n%lld x %lld x %lld\n", static_cast<long long>(p.m), static_cast<long long>(p.n),
              static_cast<long long>(p.k));
  std::printf("  %-40s %9s %7s %9s %9s %9s\n", "kernel", "registers", "spilled", "shared",
              "blocks/SM", "TFLOP/s");
  for (std::size_t i = 0, next = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    if (!wrong[i].empty()) {
      std::printf("  %-40s %s\n", c.name.c_str(), wrong[i].c_str());
      continue;
    }
    const Measurement& m = measured[next++];
    cudaFuncAttributes facts{};
    int blocks = 0;
    cudaFuncGetAttributes(&facts, c.kernel);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, c.kernel, c.threads, c.smem_bytes);
    std::printf("  %-40s %9d %7zu %9zu %9d %9.2f %s\n", c.name.c_str(), facts.numRegs,
                facts.localSizeBytes, facts.sharedSizeBytes + c.smem_bytes, blocks,
                m.cold.median > 0 ? p.flops() / m.cold.median * 1e-6 : 0.0, m.error.c_str());
  }
}

}  // namespace cookbook::sgemm
