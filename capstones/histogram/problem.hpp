// SPDX-License-Identifier: MIT
// The problem: counts[b] = how many of n keys are equal to b, for b = 0 .. bins - 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/backend/device_bytes.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::histogram {

/// The most bins that a problem has: what the levels keep in shared memory is sized for them.
inline constexpr int kMaxBins = 256;

struct Problem {
  std::int64_t n = 0;                // keys
  std::int64_t bins = 0;             // counters; keys from `bins` on are not counted
  std::int64_t equal = 0;            // percent of the keys that are bins / 2; the others are random
  std::vector<double> counted = {};  // the reference

  static Problem make(const Size& size, const Variant&) {
    if (size.size() != 3 || size[0] < 0 || size[0] >= std::int64_t{1} << 32 || size[1] < 0 ||
        size[1] > kMaxBins || size[2] < 0 || size[2] > 100) {
      throw BadSize(
          "a histogram takes n keys, 0 <= n < 2^32, 0 to 256 bins, and how many percent of the "
          "keys are equal, 0 to 100");
    }
    return {size[0], size[1], size[2]};
  }

  std::vector<TensorSpec> tensors() const {
    TensorSpec keys{"keys", DType::u32, 1, n, n, Role::input};
    keys.fill = [bins = bins, equal = equal](HostTensor& tensor, std::uint64_t seed) {
      draw_keys(tensor.data<std::uint32_t>(), tensor.spec.cols, static_cast<std::uint64_t>(bins),
                static_cast<std::uint64_t>(equal), seed);
    };
    return {keys, {"counts", DType::u32, 1, bins, bins, Role::output}};
  }

  /// Draws keys: `equal` percent are bins / 2, one in 1,024 of the others is out of range, and the
  /// rest are uniform.
  static void draw_keys(std::uint32_t* keys, std::int64_t n, std::uint64_t bins,
                        std::uint64_t equal, std::uint64_t seed) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t bits = mix_bits((seed << 40) + static_cast<std::uint64_t>(i));
      const std::uint64_t uniform = (bits >> 32) * bins >> 32;
      const bool is_outside = bits % 1024 == 0;
      const bool is_equal = (bits >> 10) % 1024 * 100 < equal * 1024;
      keys[i] = static_cast<std::uint32_t>(is_equal     ? bins / 2
                                           : is_outside ? bins + (bits >> 20) % 4
                                                        : uniform);
    }
  }

  /// The fewest bytes through device memory: each key is read once, each count is written once.
  double bytes() const { return 4.0 * static_cast<double>(n) + 4.0 * static_cast<double>(bins); }
  double flops() const { return 0; }

  std::vector<double> count(const HostTensors& tensors) const {
    std::vector<double> counts(static_cast<std::size_t>(bins), 0.0);
    const auto* keys = tensors["keys"].data<std::uint32_t>();
    for (std::int64_t i = 0; i < n; ++i) {
      if (keys[i] < bins) counts[keys[i]] += 1;
    }
    return counts;
  }
  void begin_reference(const HostTensors& tensors) { counted = count(tensors); }

  /// Whole numbers below 2^32: exact.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/,
                     std::int64_t /*row*/, double* value, double* bound) const {
    const std::vector<double> counts = counted.empty() ? count(tensors) : counted;
    for (std::size_t b = 0; b < counts.size(); ++b) value[b] = counts[b], bound[b] = 0;
  }
};

struct Buffers {
  const std::uint32_t* keys = nullptr;
  std::uint32_t* counts = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const std::uint32_t>("keys"), at.get<std::uint32_t>("counts")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Zeroes the counts: blocks add to them. One block.
template <int kThreads>
__global__ void __launch_bounds__(kThreads) clear_counts(std::uint32_t* counts, unsigned bins) {
  if (threadIdx.x < bins) counts[threadIdx.x] = 0;
}

/// Zeroes the counts before a level's own kernel.
inline void clear(const Problem& problem, const Buffers& buffers, Stream stream) {
  launch(clear_counts<kMaxBins>, {dim3(problem.bins > 0 ? 1 : 0), dim3(kMaxBins)}, stream,
         buffers.counts, problem.bins);
}

/// Blocks for n keys, so many per block; none if there are no keys.
inline unsigned blocks_for(std::int64_t n, std::int64_t per_block) {
  return static_cast<unsigned>(ceil_div(n, per_block));
}

}  // namespace cookbook::histogram
