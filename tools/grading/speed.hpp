// SPDX-License-Identifier: MIT
// Times a submission beside a baseline, each in a process of its own. Host code only: the kernels
// run in those processes (speed_worker.cpp).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/grading/entry.hpp"

namespace cookbook::grading {

/// One run: what the process says that it took, also until the whole device was idle, and how long
/// the grader waited for the answer. Microseconds.
struct Sample {
  double us = 0, whole_us = 0, wall_us = 0;
};

/// Why the times of a submission are not believed, or nothing. `least_us` is what the measured roof
/// allows; 0: no roof. The samples of both are not empty.
///
/// A process can lie about its times, but not about the grader's clock. That clock also counts the
/// flush of the L2, the synchronisation and the messages. The baseline's samples say how long these
/// take: a submission for which they seem to take longer has left time out.
std::string not_believed(const std::vector<Sample>& baseline, const std::vector<Sample>& submission,
                         double least_us);

/// Times the submission and checks every output that it leaves. Each round draws new inputs, runs
/// the baseline and the submission on them, in turns first, and is repeated while the SM clock is
/// under three quarters of its maximum.
///
/// PLAN:    {"size": [4096, 4096], "samples": 11, "seed": 1, "baseline": [command ...],
///           "submission": [command ...], "roof_bytes": bytes/s or 0, "roof_flops": FLOP/s or 0}
/// returns: {"refused": "", "property": "", "us", "baseline_us", "ratio", "low", "high",
///           "of_roof", "samples", "least_mhz", "most_mhz"}
/// `refused` says why nothing is measured, for the teacher; `property` may be shown to anyone. The
/// figures are missing where it says something.
nlohmann::json time_submission(const nlohmann::json& plan, const Entry& teacher);

}  // namespace cookbook::grading
