// SPDX-License-Identifier: MIT
// What can be wrong with a run of a kernel: one list for the backends, the checks, the grader and
// every JSON. Messages are for people; a program looks at the Fault.
#pragma once

#include <stdexcept>
#include <string_view>

namespace cookbook {

enum class Fault {
  none,
  // Seen in what a run left behind.
  wrong_result,
  unwritten,        ///< an element of an output
  padding_written,  ///< between the rows of an output
  outside_written,  ///< the guard band of a buffer
  input_changed,
  runs_differ,  ///< on the same inputs
  imprecise,    ///< within its bound, and worse than the first level
  // Seen by the tracer.
  race,
  uninitialised,
  out_of_bounds,
  misaligned,
  proxy,  ///< no fence between the generic and the asynchronous proxy
  static_shared,
  exit,         ///< a block ends while another, or a copy, still uses its memory
  divergence,   ///< lanes of a warp where all must be
  absent_lane,  ///< a shuffle reads a lane that does not take part
  overflow,     ///< of 32-bit arithmetic that becomes an address
  // How a launch ends without a result.
  launch_refused,
  shared_memory_refused,  ///< more of it than a block may have
  residency_refused,      ///< a cooperative grid that does not fit on the device
  kernel_failed,          ///< an error that has no name of its own here
  assertion,
  deadlock,     ///< every thread waits
  no_progress,  ///< every thread only spins
  crash,        ///< in a kernel, or nobody knows where
  host_crash,
  hang,  ///< no thread finished within the time limit
  // Not run, or not counted.
  unsupported,
  not_run,
  false_claim,
  not_counted,  ///< a claim of a run that failed
  no_answer,    ///< of another process, or one that makes no sense
};

/// "out-of-bounds": in JSON.
const char* fault_name(Fault fault);
/// Throws std::invalid_argument for a name that is none.
Fault fault_named(std::string_view name);

/// An error that says what it is.
class FaultError : public std::runtime_error {
 public:
  FaultError(Fault fault, const std::string& message)
      : std::runtime_error(message), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

/// What an exception of a kernel or a launch says: kernel_failed where it says nothing.
Fault fault_of(const std::exception& error);

}  // namespace cookbook
