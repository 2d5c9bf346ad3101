// SPDX-License-Identifier: MIT
// Sidebar: FP8. e4m3 operands, bf16 result: chapter 6's last kernel with another instruction, and
// tiles in groups of 16 rows.
//
// TMA and the swizzle only see bytes: two e4m3 are moved like one bf16. Tiles, tensor maps and
// descriptors below therefore count in *pairs*; only the wgmma counts in elements. A row of 128
// bytes holds 128 k instead of 64. Both operands must be k-contiguous (A row-major, B stored N x
// K): for FP8 the tensor cores cannot transpose as they read. Checks itself on both backends; on a
// GPU it is timed next to bf16. Usage: chapter-8-fp8 [M N K]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/07_swizzle/tile_order.cuh"
#include "common/harness/run/arguments.hpp"
#if COOKBOOK_CUDA
#include "chapters/08_persistent/linked_level.hpp"
#include "common/bench/bench.hpp"
#include "common/harness/run/roofs.hpp"
#endif

namespace cookbook::gemm {
namespace fp8 {

/// As chapter 6's mma_k_block, with the FP8 instruction: 32 k (16 pairs) per instruction.
template <class C, int kMmaM, int kAccumulators>
__device__ __forceinline__ void mma_k_block_fp8(float (&acc)[kMmaM][kAccumulators],
                                                const Descriptors<C>& tiles, bool accumulate) {
  using A = typename Stage<C>::A;
  using B = typename Stage<C>::B;
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < C::kBlockK; k += 16) {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
      wgmma_m64k32_e4m3<C::kBlockN>(
          acc[i], wgmma_descriptor_advance(tiles.a, A::offset_bytes(64 * i, k)),
          wgmma_descriptor_advance(tiles.b, B::offset_bytes(0, k)), accumulate || k > 0);
    }
  }
  wgmma_commit();
}

/// As level 7's of chapter 6, with these batches.
struct MainLoop {
  template <class C, class Smem, int kMmaM, int kAccumulators>
  static __device__ __forceinline__ void multiply(float (&acc)[kMmaM][kAccumulators], Smem& smem,
                                                  const Descriptors<C>& tiles, int k_blocks) {
    StageCursor<C::kStages> read;
    int previous = 0;  // the stage that the batch in flight reads
    for (int k_block = 0; k_block < k_blocks; ++k_block) {
      mbarrier_wait(&smem.full[read.stage], read.phase);
      mma_k_block_fp8(acc, tiles.at(read.stage), k_block > 0);
      wgmma_wait<1>();  // the previous batch has finished: its stage is free
      if (k_block > 0 && lane_idx() == 0) mbarrier_arrive(&smem.empty[previous]);
      previous = read.stage;
      read.advance();
    }
    wgmma_wait<0>();  // the last batch; no load waits for its stage
  }
};

struct Config : tma_store::Config<Major::k, Major::k> {
  using MainLoop = fp8::MainLoop;
  using Order = GroupedOrder<16>;
};

/// The value of an e4m3 byte: one sign bit, four of exponent (bias 7), three of fraction; no
/// infinity.
double value_of(unsigned char bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const double sign = bits & 128 ? -1 : 1;
  if (exponent == 15 && fraction == 7) return NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -9);
  return sign * std::ldexp(8 + fraction, exponent - 10);
}

