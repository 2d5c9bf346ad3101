// SPDX-License-Identifier: MIT
// The wgmma of one warpgroup that are in flight.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/backend/simt/units/numbers.hpp"
#include "common/backend/simt/units/state.hpp"

namespace cookbook::simt {

inline constexpr uint32_t kWarpgroupThreads = 128;

// What an instruction says; the same in all threads of the warpgroup.
struct WgmmaShape {
  int columns;
  Format format;
  bool a_in_registers;
  bool a_is_mn_major, b_is_mn_major;
  bool accumulate;
  uint64_t desc_a, desc_b;
  bool operator==(const WgmmaShape&) const = default;
};

struct WgmmaProduct {
  WgmmaShape shape{};
  void* pc = nullptr;
  uint32_t arrived = 0;                       // threads that issued it
  std::array<float*, kWarpgroupThreads> d{};  // their accumulators
  std::vector<std::array<uint32_t, 4>> a;     // their A registers, if that is the form
  std::array<Actor, 4> actors{};              // one a warp: what it reads
  // Traced mode: the lane of each warp that came first, and its path.
  std::array<const Thread*, 4> first{};
  std::array<LanePath, 4> path{};
  bool waited_for = false;  // some thread came to its wait
  bool put_off = false;     // the schedule will execute it
};

struct Warpgroup {
  std::deque<std::unique_ptr<WgmmaProduct>> products;  // issued, not yet retired
  uint64_t first = 0;                                  // number of the first in `products`
  uint64_t executed = 0;                               // operations before this are computed
  uint64_t released = 0;                               // ... have ended for the tracer
  std::vector<Thread*> waiting;  // for others to issue, or the schedule to execute
  char batch_object[16] = {};    // for the tracer, by batch number
};

}  // namespace cookbook::simt
