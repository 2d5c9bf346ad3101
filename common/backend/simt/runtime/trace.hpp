// SPDX-License-Identifier: MIT
//
// The report of a traced run of a kernel: memory counters per source line, and findings (races,
// uninitialised reads, accesses out of bounds ...). The counters model the source as written: a GPU
// compiler may fuse or split accesses, which changes requests but rarely sectors or conflicts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cookbook::simt {

enum class Space { global, shared, tensor };

/// What an access does to the memory of its `Space`. A TMA load, for example, is an `async_load` of
/// global memory and an `async_store` to shared memory; wgmma operands are `async_load`s of shared.
/// `alloc`: of tensor memory, by tcgen05.alloc.
enum class Op { load, store, atomic, async_load, async_store, alloc };

/// One warp-wide request as it was counted.
struct Request {
  std::array<uint32_t, 3> block{};
  uint32_t warp = 0;                   ///< In its block.
  uint32_t active = 0;                 ///< A bit per lane.
  std::array<uint64_t, 32> address{};  ///< Of active lanes, in bytes from `start`.
  /// Where addresses count from: the name of a `__shared__` variable, or empty: the start of the
  /// site's buffer (of its first line of 128 bytes) or of dynamic shared memory.
  std::string start;
  uint32_t units = 0, ideal = 0;  ///< Sectors or wavefronts.
  const char* rule = "";          ///< Of wavefronts: the name of a SharedRule.
  /// Of two requests the one with the lower rank is kept: the one that costs more above its ideal,
  /// then the one with more lanes, then of the first launch and block, and there of the middle
  /// warp, because the first warp's indices are zeros, and its first.
  std::array<uint64_t, 6> rank{};
};

/// All executions of one access in the source of one kernel.
struct AccessSite {
  std::string kernel;  ///< Demangled, with template arguments, without parameters.
  std::string file;    ///< Innermost source file outside common/device and common/backend.
  int line = 0;
  Space space = Space::global;
  Op op = Op::load;
  int bytes_per_lane = 0;         ///< Largest piece of a bulk copy for TMA and bulk accesses.
  std::string buffer;             ///< Name of the DeviceMemory; empty for shared memory.
  uint64_t requests = 0;          ///< Warp-wide instructions.
  uint64_t lanes = 0;             ///< Active lanes, summed over requests.
  uint64_t sectors = 0;           ///< Global memory: distinct 32-byte sectors per request, summed.
  uint64_t ideal_sectors = 0;     ///< Sectors if the distinct bytes of each request were dense.
  uint64_t wavefronts = 0;        ///< Shared memory: passes over the 32 banks.
  uint64_t ideal_wavefronts = 0;  ///< Passes without bank conflicts.
  uint64_t copy_wavefronts = 0;   ///< cp.async's writes: what Nsight Compute counts, docs/simt.md.
  uint64_t bytes = 0;             ///< Sum over lanes of the bytes asked for.
  std::optional<Request> worst;   ///< With keep_requests; none of bulk operations.
};

/// A mistake found in a kernel, with the number of times it was seen.
struct Finding {
  /// race, uninitialised, out-of-bounds, misaligned, proxy, static-shared, exit, divergence,
  /// overflow, stack-overflow; of advice: tensor-fence; of notes: exited.
  std::string kind;
  std::string message;
  uint64_t count = 0;
  std::string cause{};   ///< Equal for findings that have one cause: kernel, kind and variable.
  std::string places{};  ///< "prog.cu:5 and prog.cu:7"
  std::string remedy{};  ///< What CUDA offers against it; may be empty.
};

struct KernelTotals {
  std::string kernel;
  uint64_t launches = 0;
  uint64_t blocks = 0;
  uint64_t traced_blocks = 0;    ///< Fewer than `blocks` where a TraceBudget says so.
  uint64_t basic_blocks = 0;     ///< Basic blocks issued, counted once per group of lanes.
  double mean_active_lanes = 0;  ///< Lanes per issued basic block.
  uint64_t bytes_requested = 0;  ///< Global memory, sum over lanes.
  uint64_t distinct_bytes = 0;   ///< Global memory, 32 times the distinct sectors touched.
};

struct Trace {
  std::vector<AccessSite> sites;
  std::vector<Finding> findings;
  /// Bulk additions of floating-point numbers to one place by blocks that nothing orders: right,
  /// but not the same every run.
  std::vector<Finding> unordered_sums;
  /// Right on the GPUs that are known, but not by the letter of the PTX ISA.
  std::vector<Finding> advice;
  /// What GPUs since Volta permit, and older ones do not.
  std::vector<Finding> notes;
  std::vector<KernelTotals> kernels;
};

/// True in executables whose kernels were compiled for tracing, false in plain ones.
bool tracing_available();

/// How much of large launches is traced: of each launch as many blocks as have `threads` threads,
/// the first ones, the last and some between; of each kernel the first `launches` launches. 0: no
/// limit. The other blocks run, and nothing looks at their accesses.
struct TraceBudget {
  uint64_t threads = 0, launches = 0;
};

/// Discards what was gathered and records every launch until stop_trace(). Throws
/// std::runtime_error in a plain executable.
void start_trace(const TraceBudget& budget = {});

/// Ends the recording and resolves addresses to source lines. Deterministic for race-free kernels,
/// whatever the number of worker threads.
Trace stop_trace();

/// Signed arithmetic of host code whose result did not fit, since the last call; of files compiled
/// as traced kernels, such as a level's.
std::vector<Finding> take_host_overflows();

/// The trace as text for people: one aligned row per source line, then the findings.
std::string explain(const Trace& trace);

/// A line of a source file without surrounding space, shortened; empty if it cannot be read.
std::string source_line(const std::string& file, int line);

const char* to_string(Space space);
const char* to_string(Op op);

/// Where not null: called after each traced launch for every range of global memory that it used.
/// `use`: 0 read, 1 written, 2 used by atomics only.
inline void (*observe_range)(uintptr_t begin, uintptr_t end, int use) = nullptr;

/// Where not null: called for loads and stores of host code that is compiled for tracing.
inline void (*observe_host_access)(uintptr_t address, size_t bytes, bool writes,
                                   void* pc) = nullptr;

/// Whether traced runs keep the worst request of each site, with its addresses.
inline bool keep_requests = false;

/// Whether traced runs look for what makes a NaN of numbers, or an infinity of finite ones.
inline bool find_not_finite = false;

/// Calls within each other of a thread, more than which cannot be on a GPU: a recursion that comes
/// so far is a finding.
inline uint32_t most_calls = ~uint32_t{0};

/// What traced executables add, and register by a static initialiser. Null in plain ones.
struct TracerBackend {
  void (*start)(const TraceBudget& budget);
  Trace (*stop)();
  std::vector<Finding> (*take_host_overflows)();
};
inline const TracerBackend* tracer_backend = nullptr;

}  // namespace cookbook::simt
