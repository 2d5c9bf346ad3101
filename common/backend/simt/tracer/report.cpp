// SPDX-License-Identifier: MIT
// The sums as sites and findings with source lines.
#include <map>

#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/state.hpp"

namespace cookbook::simt::tracing {

namespace {

/// "tile + 1284 bytes"
std::string name_static(size_t offset) {
  const SharedVariable* variable = find_shared_variable(offset, 1);
  if (variable == nullptr) return "static shared memory + " + std::to_string(offset) + " bytes";
  return "'" + variable->name + "' + " + std::to_string(offset - variable->begin) + " bytes";
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::uninitialised:
    case Kind::global_uninitialised: return "uninitialised";
    case Kind::proxy_load:
    case Kind::proxy_store:
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
    default: return "race";
  }
}

std::string describe(Kind kind, const Occurrence& found, const std::string& earlier_line,
                     const std::string& later_line, const std::string& wait_line) {
  const bool reads_later = kind == Kind::read_after_write || kind == Kind::global_write_read;
  const bool read_earlier = kind == Kind::write_after_read || kind == Kind::global_read_write;
  const auto actor = [](const uint3& thread, bool is_async) {
    return is_async ? "an asynchronous operation of thread " + triple(thread)
                    : "thread " + triple(thread);
  };
  const char* did = found.earlier_atomic ? "updated" : read_earlier ? "read" : "wrote";
  const char* does = found.later_atomic ? "updates" : reads_later ? "reads" : "writes";
  const char* op = found.op == Op::load || found.op == Op::async_load ? "reads" : "writes";
  // Where a read races although its thread waited, the parity it waited for is the first suspect.
  const std::string in_block =
      " (block " + triple(found.block) + ")" +
      (found.idle_wait == 0 ? ""
                            : "; the mbarrier wait before the read, at " + wait_line +
                                  ", returned at once with no phase complete: its parity, 1, was "
                                  "that of the phase before the first");
  const std::string memory =
      found.is_static ? name_static(found.offset)
                      : "dynamic shared memory + " + std::to_string(found.offset) + " bytes";
  const std::string later = actor(found.later_thread, found.later_async);
  const std::string from_block = " of block " + triple(found.block);
  const bool one_block = found.block.x == found.earlier_block.x &&
                         found.block.y == found.earlier_block.y &&
                         found.block.z == found.earlier_block.z;
  const std::string text = std::string(kind_name(kind)) + ": ";
  switch (kind) {
    case Kind::write_after_write:
    case Kind::read_after_write:
    case Kind::write_after_read: {
      const char* order = kind == Kind::read_after_write    ? "read after write"
                          : kind == Kind::write_after_write ? "write after write"
                                                            : "write after read";
      const char* missing =
          found.earlier_async ? " without waiting for it" : " with no barrier between";
      return text + order + " on " + memory + ": " +
             actor(found.earlier_thread, found.earlier_async) + " " + did + " at " + earlier_line +
             (one_block ? "" : " from block " + triple(found.earlier_block)) + ", " + later + " " +
             does + " at " + later_line + missing + in_block;
    }
    case Kind::uninitialised:
      return text + later + " reads " + memory + " at " + later_line +
             ", which nothing has written" + in_block;
    case Kind::global_uninitialised:
      return text + later + " reads byte offset " + std::to_string(found.offset) + " of '" +
             found.detail + "' at " + later_line + ", which nothing has written" + in_block;
    case Kind::proxy_load:
    case Kind::proxy_store:
      return text + actor(found.earlier_thread, false) + " wrote " + memory + " at " +
             earlier_line + " by an ordinary store; " + later + " at " + later_line +
             (kind == Kind::proxy_load ? " reads it" : " overwrites it") +
             " without fence_proxy_async() in the writing thread" + in_block;
    case Kind::barrier_unordered:
    case Kind::barrier_unfenced:
      return text + later + from_block + " uses the mbarrier at " + memory + " at " + later_line +
             (kind == Kind::barrier_unordered
                  ? "; nothing orders that after its initialisation, by thread "
                  : "; no fence_mbarrier_init() follows its initialisation, by thread ") +
             triple(found.earlier_thread) + " of block " + triple(found.earlier_block) + " at " +
             earlier_line;
    case Kind::not_started:
      return text + later + from_block + (found.write ? " writes " : " reads ") + memory +
             " of another block of the cluster at " + later_line +
             ", which may not have started: no barrier of the cluster comes before";
    case Kind::exit_async:
      return text + "block " + triple(found.block) +
             " may end before an asynchronous operation that thread " +
             triple(found.earlier_thread) + " issued at " + earlier_line + " is done with its " +
             memory + ": nothing waits for it";
    case Kind::exit_remote:
      return text + "block " + triple(found.block) + " may have ended when " +
             actor(found.earlier_thread, found.earlier_async) + " of block " +
             triple(found.earlier_block) + " uses its " + memory + " at " + earlier_line +
             ": nothing orders that before its end";
    case Kind::different_places:
      return text + "thread " + triple(found.earlier_thread) + " executes " + found.detail +
             " at " + earlier_line + " and thread " + triple(found.later_thread) + " at " +
             later_line + ", where both must execute the same one" + in_block;
    case Kind::acted_alone:
    case Kind::waited_alone:
      return text + "thread " + triple(found.earlier_thread) +
             (kind == Kind::waited_alone ? " waited" : " acted") + " alone at " + earlier_line +
             ", and its warp comes to " + found.detail + " at " + later_line +
             " with no __syncwarp() between" + in_block;
    case Kind::registers_unordered:
      return text + "thread " + triple(found.later_thread) + " comes to setmaxnreg at " +
             later_line + ", and no barrier shows that thread " + triple(found.earlier_thread) +
             " of its warpgroup has passed the one at " + earlier_line + in_block;
    case Kind::global_write_write:
    case Kind::global_write_read:
    case Kind::global_read_write:
      if (found.in_group) {
        return text + "thread " + triple(found.earlier_thread) + " " + did + " byte offset " +
               std::to_string(found.offset) + " of '" + found.detail + "' at " + earlier_line +
               (one_block ? "" : " from block " + triple(found.earlier_block)) + ", " + later +
               " " + does + " it at " + later_line + " with no barrier between" + in_block;
      }
      return text + "blocks " + triple(found.earlier_block) + " and " + triple(found.block) +
             " meet at byte offset " + std::to_string(found.offset) + " of '" + found.detail +
             "': one " + did + " at " + earlier_line + ", thread " + triple(found.later_thread) +
             " of the other " + does + " at " + later_line +
             " with no synchronisation between. Blocks agree through a flag: store_release() and "
             "load_acquire(), or __threadfence() between the data and an atomic or volatile write "
             "of the flag";
    case Kind::out_of_bounds:
    case Kind::shared_out_of_bounds:
    case Kind::misaligned:
      return text + later + " " + op + " " + found.detail + ", at " + later_line + in_block;
    case Kind::static_shared:
      return text + "static __shared__ memory is used at " + later_line +
             " in a cluster or cooperative launch: use dynamic_shared() there" + in_block;
    case Kind::overflow:
      return text + later + " computes " + found.detail + " at " + later_line + in_block;
  }
  return text;
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
    if (found.idle_wait != 0) locations[found.idle_wait];
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
    } else {
      out.wavefronts += counts.units;
      out.ideal_wavefronts += counts.ideal;
      out.copy_wavefronts += counts.copy_units;
    }
  }
  for (auto& [place, site] : sites) trace.sites.push_back(std::move(site));

  // Two program counters of one pair of lines are one finding.
  std::map<std::pair<int, std::string>, size_t> seen;
  for (const auto& [key, found] : state.findings) {
    const auto [kernel, kind, earlier, later] = key;
    const std::string earlier_line = earlier != 0 ? line_of(earlier) : std::string();
    const std::string later_line = later != 0 ? line_of(later) : std::string();
    if (kind == Kind::different_places && earlier_line == later_line) continue;
    const std::string pair = kernel_name(kernel) + "|" + earlier_line + "|" + later_line;
    const auto [at, is_new] =
        seen.try_emplace({static_cast<int>(kind), pair}, trace.findings.size());
    if (is_new) {
      trace.findings.push_back(
          {kind_name(kind),
           describe(kind, found, earlier_line, later_line,
                    found.idle_wait != 0 ? line_of(found.idle_wait) : std::string()),
           found.count});
    } else {
      trace.findings[at->second].count += found.count;
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
