// SPDX-License-Identifier: MIT
// What the tracer observes of register reallocation.
#pragma once

#include <cstdint>

namespace cookbook::simt {

struct RegisterTracer {
  // The current thread comes to its n-th setmaxnreg of this block, from 0 on.
  virtual void setmaxnreg(uint32_t n, void* pc) = 0;
};
// Of this OS thread; null unless it runs a group of a launch that is being traced.
inline constinit thread_local RegisterTracer* register_tracer = nullptr;

}  // namespace cookbook::simt
