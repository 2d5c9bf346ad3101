// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: three ways to copy into shared memory: plain loads through registers, cp.async and TMA.
// Boxes have 1 to 12 KB. It shows when TMA does not pay. Usage: chapter-6-copy-engines
#include <cstdio>
#include <string>
#include <vector>

#include "chapters/06_tma/operand.cuh"
#include "chapters/06_tma/tma_level.cuh"
#include "common/bench/bench.hpp"
#include "common/device/cp_async.cuh"
#include "common/device/mbarrier.cuh"
#include "common/harness/run/arguments.hpp"

namespace cookbook::gemm {
namespace copy_engines {

enum class How { plain, async, tma };

template <How kWay, int kRowsABox>
struct Config {
  static constexpr How kHow = kWay;
  static constexpr int kRows = kRowsABox;  // of 128 bytes each
  static constexpr int kStages = 4;
  static constexpr int kThreads = 128;
  static constexpr int kBoxBytes = kRows * 128;
  static constexpr int kChunks = kBoxBytes / 16;  // of 16 bytes
  static constexpr int kEach = (kChunks + kThreads - 1) / kThreads;
  static constexpr int kSmemBytes = kStages * (kBoxBytes + 8);
};

/// Streams a matrix of rows x 64 bf16 through shared memory; its leading dimension is `pitch`
/// elements. cp.async and TMA keep kStages boxes in flight. The kernel XORs all elements, so that
/// no load can be skipped unnoticed.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const __grid_constant__ TensorMap map, const bf16* matrix, std::int64_t pitch, int boxes,
           uint32_t* out) {
  unsigned char* smem = dynamic_shared<unsigned char>();
  uint64_t* full = reinterpret_cast<uint64_t*>(smem + C::kStages * C::kBoxBytes);
  if (C::kHow == How::tma && threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) mbarrier_init(&full[s], 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  const int mine = (boxes - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) /
                   static_cast<int>(gridDim.x);
  const auto start = [&](int i) {  // loads the block's box i into stage i % kStages
    unsigned char* stage = smem + i % C::kStages * C::kBoxBytes;
    const int row = (static_cast<int>(blockIdx.x) + i * static_cast<int>(gridDim.x)) * C::kRows;
    if constexpr (C::kHow == How::tma) {
      if (threadIdx.x == 0 && i < mine) {
        mbarrier_arrive_expect_tx(&full[i % C::kStages], C::kBoxBytes);
        tma_load_2d(stage, &map, &full[i % C::kStages], 0, row);
      }
    } else {
#pragma unroll
      for (int j = 0; j < C::kEach; ++j) {
        const int chunk = static_cast<int>(threadIdx.x) + j * C::kThreads;
        if (i < mine && chunk < C::kChunks) {
          const bf16* from = matrix + (row + chunk / 8) * pitch + chunk % 8 * 8;
          if constexpr (C::kHow == How::async) {
            cp_async<16>(stage + chunk * 16, from);
          } else {
            store_vector(stage + chunk * 16, load_vector<uint4>(from));
          }
        }
      }
      cp_async_commit();
    }
  };

  uint32_t sum = 0;
  for (int i = 0; i < C::kStages - 1; ++i) start(i);
  for (int i = 0; i < mine; ++i) {
    if constexpr (C::kHow == How::tma) {
      mbarrier_wait(&full[i % C::kStages], i / C::kStages & 1);
    } else {
      cp_async_wait<C::kStages - 2>();
    }
    __syncthreads();  // all threads see box i, and none still reads box i - 1
    start(i + C::kStages - 1);
    const unsigned char* stage = smem + i % C::kStages * C::kBoxBytes;
    for (int chunk = static_cast<int>(threadIdx.x); chunk < C::kChunks; chunk += C::kThreads) {
      const uint4 v = load_vector<uint4>(stage + chunk * 16);
      sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  atomicXor(out, sum);
}

template <How kWay, int kRows>
void add(std::vector<Contender>& contenders, const bf16* matrix, int rows, uint32_t* out) {
  using C = Config<kWay, kRows>;
  constexpr std::int64_t kPitch = 64;
  const TensorMap map = matrix_map(matrix, rows, 64, kPitch, kRows, 64, Swizzle::none);
  const unsigned blocks = static_cast<unsigned>(4 * device_info().sm_count);
  const char* names[] = {"plain loads", "cp.async", "TMA"};
  contenders.push_back({std::string(names[static_cast<int>(kWay)]) + ", boxes of " +
                            std::to_string(C::kBoxBytes / 1024) + " KB",
                        [=](Stream stream) {
                          launch(kernel<C>, {dim3(blocks), dim3(C::kThreads), C::kSmemBytes},
                                 stream, map, matrix, kPitch, rows / kRows, out);
                        }});
}

template <int kRows>
void add_all(std::vector<Contender>& contenders, const bf16* matrix, int rows, uint32_t* out) {
  add<How::plain, kRows>(contenders, matrix, rows, out);
  add<How::async, kRows>(contenders, matrix, rows, out);
  add<How::tma, kRows>(contenders, matrix, rows, out);
}

int run() {
  constexpr int kRows = 1 << 21;  // 256 MB
  std::vector<uint32_t> host(std::size_t{kRows} * 32);
  uint32_t expected = 0, state = 1;
  for (uint32_t& word : host) {
    state = state * 1664525u + 1013904223u;
    word = state;
    expected ^= word;
  }
  DeviceMemory matrix(host.size() * 4, "matrix"), out(4, "xor");
  matrix.copy_from_host(host.data(), matrix.bytes());

  std::vector<Contender> contenders;
  const bf16* data = matrix.as<bf16>();
  uint32_t* sum = out.as<uint32_t>();
  add_all<8>(contenders, data, kRows, sum);
  add_all<32>(contenders, data, kRows, sum);
  add_all<64>(contenders, data, kRows, sum);
  add_all<96>(contenders, data, kRows / 96 * 96, sum);

  int status = 0;
  for (const Contender& each : contenders) {
    if (each.name.find("12 KB") != std::string::npos) continue;  // skips rows: timed only
    uint32_t got = 0;
    out.copy_from_host(&got, 4);
    each.run({});
    synchronize();
    out.copy_to_host(&got, 4);
    if (got != expected) {
      std::printf("%s: wrong\n", each.name.c_str());
      status = 1;
    }
  }
  const auto measured = measure(contenders, {}, nullptr);
  std::printf("%-32s %8s\n", "256 MB through shared memory", "GB/s");
  for (std::size_t i = 0; i < measured.size(); ++i) {
    std::printf("  %-30s %8.0f %s\n", contenders[i].name.c_str(),
                static_cast<double>(matrix.bytes()) / measured[i].cold.median * 1e-3,
                measured[i].error.c_str());
  }
  return status;
}

}  // namespace copy_engines
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  return cookbook::gemm::copy_engines::run();
}
