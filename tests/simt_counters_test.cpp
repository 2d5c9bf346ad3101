// SPDX-License-Identifier: MIT
// What a request costs, against the definition spelled out over sets of sectors and words.
#include "common/backend/simt/tracer/counters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace cookbook::simt {
namespace {

LaneRequest request_of(uint32_t active, uintptr_t (*address)(int lane)) {
  LaneRequest request;
  request.active = active;
  for (int lane = 0; lane < kLanes; ++lane) request.address[lane] = address(lane);
  return request;
}

// The active ones of lanes [first, first + count).
std::vector<int> active_lanes(const LaneRequest& request, int first = 0, int count = kLanes) {
  std::vector<int> lanes;
  for (int lane = first; lane < first + count; ++lane) {
    if ((request.active >> lane & 1) != 0) lanes.push_back(lane);
  }
  return lanes;
}

// Requests of every width: at random, in strides, and of lanes that share addresses in pairs.
std::vector<std::pair<LaneRequest, int>> requests() {
  std::mt19937 random(3);
  std::vector<std::pair<LaneRequest, int>> all;
  for (const int bytes : {1, 2, 4, 8, 16}) {
    for (int i = 0; i < 250; ++i) {
      LaneRequest request;
      const auto some = [&] { return static_cast<std::uint32_t>(random()); };
      request.active = i % 3 == 0 ? ~0u : i % 3 == 1 ? some() : some() & some() & some();
      const uintptr_t range = uintptr_t{1} << random() % 9;
      const uintptr_t stride = random() % 40, base = 4096 + random() % 16;
      const int shared_bits = static_cast<int>(random() % 4);
      for (int lane = 0; lane < kLanes; ++lane) {
        const uintptr_t index = i % 2 == 0 ? random() % range : (lane & ~shared_bits) * stride;
        // Odd bases only now and then: most accesses are aligned.
        const auto width = static_cast<uintptr_t>(bytes);
        request.address[lane] = (i % 5 == 0 ? base : base / width * width) + index * width;
      }
      if (i % 7 == 0) {  // lanes and their neighbours have one address, in no order
        for (int lane = 0; lane < kLanes; ++lane) {
          request.address[lane] = request.address[lane & ~(1 << i % 3)];
        }
      }
      all.emplace_back(request, bytes);
    }
  }
  return all;
}

TEST(RequestCost, SectorsAreCountedOnce) {
  for (const auto& [request, bytes] : requests()) {
    std::set<uintptr_t> sectors, addresses;
    for (const int lane : active_lanes(request)) {
      addresses.insert(request.address[lane]);
      for (int i = 0; i < bytes; ++i) sectors.insert((request.address[lane] + i) / 32);
    }
    const auto dense = (addresses.size() * static_cast<size_t>(bytes) + 31) / 32;
    const RequestCost cost = global_cost(request, bytes);
    ASSERT_EQ(cost.units, sectors.size()) << bytes;
    ASSERT_EQ(cost.ideal, std::min(dense, sectors.size())) << bytes;
  }
}

// Of lanes [first, first + count): the most words that one of the 32 banks serves.
uint32_t wavefronts(const LaneRequest& request, int first, int count, int bytes, bool atomic) {
  std::map<uintptr_t, std::multiset<uintptr_t>> by_bank;
  for (const int lane : active_lanes(request, first, count)) {
    std::set<uintptr_t> words;
    for (int i = 0; i < bytes; ++i) words.insert((request.address[lane] + i) / 4);
    for (const uintptr_t word : words) {
      if (atomic || by_bank[word % 32].count(word) == 0) by_bank[word % 32].insert(word);
    }
  }
  size_t most = 0;
  for (const auto& [bank, words] : by_bank) most = std::max(most, words.size());
  return static_cast<uint32_t>(most);
}

bool all_as(const LaneRequest& request, int first, int count, int distance) {
  for (const int lane : active_lanes(request, first, count)) {
    const int other = lane ^ distance;
    const bool both = (request.active >> other & 1) != 0;
    if (both && request.address[lane] != request.address[other]) return false;
  }
  return true;
}

TEST(RequestCost, BanksServeOneWordAtATime) {
  for (const auto& [request, bytes] : requests()) {
    for (const SharedRule rule :
         {SharedRule::load_store, SharedRule::matrix_rows, SharedRule::atomic}) {
      const int phase = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
      uint32_t units = 0, ideal = 0;
      for (int first = 0; first < kLanes; first += phase) {
        const bool merges =
            rule == SharedRule::load_store && phase < 32 && first % (2 * phase) == 0 &&
            (all_as(request, first, 2 * phase, 1) || all_as(request, first, 2 * phase, 2));
        const int lanes = merges ? 2 * phase : phase;
        if (!active_lanes(request, first, lanes).empty()) ++ideal;
        units += wavefronts(request, first, lanes, bytes, rule == SharedRule::atomic);
        if (merges) first += phase;
      }
      const RequestCost cost = shared_cost(request, bytes, rule);
      ASSERT_EQ(cost.units, units) << bytes << " bytes, rule " << static_cast<int>(rule);
      ASSERT_EQ(cost.ideal, ideal) << bytes << " bytes, rule " << static_cast<int>(rule);
    }
  }
}

TEST(RequestCost, ACopyTakesOneLanePerColumnAtATime) {
  for (const auto& [request, bytes] : requests()) {
    std::map<uintptr_t, uint32_t> lanes;
    uint32_t most = 0;
    for (const int lane : active_lanes(request)) {
      most = std::max(most, ++lanes[request.address[lane] % 128 / 4]);
    }
    ASSERT_EQ(source_wavefronts(request), most);
  }
}

TEST(RequestCost, ByHand) {
  const auto row = request_of(~0u, [](int lane) { return uintptr_t{256} + 4 * lane; });
  EXPECT_EQ(global_cost(row, 4).units, 4u);
  EXPECT_EQ(shared_cost(row, 4, SharedRule::load_store).units, 1u);
  const auto shifted = request_of(~0u, [](int lane) { return uintptr_t{260} + 4 * lane; });
  EXPECT_EQ(global_cost(shifted, 4).units, 5u);
  EXPECT_EQ(global_cost(shifted, 4).ideal, 4u);
  const auto column = request_of(~0u, [](int lane) { return uintptr_t{128} * lane; });
  EXPECT_EQ(global_cost(column, 4).units, 32u);
  EXPECT_EQ(shared_cost(column, 4, SharedRule::load_store).units, 32u);
  EXPECT_EQ(source_wavefronts(column), 32u);
  const auto one = request_of(~0u, [](int) { return uintptr_t{64}; });
  EXPECT_EQ(shared_cost(one, 4, SharedRule::load_store).units, 1u);
  EXPECT_EQ(shared_cost(one, 4, SharedRule::atomic).units, 32u);
  EXPECT_EQ(shared_cost(one, 16, SharedRule::load_store).ideal, 2u);  // phases in pairs
  EXPECT_EQ(shared_cost(one, 16, SharedRule::matrix_rows).ideal, 4u);
}

}  // namespace
}  // namespace cookbook::simt
