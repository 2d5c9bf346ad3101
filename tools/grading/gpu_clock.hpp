// SPDX-License-Identifier: MIT
// What the process of a timed submission asks of the GPU: gpu_clock.cpp, and a stand-in of the
// tests.
#pragma once

#include <functional>

namespace cookbook::grading {

/// Microseconds from before the first launch: to the end of what was launched into the default
/// stream, and to the end of all work on the device.
struct Bracket {
  double us = 0, whole_us = 0;
};

/// Forgets which lines the L2 is to keep. Before inputs are written.
void forget_persisting_lines();

/// Fills the L2 with other lines, then times `work` and waits for the whole device. Throws
/// std::runtime_error if a kernel failed.
Bracket time_cold(const std::function<void()>& work);

/// The SM clock now and its maximum, in MHz; 0 where it is not known.
struct SmClock {
  int mhz = 0, max_mhz = 0;
};
SmClock sm_clock();

}  // namespace cookbook::grading
