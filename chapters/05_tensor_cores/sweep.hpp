// SPDX-License-Identifier: MIT
// Shared by the sidebars of chapters 5 to 8 and of library/gemm: one GEMM on random operands. Each
// contender is checked against cuBLAS, timed interleaved with it, and printed as a row of a table.
// CUDA backend only.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "chapters/05_tensor_cores/cublas_gemm.hpp"
#include "common/problems/gemm.hpp"
#include "common/bench/bench.hpp"

namespace cookbook::gemm {

/// Uniform in [-1, 1). All-equal values, zeros for example, would draw less power and raise the
/// clock.
inline DeviceMemory random_matrix(std::int64_t elements, std::uint64_t seed, const char* name) {
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

/// One GEMM, cuBLAS's result, and the contenders.
class Sweep {
 public:
  Sweep(const Size& size, bool a_transposed, bool b_transposed)
      : problem(Problem::make_layout(size, {}, a_transposed, b_transposed)),
        a_(random_matrix(problem.a_rows() * problem.lda, 1, "a")),
        b_(random_matrix(problem.b_rows() * problem.ldb, 2, "b")),
        c_(static_cast<std::size_t>(problem.m * problem.ldc) * 2, "c"),
        buffers{a_.as<bf16>(), b_.as<bf16>(), c_.as<bf16>()},
        library_(CublasGemm<bf16>::prepare(problem, buffers)) {
    contenders_.push_back({"cuBLAS", [this](Stream s) { CublasGemm<bf16>::run(library_, s); }});
    contenders_[0].run({});
    synchronize();
    expected_ = sample();
  }
  Sweep(const Sweep&) = delete;

  /// Runs `prepare`, which returns the function that launches the GEMM. A wrong result or a failed
  /// launch prints a line and adds no contender.
  void add(const std::string& name, const std::function<std::function<void(Stream)>()>& prepare) {
    try {
      const std::function<void(Stream)> run = prepare();
      c_.fill(0xff);
      run({});
      synchronize();
      const float worst = difference(sample());
      if (worst < 0.05f) {
        contenders_.push_back({name, run});
      } else {
        std::printf("  %-62s differs from cuBLAS by %g\n", name.c_str(), worst);
        failed_ = true;
      }
    } catch (const std::exception& error) {
      std::printf("  %-62s %s\n", name.c_str(), error.what());
    }
  }

  /// cuBLAS and what has been added.
  const std::vector<Contender>& contenders() const { return contenders_; }

  /// Times all contenders and prints the table. Returns the exit status.
  int report() {
    std::vector<ClockSample> clocks;
    const auto measured = measure(contenders_, {}, &clocks);
    std::printf("%" PRId64 " x %" PRId64 " x %" PRId64 " %s\n", problem.m, problem.n, problem.k,
                problem.layout().c_str());
    std::printf("  %-62s %6s %6s   %s\n", "TFLOP/s", "cold", "hot", "of cuBLAS: cold, hot");
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const Measurement& m = measured[i];
      std::printf("  %-62s %6.1f %6.1f   %5.3f  %5.3f %s\n", contenders_[i].name.c_str(),
                  problem.flops() / m.cold.median * 1e-6, problem.flops() / m.hot.median * 1e-6,
                  measured[0].cold.median / m.cold.median, measured[0].hot.median / m.hot.median,
                  m.error.c_str());
    }
    std::fflush(stdout);
    return failed_ ? 1 : 0;
  }

  const Problem problem;

 private:
  DeviceMemory a_, b_, c_;

 public:
  const Buffers buffers;

 private:
  /// Some rows of C as floats: the first, the last, and those around the tiles' edges.
  std::vector<float> sample() const {
    std::vector<float> values;
    std::vector<std::uint16_t> row(static_cast<std::size_t>(problem.n));
    const std::int64_t step = std::max<std::int64_t>(1, (problem.m - 1) / 37);
    for (std::int64_t i = 0; i < problem.m; i += step) {
      c_.copy_to_host(row.data(), row.size() * 2, static_cast<std::size_t>(i * problem.ldc) * 2);
      for (std::uint16_t bits : row) {
        const std::uint32_t wide = std::uint32_t{bits} << 16;
        float value;
        std::memcpy(&value, &wide, 4);
        values.push_back(value);
      }
    }
    return values;
  }
  /// Largest difference relative to the size of a typical element; NaN if any element is NaN.
  float difference(const std::vector<float>& got) const {
    float worst = 0;
    const float scale = static_cast<float>(std::sqrt(static_cast<double>(problem.k)) / 3);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const float error = std::fabs(got[i] - expected_[i]) / scale;
      if (!(error <= worst)) worst = error;
    }
    return worst;
  }

  CublasGemm<bf16>::Plan library_;
  std::vector<Contender> contenders_;
  std::vector<float> expected_;
  bool failed_ = false;
};

}  // namespace cookbook::gemm
