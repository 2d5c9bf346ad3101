// SPDX-License-Identifier: MIT
// The sums as sites and findings with source lines.
#include <fmt/format.h>

#include <map>

#include "common/backend/simt/runtime/access_tracer.hpp"
#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/tracer/host_overflows.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/state.hpp"

namespace cookbook::simt::tracing {

namespace {

/// "'tile' + 1284 bytes"
std::string name_static(size_t offset) {
  const SharedVariable* variable = find_shared_variable(offset, 1);
  if (variable == nullptr) return fmt::format("static shared memory + {} bytes", offset);
  return fmt::format("'{}' + {} bytes", variable->name, offset - variable->begin);
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::uninitialised:
    case Kind::global_uninitialised: return "uninitialised";
    case Kind::proxy_load:
    case Kind::proxy_store:
    case Kind::proxy_answer:
    case Kind::barrier_unfenced: return "proxy";
    case Kind::exit_async:
    case Kind::exit_remote: return "exit";
    case Kind::different_places:
    case Kind::acted_alone:
    case Kind::waited_alone:
    case Kind::registers_unordered: return "divergence";
    case Kind::out_of_bounds:
    case Kind::shared_out_of_bounds: return "out-of-bounds";
    case Kind::misaligned: return "misaligned";
    case Kind::static_shared: return "static-shared";
    case Kind::overflow: return "overflow";
    case Kind::recursion: return "stack-overflow";
    case Kind::absent_lane: return "absent-lane";
    case Kind::not_a_number: return "nan";
    case Kind::infinity: return "infinity";
    case Kind::unordered_sums: return "runs-differ";
    case Kind::tensor_before:
    case Kind::tensor_after: return "tensor-fence";
    case Kind::exited_before: return "exited";
    default: return "race";
  }
}

/// Of two accesses with a flag between them: what it lacks. Otherwise `nothing`.
std::string describe_missing(Missing missing, const char* nothing) {
  const char* lack = missing == Missing::fence ? "without a fence before it is written"
                     : missing == Missing::lock_fence
                         ? "without a fence after the atomicCAS that takes the lock"
                     : missing == Missing::scope ? "with a fence or atomic for one block only"
                                                 : nullptr;
  return lack == nullptr ? nothing : fmt::format("with a flag or lock between, but {}", lack);
}

std::string describe(Kind kind, const Occurrence& found, const std::string& earlier_line,
                     const std::string& later_line, const std::string& wait_line) {
  const bool reads_later = kind == Kind::read_after_write || kind == Kind::global_write_read;
  const bool read_earlier = kind == Kind::write_after_read || kind == Kind::global_read_write;
  const char* did = found.earlier_atomic ? "updated" : read_earlier ? "read" : "wrote";
  const char* does = found.later_atomic ? "updates" : reads_later ? "reads" : "writes";
  const char* op = found.op == Op::load || found.op == Op::async_load ? "reads" : "writes";
  std::string in_block = fmt::format(" (block {})", triple(found.block));
  // Where a read races although its thread waited, the parity it waited for is the first suspect.
  if (found.idle_wait_pc != 0) {
    in_block += fmt::format(
        "; the mbarrier wait before the read, at {}, returned at once with no phase complete: its "
        "parity, 1, was that of the phase before the first",
        wait_line);
  }
  const std::string memory = !found.detail.empty() ? found.detail  // of tensor memory
                             : found.is_static
                                 ? name_static(found.offset)
                                 : fmt::format("dynamic shared memory + {} bytes", found.offset);
  const auto actor = [](const uint3& thread, bool is_async) {
    return (is_async ? "an asynchronous operation of thread " : "thread ") + triple(thread);
  };
  const std::string earlier = actor(found.earlier_thread, found.earlier_async);
  const std::string later = actor(found.later_thread, found.later_async);
  const std::string earlier_thread = "thread " + triple(found.earlier_thread);
  const std::string later_thread = "thread " + triple(found.later_thread);
  const std::string block = triple(found.block), earlier_block = triple(found.earlier_block);
  const std::string from_block = block == earlier_block ? "" : " from block " + earlier_block;
  switch (kind) {
    case Kind::write_after_write:
    case Kind::read_after_write:
    case Kind::write_after_read:
      return fmt::format("{} on {}: {} {} at {}{}, {} {} at {}{}{}",
                         kind == Kind::read_after_write    ? "read after write"
                         : kind == Kind::write_after_write ? "write after write"
                                                           : "write after read",
                         memory, earlier, did, earlier_line, from_block, later, does, later_line,
                         found.earlier_async
                             ? " without waiting for it"
                             : ' ' + describe_missing(found.missing, "with no barrier between"),
                         in_block);
    case Kind::uninitialised:
      return fmt::format("{} reads {} at {}, which nothing has written{}", later, memory,
                         later_line, in_block);
    case Kind::global_uninitialised:
      return fmt::format("{} reads byte offset {} of '{}' at {}, which nothing has written{}",
                         later, found.offset, found.detail, later_line, in_block);
    case Kind::proxy_load:
    case Kind::proxy_store:
      return fmt::format(
          "{} wrote {} at {} by an ordinary store; {} at {} {} it without fence_proxy_async() in "
          "the writing thread{}",
          earlier_thread, memory, earlier_line, later, later_line,
          kind == Kind::proxy_load ? "reads" : "overwrites", in_block);
    case Kind::proxy_answer:
      return fmt::format(
          "{} read {} at {} by an ordinary load; the next answer, asked for at {} by {}, "
          "overwrites "
          "it with no fence_proxy_async() between{}",
          earlier_thread, memory, earlier_line, later_line, later_thread, in_block);
    case Kind::tensor_after:
      return fmt::format(
          "{} uses {} at {} after {} did at {}, with no tcgen05.fence::after_thread_sync after the "
          "wait for that{}",
          later, memory, later_line, earlier, earlier_line, in_block);
    case Kind::barrier_unordered:
    case Kind::barrier_unfenced:
      return fmt::format(
          "{} of block {} uses the mbarrier at {} at {}; {} its initialisation, by {} of block {} "
          "at {}",
          later, block, memory, later_line,
          kind == Kind::barrier_unordered ? "nothing orders that after"
                                          : "no fence_mbarrier_init() follows",
          earlier_thread, earlier_block, earlier_line);
    case Kind::not_started:
      return fmt::format(
          "{} of block {} {} {} of another block of the cluster at {}, which may not have started: "
          "no barrier of the cluster comes before",
          later, block, found.write ? "writes" : "reads", memory, later_line);
    case Kind::exit_async:
      return fmt::format(
          "block {} may end before an asynchronous operation that {} issued at {} is done with its "
          "{}: nothing waits for it",
          block, earlier_thread, earlier_line, memory);
    case Kind::exit_remote:
      return fmt::format(
          "block {} may have ended when {} of block {} uses its {} at {}: nothing orders that "
          "before its end",
          block, earlier, earlier_block, memory, earlier_line);
    case Kind::different_places:
      return fmt::format(
          "{} executes {} at {} and {} at {}, where both must execute the same one{}",
          earlier_thread, found.detail, earlier_line, later_thread, later_line, in_block);
    case Kind::acted_alone:
    case Kind::waited_alone:
      return fmt::format(
          "{} {} alone at {}, and its warp comes to {} at {} with no __syncwarp() between{}",
          earlier_thread, kind == Kind::waited_alone ? "waited" : "acted", earlier_line,
          found.detail, later_line, in_block);
    case Kind::tensor_unfenced:
      return fmt::format(
          "{} wrote {} at {}; {} uses it at {} with no tcgen05.fence::before_thread_sync after the "
          "wait for the store{}",
          earlier_thread, memory, earlier_line, later, later_line, in_block);
    case Kind::tensor_before:
      return fmt::format(
          "{} uses {} at {} after {} did at {}, with no tcgen05.fence::before_thread_sync between "
          "tcgen05.wait and the synchronisation of the two{}",
          later, memory, later_line, earlier, earlier_line, in_block);
    case Kind::registers_pending:
      return fmt::format(
          "{} reads at {} what tcgen05.ld at {} loads, with no tcgen05.wait::ld between{}", later,
          later_line, earlier_line, in_block);
    case Kind::registers_unordered:
      return fmt::format(
          "{} comes to setmaxnreg at {}, and no barrier shows that {} of its warpgroup has passed "
          "the one at {}{}",
          later_thread, later_line, earlier_thread, earlier_line, in_block);
    case Kind::global_write_write:
    case Kind::global_write_read:
    case Kind::global_read_write:
      if (found.in_group) {
        return fmt::format("{} {} byte offset {} of '{}' at {}{}, {} {} it at {} {}{}",
                           earlier_thread, did, found.offset, found.detail, earlier_line,
                           from_block, later, does, later_line,
                           describe_missing(found.missing, "with no barrier between"), in_block);
      }
      return fmt::format(
          "blocks {} and {} meet at byte offset {} of '{}': one {} at {}, {} of the other {} at {} "
          "{}",
          earlier_block, block, found.offset, found.detail, did, earlier_line, later_thread, does,
          later_line, describe_missing(found.missing, "with no synchronisation between"));
    case Kind::unordered_sums:
      return fmt::format(
          "blocks {} and {} add to byte offset {} of '{}' by bulk reductions at {} and {}, in the "
          "order in which they come: the sum's last bits differ from run to run",
          earlier_block, block, found.offset, found.detail, earlier_line, later_line);
    case Kind::out_of_bounds:
    case Kind::shared_out_of_bounds:
    case Kind::misaligned:
      return fmt::format("{} {} {}, at {}{}", later, op, found.detail, later_line, in_block);
    case Kind::static_shared:
      return fmt::format(
          "static __shared__ memory is used at {} in a cluster or cooperative launch: use "
          "dynamic_shared() there{}",
          later_line, in_block);
    case Kind::not_a_number:
      return fmt::format("{} computes a NaN of numbers at {}{}", later, later_line, in_block);
    case Kind::infinity:
      return fmt::format("{} computes an infinity of finite numbers at {}: {}{}", later, later_line,
                         found.detail, in_block);
    case Kind::absent_lane:
      return fmt::format("{} shuffles at {} from {}: the value is undefined{}", later, later_line,
                         found.detail, in_block);
    case Kind::exited_before:
      return fmt::format(
          "{} threads of block {} have exited when the others pass __syncthreads at {}, thread {} "
          "at {}: since Volta the barrier does not wait for them, but the CUDA programming guide "
          "asks for a barrier that all threads of a block execute, or none",
          found.detail, block, later_line, triple(found.earlier_thread), earlier_line);
    case Kind::recursion:
      return fmt::format(
          "{} has {} on its stack at {}, each with 16 bytes or more, and cudaLimitStackSize allows "
          "{} bytes per thread{}",
          later, found.detail, later_line, 16 * (uint64_t{most_calls} - 1), in_block);
    case Kind::overflow:
      return fmt::format("{} computes {} at {}{}", later, found.detail, later_line, in_block);
  }
  return "";
}

/// What the access at the heart of a finding is to: findings on one variable have one cause.
std::string subject(Kind kind, const Occurrence& found) {
  switch (kind) {
    case Kind::global_write_write:
    case Kind::global_write_read:
    case Kind::global_read_write:
    case Kind::global_uninitialised: return found.detail;
    case Kind::write_after_write:
    case Kind::read_after_write:
    case Kind::write_after_read:
    case Kind::uninitialised: {
      const SharedVariable* variable =
          found.is_static ? find_shared_variable(found.offset, 1) : nullptr;
      if (!found.detail.empty()) return "tensor memory";
      return variable != nullptr ? variable->name : "shared memory";
    }
    case Kind::out_of_bounds:
    case Kind::shared_out_of_bounds: {  // "4 bytes at byte offset 8 of 'x', which ..."
      const size_t first = found.detail.find('\'');
      return first == std::string::npos
                 ? "memory"
                 : found.detail.substr(first, found.detail.find('\'', first + 1) - first);
    }
    default: return "";
  }
}

const char* remedy_of(Kind kind, const Occurrence& found) {
  switch (kind) {
    case Kind::write_after_write:
    case Kind::read_after_write:
    case Kind::write_after_read:
    case Kind::global_write_write:
    case Kind::global_write_read:
    case Kind::global_read_write: break;
    case Kind::uninitialised: return "write the variable before it is read, with a barrier between";
    case Kind::global_uninitialised:
      return "cudaMemset() or cudaMemcpy() the buffer, or let a kernel write all of it";
    case Kind::out_of_bounds:
      if (found.detail.find(" of the host variable ") != std::string::npos) {
        return "declare it __device__ or __constant__, or give the kernel its value";
      }
      if (found.detail.find("null pointer") != std::string::npos) {
        return "check what returned it: cudaMalloc(), or malloc() in a kernel";
      }
      return found.on_host
                 ? "a kernel cannot use host memory: allocate it by cudaMalloc() and copy it by "
                   "cudaMemcpy(); of an array of pointers each one must be a device pointer"
                 : "compare the index with the number of elements before the access";
    case Kind::absent_lane:
      return "let whole warps run, with neutral values in the lanes beyond the end, or shuffle "
             "only "
             "among the lanes of __ballot_sync() or __activemask() taken before the branch";
    case Kind::shared_out_of_bounds: return "compare the index with the number of elements";
    case Kind::recursion:
      return "cudaDeviceSetLimit(cudaLimitStackSize, bytes) before the launch, or a loop with a "
             "stack of its own";
    case Kind::overflow: return overflow_remedy(found.detail);
    default: return "";
  }
  if (found.detail.starts_with("tensor memory")) {
    return "wait between the two: for the commit of an mma, or by tcgen05.wait of a load or store";
  }
  if (found.earlier_async || found.later_async) return "wait for the asynchronous copy";
  const bool global = kind == Kind::global_write_write || kind == Kind::global_write_read ||
                      kind == Kind::global_read_write;
  const bool one_block = global ? found.in_group && found.block.x == found.earlier_block.x &&
                                      found.block.y == found.earlier_block.y &&
                                      found.block.z == found.earlier_block.z
                                : true;
  if (!one_block && found.earlier_atomic && found.later_atomic) {
    return "atomics with the scope of a block order nothing between blocks: leave out _block";
  }
  switch (found.missing) {
    case Missing::fence:
      return one_block ? "__threadfence_block() before the flag is set or the lock is released"
                       : "__threadfence() before the flag is set or the lock is released";
    case Missing::lock_fence:
      return one_block ? "__threadfence_block() after the loop that takes the lock"
                       : "__threadfence() after the loop that takes the lock";
    case Missing::scope: return "between blocks __threadfence() and atomics without _block";
    default: break;
  }
  if (!one_block) {
    return "between blocks only a second buffer or a second launch separates reads from writes; "
           "counters and flags need atomics, or cuda::atomic_ref with device scope, and "
           "__threadfence() between the data and the flag";
  }
  if (kind == Kind::write_after_write || kind == Kind::global_write_write) {
    return "let one thread store, or use an atomic";
  }
  if (found.one_warp) return "__syncwarp() between the two; within a block __syncthreads()";
  return "__syncthreads() between the two, or an atomic";
}

}  // namespace

