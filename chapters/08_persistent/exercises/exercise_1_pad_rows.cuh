// SPDX-License-Identifier: MIT
// Exercise 8.1, a hole: the copy to padded rows, with 16-byte stores. As it stands a thread stores
// single elements. Let it load eight neighbouring elements of a row and store them at once. What
// may it write beyond the last column, and why does that do no harm?
#pragma once

#include "chapters/06_tma/level_7_one_in_flight.cuh"

namespace cookbook::gemm {

namespace exercise_pad_rows {

struct Config {
  static constexpr int kThreads = 256;
  static constexpr int kElements = 8;  // 16 bytes
};

/// to[row][col] = from[row][col]; to_pitch is a multiple of 8 and `to` is 16-byte aligned; `from`
/// is not aligned.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const bf16* __restrict__ from, std::int64_t from_pitch, bf16* __restrict__ to,
           std::int64_t to_pitch, int cols, int chunks) {
  const std::int64_t row = blockIdx.x / static_cast<unsigned>(chunks);
  const int first =
      static_cast<int>(blockIdx.x % static_cast<unsigned>(chunks)) * (C::kThreads * C::kElements);
  for (int i = 0; i < C::kElements; ++i) {  // yours
    const int col = first + i * C::kThreads + static_cast<int>(threadIdx.x);
    if (col < cols) to[row * to_pitch + col] = from[row * from_pitch + col];
  }
}

}  // namespace exercise_pad_rows

struct ExercisePadRows : LevelT<bf16> {
  using Config = exercise_pad_rows::Config;
  struct Plan {
    TmaPlan gemm;  // on the copies
    Problem problem;
    Buffers buffers;
    DeviceMemory a{}, b{};
  };
  static constexpr LevelText text{
      .name = "exercise_pad_rows",
      .changed = "operands copied to padded rows, 16 bytes per store",
      .expect = "an eighth of the store instructions",
  };

  static std::int64_t padded(std::int64_t cols) { return (cols + 7) / 8 * 8; }
  /// Warps that store: one for every 256 elements or part of them.
  static double stores(std::int64_t rows, std::int64_t cols) {
    return static_cast<double>(rows) * static_cast<double>((cols + 255) / 256);
  }
  static Claims claims(const Problem& p) {
    return {global_stores("copy of a").requests(stores(p.m, p.k)),
            global_stores("copy of b").requests(stores(p.k, p.n))};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (p.a_transposed || p.b_transposed) return Support::no("NN only");
    return device.cc() == 90 ? Support::yes() : Support::no("needs sm_90a (wgmma)");
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{{}, p, at};
    Problem copied = p;
    copied.lda = padded(p.k), copied.ldb = padded(p.n);
    plan.a = DeviceMemory(static_cast<size_t>(p.m * copied.lda) * 2, "copy of a");
    plan.b = DeviceMemory(static_cast<size_t>(p.k * copied.ldb) * 2, "copy of b");
    plan.gemm = OneInFlight::prepare(copied, {plan.a.as<bf16>(), plan.b.as<bf16>(), at.c});
    return plan;
  }
  static void copy(const bf16* from, std::int64_t rows, std::int64_t cols, std::int64_t pitch,
                   bf16* to, Stream stream) {
    constexpr std::int64_t kChunk = Config::kThreads * Config::kElements;
    const std::int64_t chunks = (cols + kChunk - 1) / kChunk;
    launch(exercise_pad_rows::kernel<Config>,
           {dim3(static_cast<unsigned>(rows * chunks)), dim3(Config::kThreads)}, stream, from,
           pitch, to, padded(cols), static_cast<int>(cols), static_cast<int>(chunks));
  }
  static void run(const Plan& plan, Stream stream) {
    const Problem& p = plan.problem;
    copy(plan.buffers.a, p.m, p.k, p.lda, plan.a.as<bf16>(), stream);
    copy(plan.buffers.b, p.k, p.n, p.ldb, plan.b.as<bf16>(), stream);
    OneInFlight::run(plan.gemm, stream);
  }
};

}  // namespace cookbook::gemm
