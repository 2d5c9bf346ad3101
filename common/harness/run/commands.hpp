// SPDX-License-Identifier: MIT
// What a command line may ask for in place of runs of ladders. All throw UsageError for what cannot
// be done.
#pragma once

namespace cookbook {

struct Chapter;
struct Options;

/// Prints as JSON what a teacher's assignment takes from exercise `options.exercise`: its file and
/// title, and the extents and sizes of its ladder.
void describe_exercise(const Chapter& chapter, const Options& options);

/// Grades exercise `options.exercise` of `chapter`: every test shape (or those of --size), then at
/// the traced size every kind of input, layouts and schedules of asynchronous copies; then claims
/// and findings under the tracer. Prints one line per check, writes --json, and returns the exit
/// status: 0 passed, 1 not yet. With --size, or without the traced program, the grade is not
/// complete: such a run never passes. A traced program runs only its part and never passes either.
int grade_exercise(const Chapter& chapter, const Options& options);

/// Writes to options.launches what every level launches at the size at which a GPU times it, or at
/// the sizes of --size, and returns 0. SIMT backend only.
int list_launches(const Chapter& chapter, const Options& options);

/// Runs every selected level of the first selected ladder once, on ordinary inputs and without a
/// check. On a GPU each level is a ProfilerRange. In it fill_elements() is launched first, so that
/// a profiler's list of launches shows where a level begins. With options.energy each level runs
/// for about half a second instead, and its joules per launch are measured. Writes to options.json,
/// if there is one, the ladder, its size, the GPU, and for each level its name and why it is left
/// out (empty: it ran). Returns the exit status.
int profile_levels(const Chapter& chapter, const Options& options);

/// Runs one level and writes its timeline to options.timeline: the level of --level, or the last
/// of the first ladder. Returns the exit status.
int record_timeline(const Chapter& chapter, const Options& options);

}  // namespace cookbook
