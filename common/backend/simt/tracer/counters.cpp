// SPDX-License-Identifier: MIT
#include "common/backend/simt/tracer/counters.hpp"

#include <algorithm>
#include <bit>

namespace cookbook::simt {
namespace {

/// Fills `out` with the request's distinct addresses in ascending order; returns their number.
int distinct_addresses(const LaneRequest& request, uintptr_t (&out)[kLanes]) {
  int count = 0;
  bool ascending = true;
  for (uint32_t lanes = request.active; lanes != 0; lanes &= lanes - 1) {
    const uintptr_t address = request.address[std::countr_zero(lanes)];
    if (count > 0) {
      if (address == out[count - 1]) continue;
      ascending = ascending && address > out[count - 1];
    }
    out[count++] = address;
  }
  if (!ascending) {
    std::sort(out, out + count);
    count = static_cast<int>(std::unique(out, out + count) - out);
  }
  return count;
}

/// Wavefronts of the lanes in `lanes`, served together.
uint32_t phase_wavefronts(const LaneRequest& request, uint32_t lanes, int bytes, bool atomic) {
  constexpr int kBanks = 32;
  // Distinct words by bank, chained through `next`: at most 32 lanes of four words plus one each
  // for an unaligned start.
  constexpr int kMaxWords = kLanes * 5;
  uintptr_t word_of[kMaxWords];
  int16_t next[kMaxWords];
  int16_t head[kBanks];
  uint8_t depth[kBanks] = {};
  std::fill(head, head + kBanks, int16_t{-1});
  int words = 0;
  uint32_t wavefronts = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uintptr_t address = request.address[std::countr_zero(lanes)];
    const uintptr_t last = (address + bytes - 1) >> 2;
    for (uintptr_t word = address >> 2; word <= last && words < kMaxWords; ++word) {
      const int bank = static_cast<int>(word % kBanks);
      bool seen = false;
      if (!atomic) {
        for (int i = head[bank]; i >= 0 && !seen; i = next[i]) seen = word_of[i] == word;
      }
      if (seen) continue;
      word_of[words] = word;
      next[words] = head[bank];
      head[bank] = static_cast<int16_t>(words++);
      wavefronts = std::max<uint32_t>(wavefronts, ++depth[bank]);
    }
  }
  return wavefronts;
}

/// Whether every active lane in `lanes` has the same address as lane XOR 1, or every one as lane
/// XOR 2. Then two phases of a wide access are served as one.
bool phases_merge(const LaneRequest& request, uint32_t lanes) {
  for (const int distance : {1, 2}) {
    bool all = true;
    for (uint32_t rest = lanes; rest != 0 && all; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const int other = lane ^ distance;
      all = (lanes >> other & 1) == 0 || request.address[lane] == request.address[other];
    }
    if (all) return true;
  }
  return false;
}

}  // namespace

RequestCost global_cost(const LaneRequest& request, int bytes_per_lane) {
  uintptr_t address[kLanes];
  const int count = distinct_addresses(request, address);
  RequestCost cost;
  uintptr_t next_sector = 0;  // one past the last sector counted
  for (int i = 0; i < count; ++i) {
    const uintptr_t first = std::max(address[i] / kSectorBytes, next_sector);
    const uintptr_t last = (address[i] + bytes_per_lane - 1) / kSectorBytes;
    if (last < first) continue;
    cost.units += static_cast<uint32_t>(last - first + 1);
    next_sector = last + 1;
  }
  cost.ideal = static_cast<uint32_t>(
      (static_cast<uint64_t>(count) * bytes_per_lane + kSectorBytes - 1) / kSectorBytes);
  cost.ideal = std::min(cost.ideal, cost.units);
  return cost;
}

RequestCost shared_cost(const LaneRequest& request, int bytes_per_lane, SharedRule rule) {
  // A phase moves at most 128 bytes: all lanes up to 4 bytes, then half-warps, then quarter-warps.
  int phase_lanes = kLanes;
  if (bytes_per_lane > 8) {
    phase_lanes = 8;
  } else if (bytes_per_lane > 4) {
    phase_lanes = 16;
  }
  const auto lanes_from = [&](int first, int count) {
    const uint32_t mask = count == kLanes ? ~uint32_t{0} : (uint32_t{1} << count) - 1;
    return request.active & (mask << first);
  };
  RequestCost cost;
  const bool can_merge = rule == SharedRule::load_store && phase_lanes < kLanes;
  const int step = can_merge ? 2 * phase_lanes : phase_lanes;
  for (int first = 0; first < kLanes; first += step) {
    const uint32_t lanes = lanes_from(first, step);
    if (lanes == 0) continue;
    if (!can_merge || phases_merge(request, lanes)) {
      cost.units += phase_wavefronts(request, lanes, bytes_per_lane, rule == SharedRule::atomic);
      cost.ideal += 1;
      continue;
    }
    for (int half = 0; half < 2; ++half) {
      const uint32_t part = lanes_from(first + half * phase_lanes, phase_lanes);
      if (part == 0) continue;
      cost.units += phase_wavefronts(request, part, bytes_per_lane, false);
      cost.ideal += 1;
    }
  }
  return cost;
}

uint32_t source_wavefronts(const LaneRequest& source) {
  constexpr int kColumns = 32;
  uint8_t lanes_at[kColumns] = {};
  uint32_t wavefronts = 0;
  for (uint32_t lanes = source.active; lanes != 0; lanes &= lanes - 1) {
    const uintptr_t word = source.address[std::countr_zero(lanes)] / 4;
    wavefronts = std::max<uint32_t>(wavefronts, ++lanes_at[word % kColumns]);
  }
  return wavefronts;
}

}  // namespace cookbook::simt