int run(std::int64_t m, std::int64_t n, std::int64_t k) {
  if (m < 1 || n < 8 || k < 16 || n % 8 != 0 || k % 16 != 0) {
    std::fprintf(stderr, "chapter-8-fp8: M at least 1, N a multiple of 8, K of 16\n");
    return 2;
  }
  std::vector<unsigned char> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(n * k));
  std::uint32_t state = 1;
  for (auto* matrix : {&a, &b}) {
    for (unsigned char& bits : *matrix) {  // magnitudes up to 30, never NaN
      state = state * 1664525u + 1013904223u;
      bits = static_cast<unsigned char>(state >> 24 & 0x80) |
             static_cast<unsigned char>((state >> 16) % 0x60);
    }
  }
  DeviceMemory device_a(a.size(), "a"), device_b(b.size(), "b"),
      device_c(static_cast<size_t>(m * n) * 2, "c");
  device_a.copy_from_host(a.data(), a.size());
  device_b.copy_from_host(b.data(), b.size());

  // In pairs: K / 2 per row.
  const Problem pairs = Problem::make_layout({m, n, k / 2}, {}, false, true);
  const Buffers at{device_a.as<bf16>(), device_b.as<bf16>(), device_c.as<bf16>()};
  const TmaPlan plan = TmaStore::prepare(pairs, at);
  const auto product = [&](Stream stream) { tma_store::launch_tiles<Config>(plan, stream); };
  product({});
  synchronize();

  // Each instruction adds 32 terms and the sum so far, of which it keeps 13 bits below the largest
  // exponent among them, and 13 fraction bits of the result (docs/simt.md, "What tensor cores add
  // up"). So a term may lose all of itself, or one unit of the last bit kept.
  constexpr std::int64_t kStep = 32;
  std::vector<std::uint16_t> row(static_cast<size_t>(n));
  double worst = 0;
  for (std::int64_t i = 0; i < m; i += std::max<std::int64_t>(1, (m - 1) / 11)) {
    device_c.copy_to_host(row.data(), row.size() * 2, static_cast<size_t>(i * n) * 2);
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, lost = 0;
      for (std::int64_t step = 0; step < k; step += kStep) {
        double terms[kStep] = {}, largest = std::fabs(sum) + lost;
        for (std::int64_t x = step; x < std::min(step + kStep, k); ++x) {
          double& term = terms[x - step];
          term = value_of(a[static_cast<size_t>(i * k + x)]) *
                 value_of(b[static_cast<size_t>(j * k + x)]);
          largest = std::max(largest, std::fabs(term));
          sum += term;
        }
        const double unit = std::ldexp(largest, -13);
        for (const double term : terms) lost += std::min(std::fabs(term), unit);
        lost += unit + std::ldexp(std::fabs(sum) + lost, -13);
      }
      const std::uint32_t wide = std::uint32_t{row[static_cast<size_t>(j)]} << 16;
      float got;
      std::memcpy(&got, &wide, 4);
      const double allowed = lost + std::ldexp(std::fabs(sum), -8);
      const double ratio = std::fabs(got - sum) / allowed;
      if (!(ratio <= worst)) worst = ratio;
    }
  }
  std::printf("FP8 %lld x %lld x %lld: largest error %.2f of what is allowed\n",
              static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k),
              worst);

#if COOKBOOK_CUDA
  const Problem same = Problem::make_layout({m, n, k}, {}, false, true);
  std::vector<std::uint16_t> random(static_cast<size_t>(std::max(m, n) * k));
  for (auto& bits : random) {
    state = state * 1664525u + 1013904223u;
    bits = static_cast<std::uint16_t>(0x3f00 | (state >> 16 & 0x80ff));
  }
  DeviceMemory wide_a(static_cast<size_t>(m * k) * 2, "a"),
      wide_b(static_cast<size_t>(n * k) * 2, "b");
  wide_a.copy_from_host(random.data(), wide_a.bytes());
  wide_b.copy_from_host(random.data(), wide_b.bytes());
  const Buffers wide_at{wide_a.as<bf16>(), wide_b.as<bf16>(), device_c.as<bf16>()};
  const std::vector<Contender> contenders{
      {"FP8, this kernel", product},
      {"bf16, chapter 6, tma_store (row-major order)",
       prepare_level(chapter_6_entry(), "tma_store", same, wide_at)},
      {"bf16, library/gemm", prepare_level(capstone_gemm_entry(), "any_shape", same, wide_at)}};
  const auto measured = measure(contenders, {}, nullptr);
  const Roofs roofs = measure_roofs();
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double tflops = same.flops() / measured[i].cold.median * 1e-6;
    const double roof =
        roof_value(roofs, i == 0 ? Roof::wgmma_fp8 : Roof::wgmma_bf16).value_or(NAN);
    std::printf("  %-46s %7.1f TFLOP/s, %.0f %% of its roof of %.0f %s\n",
                contenders[i].name.c_str(), tflops, 100 * tflops / roof, roof,
                measured[i].error.c_str());
  }
#endif
  return worst <= 1 ? 0 : 1;
}

}  // namespace fp8
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  using cookbook::gemm::fp8::run;
  if (argc > 4) cookbook::refuse_argument(argv, "[M N K]", argv[4]);
  if (argc > 1) {
    const auto size = cookbook::product_size(argc, argv, 1, "[M N K]");
    return run(size[0], size[1], size[2]);
  }
#if COOKBOOK_CUDA
  return run(4096, 4096, 4096) | run(1000, 520, 336);
#else
  return run(128, 256, 256) | run(130, 264, 144);
#endif
}
