// SPDX-License-Identifier: MIT
// One launch of every level, for a profiler that is attached from outside.
#pragma once

namespace cookbook {

struct Chapter;
struct Options;

/// Runs every selected level of the first selected ladder once, on ordinary inputs and without a
/// check. On a GPU each level is a ProfilerRange. In it fill_elements() is launched first, so that
/// a profiler's list of launches shows where a level begins. With options.energy each level runs
/// for about half a second instead, and its joules per launch are measured. Writes to options.json,
/// if there is one, the ladder, its size, the GPU, and for each level its name and why it is left
/// out (empty: it ran). Returns the exit status.
int profile_levels(const Chapter& chapter, const Options& options);

}  // namespace cookbook
