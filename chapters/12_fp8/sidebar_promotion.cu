// SPDX-License-Identifier: MIT
// Sidebar: what is left of a sum that an FP8 tensor core keeps in its accumulator, and what
// promotion saves. C = A B^T, 64 x 64, no scales: error over K and over the k between two
// promotions. The model of tensor cores is that of the hardware, bit by bit: the CPU prints what an
// H200 prints. Usage: chapter-12-promotion [LARGEST_K], a multiple of 512; or chapter-12-promotion
// --json FILE: the data of a picture (docs/pictures.md).
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "chapters/12_fp8/scaled_tiles.cuh"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"

namespace cookbook::fp8 {
namespace {

constexpr int kTile = 64, kStep = 32;  // k of an instruction

struct PromotionConfig {
  static constexpr int kBlockM = kTile, kBlockN = kTile;
};

template <class C>
struct PromotionSmem {
  Stage<C> stage;
  uint64_t full;
};

/// c (64 x 64, fp32) = A B^T. The accumulators are added to sums in fp32 every `every` of k, a
/// multiple of 32, and at the end.
template <class C>
__global__ void __launch_bounds__(128)
    add_up(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, int k,
           int every, float* c) {
  auto& smem = *dynamic_shared<PromotionSmem<C>>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  float partial[kTile / 2], sum[kTile / 2] = {};
  bool fresh = true;  // the accumulators hold nothing yet
  for (int block = 0; block < k / kRowBytes; ++block) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&smem.full, sizeof(smem.stage));
      tma_load_2d(smem.stage.a, &map_a, &smem.full, block * kRowBytes, 0);
      tma_load_2d(smem.stage.b, &map_b, &smem.full, block * kRowBytes, 0);
    }
    mbarrier_wait(&smem.full, static_cast<uint32_t>(block % 2));
    for (int step = 0; step < kRowBytes; step += kStep) {
      wgmma_fence();
      wgmma_m64k32_e4m3<kTile>(partial, wgmma_descriptor_advance(descriptor_of(smem.stage.a), step),
                               wgmma_descriptor_advance(descriptor_of(smem.stage.b), step), !fresh);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_fence_operand(partial);
      const int done = block * kRowBytes + step + kStep;
      fresh = done % every == 0 || done == k;
      if (fresh) {
        for (int j = 0; j < kTile / 2; ++j) sum[j] += partial[j];
      }
    }
    __syncthreads();  // the stage has been read
  }
  const int row = warp_idx() * 16 + lane_idx() / 4, col = lane_idx() % 4 * 2;
  for (int j = 0; j < kTile / 2; ++j) {
    c[(row + j / 2 % 2 * 8) * kTile + col + j / 4 * 8 + j % 2] = sum[j];
  }
}

/// rows x k e4m3 numbers around 0, between -4 and 4; sums of four, so that few are large.
std::vector<unsigned char> numbers(int rows, int k, std::uint32_t seed) {
  std::vector<unsigned char> made(static_cast<std::size_t>(rows) * static_cast<std::size_t>(k));
  for (unsigned char& bits : made) {
    int total = 0;
    for (int i = 0; i < 4; ++i) {
      seed = seed * 1664525u + 1013904223u;
      total += static_cast<int>(seed >> 24) - 128;
    }
    const fp8_e4m3 number(static_cast<float>(total) / 128);
    std::memcpy(&bits, &number, 1);
  }
  return made;
}

struct Measured {
  double error;  // root mean square, relative to that of C
  float first;   // element (0, 0)
};

Measured measure(int every, int k, const std::vector<double>& exact, const TensorMap& a,
                 const TensorMap& b) {
  DeviceMemory c(sizeof(float) * kTile * kTile, "c");
  using C = PromotionConfig;
  launch(add_up<C>, {dim3(1), dim3(128), sizeof(PromotionSmem<C>)}, {}, a, b, k, every,
         c.as<float>());
  synchronize();
  std::vector<float> got(exact.size());
  c.copy_to_host(got.data(), c.bytes());
  double wrong = 0, all = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    wrong += (got[i] - exact[i]) * (got[i] - exact[i]);
    all += exact[i] * exact[i];
  }
  return {std::sqrt(wrong / all), got[0]};
}

/// For promotion every 32, 128, 512 and no k.
std::vector<Measured> row(int k) {
  const std::vector<unsigned char> a = numbers(kTile, k, 1), b = numbers(kTile, k, 2);
  const auto values = [](const std::vector<unsigned char>& bits) {
    std::vector<double> decoded;
    for (const unsigned char one : bits) {
      fp8_e4m3 number;
      std::memcpy(&number, &one, 1);
      decoded.push_back(static_cast<float>(number));
    }
    return decoded;
  };
  const std::vector<double> left = values(a), right = values(b);
  std::vector<double> exact;  // terms are multiples of 2^-18, and sums below 2^24
  for (int i = 0; i < kTile; ++i) {
    for (int j = 0; j < kTile; ++j) {
      exact.push_back(std::inner_product(left.begin() + i * k, left.begin() + (i + 1) * k,
                                         right.begin() + j * k, 0.0));
    }
  }
  DeviceMemory device_a(a.size(), "a"), device_b(b.size(), "b");
  device_a.copy_from_host(a.data(), a.size());
  device_b.copy_from_host(b.data(), b.size());
  const TensorMap map_a = operand_map(device_a.as<fp8_e4m3>(), kTile, k, k, kTile);
  const TensorMap map_b = operand_map(device_b.as<fp8_e4m3>(), kTile, k, k, kTile);
  std::vector<Measured> measured;
  for (const int every : {32, 128, 512, k})
    measured.push_back(measure(every, k, exact, map_a, map_b));
  return measured;
}

int run(int largest, const std::string* file) {
  if (device_info().cc() != 90) {
    std::fprintf(stderr, "chapter-12-promotion: needs sm_90a (wgmma)\n");
    return 2;
  }
  std::printf("error of C = A B^T, root mean square, relative to C's; promotion every ... k\n\n");
  std::printf("%8s %10s %10s %10s %10s\n", "K", "32", "128", "512", "never");
  std::vector<PictureData> rows;
  for (int k = 512; k <= largest; k *= 2) {
    std::printf("%8d", k);
    std::vector<double> errors, first;
    for (const Measured& measured : row(k)) {
      std::printf(" %10.2e", measured.error);
      errors.push_back(measured.error);
      first.push_back(measured.first);
    }
    std::printf("\n");
    std::fflush(stdout);
    rows.push_back(PictureData().set("k", k).set("errors", errors).set("first", first));
  }
  if (file) PictureData("promotion", 12).set("rows", rows).write(*file);
  return 0;
}

}  // namespace
}  // namespace cookbook::fp8

int main(int argc, char** argv) {
  using namespace cookbook;
  constexpr int kLargest = 8192;
  if (const auto file = json_argument(argc, argv)) return fp8::run(kLargest, &*file);
  if (argc == 1) return fp8::run(kLargest, nullptr);
  const auto largest = positive_number(argv[1]);
  if (argc > 2 || !largest || *largest % 512 != 0 || *largest > (1 << 20)) {
    refuse_argument(argv, "[LARGEST_K], a multiple of 512 up to 1048576", argv[argc - 1]);
  }
  return fp8::run(static_cast<int>(*largest), nullptr);
}
