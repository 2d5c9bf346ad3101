// SPDX-License-Identifier: MIT
// How a kernel and its arguments reach the fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "common/backend/fault.hpp"
#include "common/backend/simt/language/half_types.hpp"

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

/// The number of SMs in device_info(), from the next launch on; 0: as it was at first. Not during a
/// launch.
void set_sm_count(int count);

/// Which blocks of a launch run. `sample`: the first, the last and two between (clusters, where
/// blocks form them; a cooperative grid runs whole), for launches too large to run. `none`: the
/// launch is only checked.
enum class RunBlocks { all, sample, none };

/// Takes effect with the next launch; initially all.
void set_run_blocks(RunBlocks blocks);

// The arguments of one launch, copied once. Plain nested members instead of std::tuple: its
// accessors would be compiled, and traced, as part of the kernel.
template <class... P>
struct Arguments {
  Arguments() = default;
};
template <class Head, class... Tail>
struct Arguments<Head, Tail...> {
  COOKBOOK_SIMT_UNTRACED explicit Arguments(const Head& head_, const Tail&... tail_)
      : head(head_), tail(tail_...) {}
  Head head;
  Arguments<Tail...> tail;
};

template <class Kernel, class... Done>
COOKBOOK_SIMT_UNTRACED void call_with(Kernel kernel, const Arguments<>&, const Done&... done) {
  kernel(done...);
}
template <class Kernel, class Head, class... Tail, class... Done>
COOKBOOK_SIMT_UNTRACED void call_with(Kernel kernel, const Arguments<Head, Tail...>& rest,
                                      const Done&... done) {
  call_with(kernel, rest.tail, done..., rest.head);
}

// A kernel with its arguments, for the runtime: `invoke(kernel, arguments)` runs one CUDA thread.
struct KernelCall {
  template <class... P>
  COOKBOOK_SIMT_UNTRACED KernelCall(void (*)(P...), const Arguments<P...>& arguments_)
      : invoke(&invoke_kernel<P...>), arguments(&arguments_), argument_bytes(sizeof(arguments_)) {}
  COOKBOOK_SIMT_UNTRACED KernelCall(void (*invoke_)(void*, const void*), const void* arguments_,
                                    size_t argument_bytes_)
      : invoke(invoke_), arguments(arguments_), argument_bytes(argument_bytes_) {}

  void (*invoke)(void* kernel, const void* arguments);
  const void* arguments;
  size_t argument_bytes;

 private:
  template <class... P>
  COOKBOOK_SIMT_UNTRACED static void invoke_kernel(void* kernel, const void* arguments) {
    call_with(reinterpret_cast<void (*)(P...)>(kernel),
              *static_cast<const Arguments<P...>*>(arguments));
  }
};

}  // namespace cookbook::simt
