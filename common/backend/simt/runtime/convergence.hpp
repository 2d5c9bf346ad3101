// SPDX-License-Identifier: MIT
// Convergence of a warp in traced mode; docs/simt.md has the rule.
#pragma once

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

// The current lane did something at `pc` that other lanes may not have done. `waited`: it is a wait
// that may take time.
void lane_acted(void* pc, bool waited = false);
// The lane met its warp. `only_acts`: as far as acting alone goes, by a wait that others do too.
void lane_met(bool only_acts = false);
// `operation` at `pc` wants its warp converged: reports a lane whose path is not `first`'s.
void require_converged(const LanePath& path, const Thread& first, const char* operation, void* pc);

}  // namespace cookbook::simt
