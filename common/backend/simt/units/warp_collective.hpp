// SPDX-License-Identifier: MIT
// Instructions that a warp executes as one (`.sync.aligned`, all 32 lanes).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/sync.hpp"

namespace cookbook::simt {

// Meets the other 31 lanes; the first to go on runs `compute(lanes)` for all, where lanes[i] points
// to lane i's `mine`. Every lane's variables stay where they are until all have returned from here.
template <class Lane, class Compute>
void warp_collective(Lane& mine, const char* operation, void* pc, const Compute& compute,
                     Meet kind = Meet::aligned) {
  const Warp& warp = *current_thread->warp;
  if (warp.alive != 0xffffffffu) {
    fail_at(pc, "{} needs all 32 lanes of the warp; some have exited or do not exist", operation);
  }
  mine.done = false;
  Rendezvous& meeting = meet(0xffffffffu, reinterpret_cast<uint64_t>(&mine), operation, kind, pc);
  if (!mine.done) {
    std::array<Lane*, kWarpSize> lanes;
    for (uint32_t i = 0; i < kWarpSize; ++i) lanes[i] = reinterpret_cast<Lane*>(meeting.value[i]);
    compute(lanes);
    for (Lane* lane : lanes) lane->done = true;
  }
  finish_meeting(meeting);
}

}  // namespace cookbook::simt