Trace make_trace(const Shared& state) {
  Trace trace;

  // All program counters and kernels in one call: resolving them starts a process.
  std::map<uint32_t, SourceLocation> locations;
  for (const auto& [key, counts] : state.sites) locations[key.second.pc];
  for (const auto& [key, found] : state.findings) {
    if (std::get<2>(key) != 0) locations[std::get<2>(key)];
    if (std::get<3>(key) != 0) locations[std::get<3>(key)];
    if (found.idle_wait_pc != 0) locations[found.idle_wait_pc];
    if (found.caller != 0) locations[found.caller];
  }
  std::vector<void*> pcs;
  for (const auto& [token, location] : locations) pcs.push_back(pc_of(token));
  // A kernel's first instruction, which kernel_name() then finds in the cache.
  for (const void* kernel : state.kernel_order) {
    pcs.push_back(const_cast<char*>(static_cast<const char*>(kernel)) + 1);
  }
  const std::vector<SourceLocation> resolved = symbolize(pcs);
  size_t next = 0;
  for (auto& [token, location] : locations) location = resolved[next++];
  const auto line_of = [&](uint32_t token) {
    const std::string line = describe_line(locations[token]);
    return line.empty() ? describe_pc(pc_of(token)) : line;
  };

  // Inlined and unrolled copies of one line are one site.
  using Place = std::tuple<std::string, std::string, int, Space, Op, int, std::string>;
  std::map<Place, AccessSite> sites;
  for (const auto& [key, counts] : state.sites) {
    const SiteKey& site = key.second;
    const SourceLocation& location = locations[site.pc];
    const std::string kernel = kernel_name(key.first);
    const std::string buffer = site.buffer != 0 || site.space == Space::global
                                   ? state.buffer_names.at(site.buffer)
                                   : std::string();
    const bool is_bulk = site.bytes == 0;
    const int bytes =
        is_bulk ? static_cast<int>(counts.largest_range) : static_cast<int>(site.bytes);
    AccessSite& out = sites[{kernel, location.file, location.line, site.space, site.op,
                             is_bulk ? 0 : bytes, buffer}];
    out.kernel = kernel;
    out.file = location.file;
    out.line = location.line;
    out.space = site.space;
    out.op = site.op;
    out.bytes_per_lane = std::max(out.bytes_per_lane, bytes);
    out.buffer = buffer;
    out.requests += counts.requests;
    out.lanes += counts.lanes;
    out.bytes += counts.bytes;
    if (site.space == Space::global) {
      out.sectors += counts.units;
      out.ideal_sectors += counts.ideal;
    } else if (site.space == Space::shared) {
      out.wavefronts += counts.units;
      out.ideal_wavefronts += counts.ideal;
      out.copy_wavefronts += counts.copy_units;
    }
    const auto worst = state.worst.find(key);
    if (worst != state.worst.end() && (!out.worst || worst->second.rank < out.worst->rank)) {
      out.worst = worst->second;
    }
  }
  for (auto& [place, site] : sites) trace.sites.push_back(std::move(site));

  const auto call_of = [&](uint32_t token, uint32_t caller = 0) {
    SourceLocation location = locations[token];
    if (location.line == 0) return line_of(token);
    if (location.caller.empty() && caller != 0 && is_of_kernel(locations[caller])) {
      location.caller = describe_line(locations[caller]);  // of a function that is not inlined
    }
    return describe_call(location);
  };
  // Two program counters of one pair of lines are one finding.
  std::map<std::pair<int, std::string>, size_t> seen;
  for (const auto& [key, found] : state.findings) {
    const auto [kernel, kind, earlier, later] = key;
    const std::string earlier_line = earlier != 0 ? line_of(earlier) : std::string();
    const std::string later_line = later != 0 ? line_of(later) : std::string();
    if (kind == Kind::different_places && earlier_line == later_line) continue;
    const auto is_flag = [&](uint32_t token) { return state.flag_places.contains(token); };
    if (found.relies && (is_flag(earlier) || is_flag(later))) continue;
    const std::string pair = kernel_name(kernel) + "|" + earlier_line + "|" + later_line;
    const bool is_advice = kind == Kind::tensor_before || kind == Kind::tensor_after;
    std::vector<Finding>& list = kind == Kind::unordered_sums  ? trace.unordered_sums
                                 : is_advice                   ? trace.advice
                                 : kind == Kind::exited_before ? trace.notes
                                                               : trace.findings;
    const auto [at, is_new] = seen.try_emplace({static_cast<int>(kind), pair}, list.size());
    if (is_new) {
      list.push_back(
          {kind_name(kind),
           fmt::format("{}: {}", kind_name(kind),
                       describe(kind, found, earlier != 0 ? call_of(earlier) : "",
                                later != 0 ? call_of(later, found.caller) : "",
                                found.idle_wait_pc != 0 ? line_of(found.idle_wait_pc) : "")),
           found.count, kernel_name(kernel) + "|" + kind_name(kind) + "|" + subject(kind, found),
           earlier_line.empty() || earlier_line == later_line ? later_line
                                                              : earlier_line + " and " + later_line,
           remedy_of(kind, found)});
    } else {
      list[at->second].count += found.count;
    }
  }

  for (const void* kernel : state.kernel_order) {
    const KernelCounts& counts = state.kernels.at(kernel);
    KernelTotals totals;
    totals.kernel = kernel_name(kernel);
    totals.launches = counts.launches;
    totals.blocks = counts.blocks;
    totals.traced_blocks = counts.traced_blocks;
    totals.basic_blocks = counts.basic_blocks;
    if (counts.basic_blocks != 0) {
      totals.mean_active_lanes =
          static_cast<double>(counts.active_lanes) / static_cast<double>(counts.basic_blocks);
    }
    totals.bytes_requested = counts.bytes_requested;
    totals.distinct_bytes = counts.distinct_bytes;
    trace.kernels.push_back(std::move(totals));
  }
  return trace;
}

}  // namespace cookbook::simt::tracing
