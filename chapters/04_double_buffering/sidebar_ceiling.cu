// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar of chapter 4: the ceiling of the inner loop. The outer product of a thread tile, repeated
// without global memory and without barriers: with fragments that stay in registers, and with
// fragments that are loaded from shared memory for each step. The order of the FMAs varies.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "chapters/04_double_buffering/level_5_wide_tile.cuh"
#include "common/bench/bench.hpp"
#include "common/harness/run/arguments.hpp"

namespace cookbook::sgemm {
namespace {

constexpr int kSteps = 8;  // of k per pass: as many as a tile of the levels has

/// The order of the FMAs of acc += a b^T.
enum class Order { rows, snake, columns, row_pairs };
constexpr const char* kNames[] = {"row by row", "snake along rows", "column by column",
                                  "snake along pairs of rows"};

struct Place {
  int row, col;
};

/// Which element FMA number `s` adds to. The snakes turn at each end: two FMAs that follow each
/// other always share an operand.
template <int kRows, int kCols>
constexpr Place place(Order order, int s) {
  const auto mirrored = [](int i, int extent, bool back) { return back ? extent - 1 - i : i; };
  switch (order) {
    case Order::rows: return {s / kCols, s % kCols};
    case Order::snake: return {s / kCols, mirrored(s % kCols, kCols, s / kCols % 2)};
    case Order::columns: return {s % kRows, s / kRows};
    case Order::row_pairs: {
      const int pair = s / (2 * kCols), col = s % (2 * kCols) / 2;
      return {2 * pair + mirrored(s % 2, 2, col % 2), mirrored(col, kCols, pair % 2)};
    }
  }
  return {};
}

/// `in`: at least 8,192 floats. The sums are stored so that the compiler keeps the loop.
template <int kRows, int kCols, int kBlocksPerSm, Order kOrder, bool kFromShared>
__global__ void __launch_bounds__(256, kBlocksPerSm)
    outer_products(const float* __restrict__ in, float* __restrict__ out, int repeats) {
  constexpr int kWarpM = 4 * kRows, kWarpN = 8 * kCols, kPitchA = 2 * kWarpM + 4;
  __shared__ __align__(16) float a_tile[kSteps][kPitchA];     // (k, rows): 2 x 4 warps
  __shared__ __align__(16) float b_tile[kSteps][4 * kWarpN];  // (k, columns)
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  for (int i = tid; i < kSteps * kPitchA; i += 256) a_tile[0][i] = in[i];
  for (int i = tid; i < kSteps * 4 * kWarpN; i += 256) b_tile[0][i] = in[i];
  __syncthreads();

  // The layout of level 4: what a warp reads takes two wavefronts.
  const int row = warp / 4 * kWarpM + 4 * (lane / 16 * 2 + lane % 2);
  const int col = warp % 4 * kWarpN + 4 * (lane % 16 / 2);
  float a[2][kRows], b[2][kCols], acc[kRows][kCols] = {};
  const auto load_fragments = [&](int p) {
#pragma unroll
    for (int i = 0; i < kRows; i += 4) load_fragment4(&a[p % 2][i], &a_tile[p][row + 4 * i]);
#pragma unroll
    for (int j = 0; j < kCols; j += 4) load_fragment4(&b[p % 2][j], &b_tile[p][col + 8 * j]);
  };
  load_fragments(0);
#pragma unroll 1
  for (int r = 0; r < repeats; ++r) {
#pragma unroll
    for (int p = 0; p < kSteps; ++p) {
      if (kFromShared) load_fragments((p + 1) % kSteps);
      const int now = kFromShared ? p % 2 : 0;
#pragma unroll
      for (int s = 0; s < kRows * kCols; ++s) {
        const Place at = place<kRows, kCols>(kOrder, s);
        acc[at.row][at.col] = __fmaf_rn(a[now][at.row], b[now][at.col], acc[at.row][at.col]);
      }
    }
    if (kFromShared) asm volatile("" ::: "memory");  // each pass loads its fragments again
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kCols; ++j) sum += acc[i][j];
  }
  out[blockIdx.x * 256 + tid] = sum;
}

struct Row {
  std::string name;
  double flops;
};

template <int kRows, int kCols, int kBlocksPerSm, Order kOrder, bool kFromShared>
void add(const float* in, float* out, std::vector<Row>& rows, std::vector<Contender>& contenders) {
  constexpr int kRepeats = 2000 * 128 / (kRows * kCols);
  const int blocks = device_info().sm_count * kBlocksPerSm;
  rows.push_back({std::to_string(kRows) + " x " + std::to_string(kCols) + ", " +
                      (kFromShared ? "shared memory, " : "registers, ") +
                      kNames[static_cast<int>(kOrder)],
                  2.0 * kRows * kCols * kSteps * kRepeats * 256 * blocks});
  contenders.push_back({rows.back().name, [=](Stream stream) {
                          launch(outer_products<kRows, kCols, kBlocksPerSm, kOrder, kFromShared>,
                                 {dim3(static_cast<unsigned>(blocks)), dim3(256)}, stream, in, out,
                                 kRepeats);
                        }});
}

template <int kRows, int kCols, int kBlocksPerSm>
void add_all(const float* in, float* out, std::vector<Row>& rows,
             std::vector<Contender>& contenders) {
  add<kRows, kCols, kBlocksPerSm, Order::rows, false>(in, out, rows, contenders);
  add<kRows, kCols, kBlocksPerSm, Order::snake, false>(in, out, rows, contenders);
  add<kRows, kCols, kBlocksPerSm, Order::columns, false>(in, out, rows, contenders);
  add<kRows, kCols, kBlocksPerSm, Order::row_pairs, false>(in, out, rows, contenders);
  add<kRows, kCols, kBlocksPerSm, Order::rows, true>(in, out, rows, contenders);
  add<kRows, kCols, kBlocksPerSm, Order::snake, true>(in, out, rows, contenders);
  add<kRows, kCols, kBlocksPerSm, Order::columns, true>(in, out, rows, contenders);
  add<kRows, kCols, kBlocksPerSm, Order::row_pairs, true>(in, out, rows, contenders);
}

void run() {
  const std::vector<float> ones(8192, 1.0f);
  DeviceMemory in(ones.size() * sizeof(float), "in");
  DeviceMemory out(std::size_t{2} * 256 * device_info().sm_count * sizeof(float), "out");
  in.copy_from_host(ones.data(), in.bytes());
  std::vector<Row> rows;
  std::vector<Contender> contenders;
  add_all<16, 8, 1>(in.as<float>(), out.as<float>(), rows, contenders);
  add_all<8, 8, 2>(in.as<float>(), out.as<float>(), rows, contenders);
  const std::vector<Measurement> measured = measure(contenders, {}, nullptr);
  std::printf("%-56s TFLOP/s\n", "thread tile, fragments from, order of the FMAs");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::printf("%-56s %7.1f %s\n", rows[i].name.c_str(),
                measured[i].cold.median > 0 ? rows[i].flops / measured[i].cold.median * 1e-6 : 0.0,
                measured[i].error.c_str());
  }
}

}  // namespace
}  // namespace cookbook::sgemm

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  try {
    cookbook::sgemm::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-4-ceiling: %s\n", error.what());
    return 1;
  }
}
