// SPDX-License-Identifier: MIT
// How launches run: on how many OS threads, in which order, and what becomes of an error.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "common/backend/fault.hpp"

namespace cookbook::simt {

/// An error that a kernel made: deadlock, bad barrier, invalid descriptor ... The message names
/// kernel, block, thread and, where it can be found, file and line.
class KernelError : public FaultError {
 public:
  using FaultError::FaultError;
};

/// When asynchronous operations (cp.async, TMA, wgmma) take effect: as late as the rules allow, at
/// once, or at random.
enum class AsyncSchedule { late, early, random };

/// Takes effect with the next launch. `random` also shuffles the order in which the threads of a
/// block first run. The initial value is COOKBOOK_SIMT_ASYNC=late|early|random[:seed], or late.
void set_async_schedule(AsyncSchedule schedule, uint64_t seed = 1);
AsyncSchedule async_schedule();

/// In which order the blocks of a launch start (clusters, where blocks form them). A GPU promises
/// none. A grid of no more blocks than the device has SMs starts forward whatever is asked for:
/// there all are resident at once, and persistent kernels wait for each other.
enum class StartOrder { forward, reverse, random };

/// Takes effect with the next launch. The initial value is
/// COOKBOOK_SIMT_ORDER=forward|reverse|random[:seed], or forward.
void set_start_order(StartOrder order, uint64_t seed = 1);

/// Number of OS threads that blocks are assigned to; at least 1. The initial value is
/// COOKBOOK_SIMT_WORKERS, or 2 if there are that many cores. Results do not depend on it, except
/// for the order of atomics.
void set_workers(int count);

/// Which blocks of a launch run. `sample`: the first, the last and two between (clusters, where
/// blocks form them; a cooperative grid runs whole), for launches too large to run. `none`: the
/// launch is only checked.
enum class RunBlocks { all, sample, none };

/// Takes effect with the next launch; initially all.
void set_run_blocks(RunBlocks blocks);
/// False with RunBlocks::none.
bool runs_blocks();

}  // namespace cookbook::simt
