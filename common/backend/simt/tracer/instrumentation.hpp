// SPDX-License-Identifier: MIT
//
// Between the compiler's instrumentation (tsan_entry.cpp), the tracer (tracing.cpp) and the public
// functions of trace.hpp (trace.cpp), which plain executables have too.
#pragma once

#include <cstdint>

#include "common/backend/simt/runtime/internal.hpp"
#include "common/backend/simt/runtime/trace.hpp"

namespace cookbook::simt {

/// What traced executables add. Null in plain ones.
struct TracerBackend {
  void (*start)();
  Trace (*stop)();
};
extern TracerBackend* tracer_backend;

/// What set_trace_budget() sets.
struct TraceBudget {
  uint64_t threads = 0, launches = 0;
};
extern TraceBudget trace_budget;

/// An access by instrumented code on `thread`. `natural_alignment`: of a type aligned to its size,
/// so that a GPU would fail on another address. `part` distinguishes the pieces of one large
/// access.
void trace_access(Thread& thread, uintptr_t address, unsigned bytes, Op op, bool natural_alignment,
                  void* pc, unsigned part = 0);

/// How blocks may agree through an access. Two accesses that are not `none` never race.
enum class FlagUse : uint8_t { none, volatile_access, atomic_load, atomic };

/// An atomic or a volatile access by instrumented code on `thread`, which comes next. `fenced`: it
/// writes with release semantics.
void trace_flag_access(Thread& thread, uintptr_t address, unsigned bytes, Op op, FlagUse use,
                       bool fenced, void* pc);

/// `thread` has performed an atomic on `address`, which may have read what another block wrote.
void trace_flag_read(Thread& thread, uintptr_t address);

/// One lane's part of a warp-wide asynchronous copy (cp.async): counted as a lane of a request.
void trace_lane_access(Thread& thread, const void* address, unsigned bytes, Op op, void* pc,
                       Actor actor);

/// A piece of a bulk operation (TMA, bulk copy, wgmma operand): one request per operation.
void trace_bulk_access(Thread& issuer, const void* address, size_t bytes, Op op, void* pc,
                       Actor actor);

/// A result of signed arithmetic that does not fit its type: `operation`, such as "2 * 3", in
/// `type`, such as "'int'".
void trace_overflow(Thread& thread, const std::string& operation, const char* type, void* pc);

}  // namespace cookbook::simt
