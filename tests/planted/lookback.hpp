// SPDX-License-Identifier: MIT
// Inclusive scans in one pass: every block looks back at what the blocks before it published, until
// it finds a prefix. Right ones in three protocols, and wrong ones.
#pragma once

#include "common/backend/backend.hpp"

namespace cookbook::planted {

/// How a block publishes a value and its flag.
enum class Protocol {
  released,   ///< store_release() and load_acquire()
  atomics,    ///< an atomic flag, __threadfence() between it and the value
  volatiles,  ///< a volatile flag, __threadfence() between it and the value
};

enum class LookbackBug {
  none,
  no_ticket,        ///< Takes the tile of its block number: blocks may start in any order.
  missing_fence,    ///< Nothing between the value and its flag.
  flag_first,       ///< The flag is written before its value.
  never_published,  ///< One tile publishes its aggregate and never its prefix; others wait for
                    ///< that.
};

inline constexpr int kLookbackTile = 64;  ///< Elements, and threads per block.

/// out[i] = in[0] + ... + in[i], n a multiple of kLookbackTile. `state`: 1 + 3 * (n /
/// kLookbackTile) zeros. `pauses`: spin loops let other threads run.
void lookback_scan(Protocol protocol, LookbackBug bug, bool pauses, const int* in, int* out,
                   int* state, int n);

}  // namespace cookbook::planted
