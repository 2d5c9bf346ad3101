// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: which rate of L2 is its roof. The same loads, first with a part of the array per block,
// then with the whole array for every block, over sizes. Prints GB/s that the SMs receive. Usage:
// chapter-0-l2
#include <cstdint>
#include <cstdio>
#include <algorithm>
#include <exception>
#include <vector>

#include "common/bench/bench.hpp"
#include "common/harness/run/arguments.hpp"

namespace cookbook {
namespace {

constexpr int kThreads = 512, kLoads = 8;  // loads of 16 bytes in flight per thread
constexpr int kTile = kThreads * kLoads;   // vectors of four floats: 64 KB
constexpr int kBlocksPerSm = 2;
constexpr double kBytes = 1.2e9;  // per launch, about

/// Every block reads `count` tiles per pass, from tile `blockIdx.x * stride` on, and starts again
/// at tile 0 after the last of `tiles`. out: the sum of each thread.
__global__ void __launch_bounds__(kThreads)
    read_tiles(const float4* __restrict__ in, float* __restrict__ out, int tiles, int stride,
               int count, int passes) {
  float sum[kLoads] = {};
  const int first = static_cast<int>(std::int64_t{blockIdx.x} * stride % tiles);
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll 1
    for (int i = 0, tile = first; i < count; ++i, tile = tile + 1 == tiles ? 0 : tile + 1) {
      const float4* at = in + std::int64_t{tile} * kTile + threadIdx.x;
      float4 value[kLoads];
#pragma unroll
      for (int r = 0; r < kLoads; ++r) value[r] = __ldcg(at + r * kThreads);
#pragma unroll
      for (int r = 0; r < kLoads; ++r) {
        sum[r] += value[r].x + value[r].y + (value[r].z + value[r].w);
      }
    }
    __threadfence_block();  // registers must not serve the next pass
  }
  float total = 0;
#pragma unroll
  for (int r = 0; r < kLoads; ++r) total += sum[r];
  out[std::int64_t{blockIdx.x} * kThreads + threadIdx.x] = total;
}

/// Reads an array of `tiles` tiles. `own`: a part of it per block. Returns GB/s that the SMs
/// receive, or -1 if a sum is wrong.
double rate(const std::vector<float>& host, const DeviceMemory& in, int tiles, bool own) {
  const int blocks = kBlocksPerSm * device_info().sm_count;
  const int count = own ? tiles / blocks : tiles;
  const int stride = own ? count : tiles / blocks + 1;
  if (count == 0) return 0;
  const double pass_bytes = 16.0 * kTile * count * blocks;
  const int passes = std::max(1, static_cast<int>(kBytes / pass_bytes));
  DeviceMemory out(static_cast<std::size_t>(blocks) * kThreads * sizeof(float), "out");
  const auto run = [&](Stream stream) {
    launch(read_tiles, {dim3(static_cast<unsigned>(blocks)), dim3(kThreads)}, stream,
           in.as<float4>(), out.as<float>(), tiles, stride, count, passes);
  };
  const Measurement measured =
      measure({{"read", run}}, {.min_rounds = 5, .seconds = 0.05}, nullptr).front();
  if (!measured.error.empty()) {
    std::fprintf(stderr, "%s\n", measured.error.c_str());
    return -1;
  }
  std::vector<float> sums(static_cast<std::size_t>(blocks) * kThreads);
  out.copy_to_host(sums.data(), out.bytes());
  for (const int block : {0, blocks / 2, blocks - 1}) {
    for (int thread = 0; thread < kThreads; thread += 37) {
      double sum = 0;  // of whole numbers: exact, also on the GPU
      for (int i = 0; i < count; ++i) {
        const int tile = static_cast<int>((std::int64_t{block} * stride + i) % tiles);
        for (int r = 0; r < kLoads; ++r) {
          const std::size_t at =
              std::size_t{4} * (std::size_t(tile) * kTile + r * kThreads + thread);
          for (int k = 0; k < 4; ++k) sum += static_cast<double>(host[at + k]);
        }
      }
      const auto index = static_cast<std::size_t>(block) * kThreads + thread;
      if (static_cast<double>(sums[index]) != sum * passes) return -1;
    }
  }
  return pass_bytes * passes / measured.hot.median * 1e-3;
}

int run() {
  constexpr int kMiB = 1 << 20, kMost = 48;
  std::vector<float> host(std::size_t{kMost} * kMiB / sizeof(float));
  std::uint32_t state = 1;
  for (float& value : host) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 30);
  }
  DeviceMemory in(host.size() * sizeof(float), "in");
  in.copy_from_host(host.data(), in.bytes());
  std::printf("%8s  %22s  %22s\n", "MiB", "a part per block, GB/s", "all of it, GB/s");
  bool right = true;
  for (const int mib : {6, 12, 18, 24, 30, 36, 42, 48}) {
    const int tiles = mib * kMiB / (16 * kTile);
    const double own = rate(host, in, tiles, true), all = rate(host, in, tiles, false);
    right = right && own >= 0 && all >= 0;
    std::printf("%8d  %22.0f  %22.0f\n", mib, own, all);
  }
  std::puts(right ? "every sum is right; 0: less than a tile per block" : "WRONG SUMS");
  return right ? 0 : 1;
}

}  // namespace
}  // namespace cookbook

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  try {
    return cookbook::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
