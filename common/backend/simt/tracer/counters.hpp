// SPDX-License-Identifier: MIT
//
// What one warp-wide request costs the memory system: 32-byte sectors of global memory, wavefronts
// (passes over the 32 four-byte banks) of shared memory.
#pragma once

#include <cstdint>

namespace cookbook::simt {

inline constexpr int kLanes = 32;
inline constexpr int kSectorBytes = 32;
inline constexpr int kLineBytes = 128;

/// Addresses of the active lanes of one request; every lane asks for the same number of bytes.
struct LaneRequest {
  uint32_t active = 0;
  uintptr_t address[kLanes];
};

struct RequestCost {
  uint32_t units = 0;  ///< Sectors or wavefronts.
  uint32_t ideal = 0;
};

/// Distinct sectors the request touches; ideal if its distinct bytes were dense and aligned.
RequestCost global_cost(const LaneRequest& request, int bytes_per_lane);

/// How a warp's shared-memory request is split into phases.
enum class SharedRule {
  load_store,   ///< 8-byte: half-warps, 16-byte: quarter-warps, merged where the hardware merges.
                ///< ldmatrix and stmatrix too: rows that differ are not merged.
  matrix_rows,  ///< Asynchronous copies by lanes (cp.async): the same phases, never merged.
  atomic        ///< Lanes on one word are served one after the other.
};

/// Sum over phases of the largest number of distinct words asked of one bank; ideal is the number
/// of phases with an active lane.
RequestCost shared_cost(const LaneRequest& request, int bytes_per_lane, SharedRule rule);

/// Passes in which the lanes of a request of 4-byte cp.async get their words from L1: per pass, one
/// lane from each of 32 columns. A column is the same word of every 128-byte line. A word that
/// several lanes copy counts once per lane, unlike in a load, because it goes to several places.
uint32_t source_wavefronts(const LaneRequest& source);

}  // namespace cookbook::simt
