// SPDX-License-Identifier: MIT
// Requests and their cost; what a worker hands over when a launch ends.
#include <algorithm>
#include <bit>
#include <cstring>

#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt::tracing {

void WorkerTracer::begin_launch(const Launch& launch) {
  launch_ = &launch;
  recursed_ = false;
  looks_at_stacks_ = 0;
  sites_.clear();
  worst_.clear();
  table_.assign(kFirstTableSize, {});
  open_.clear();
  buffers_.clear();
  recent_.fill(nullptr);
  findings_.clear();
  order_.flag_places.clear();
  first_stores_.clear();
  counts_ = {};
  static_shared_ = static_shared_range();
}

void WorkerTracer::make_current(WorkerTracer* tracer) {
  worker_tracer = tracer;
  sync_tracer = tracer;
  access_tracer = tracer;
  async_tracer = tracer;
  mbarrier_tracer = tracer;
  register_tracer = tracer;
  tensor_tracer = tracer;
}

void WorkerTracer::begin_group(Group& group) {
  group_ = &group;
  group_id_ = group.id;
  blocks_.clear();
  for (uint32_t i = 0; i < group.block_count; ++i) blocks_.push_back(group.blocks[i]->block_idx);
  threads_per_block_ = launch_->block.x * launch_->block.y * launch_->block.z;
  warps_per_block_ = (threads_per_block_ + kWarpSize - 1) / kWarpSize;
  shared_stride_ = (launch_->shared_bytes + 3) / 4 * 4;
  static_offset_ = shared_stride_ * group.block_count;
  const size_t static_bytes = static_shared_.end - static_shared_.begin;
  detector_.begin_group(group.block_count, threads_per_block_, static_offset_ + static_bytes + 16,
                        launch_->cluster > 1, has_tensor_memory());
  order_.begin_group(group.id, group.thread_count);
  assumed_.begin_group(group.id, group.thread_count);
  flags_used_.clear();
  const size_t warps = size_t{warps_per_block_} * group.block_count;
  if (open_.size() < warps) open_.resize(warps);
  register_calls_.clear();
  pending_registers_.clear();
  if (volatile_loads_.size() < group.thread_count || open_volatile_loads_ != 0) {
    volatile_loads_.assign(std::max<size_t>(volatile_loads_.size(), group.thread_count), {});
    open_volatile_loads_ = 0;
  }
  make_current(this);
  trap_not_finite(true);
}

void WorkerTracer::end_group(bool abandoned) {
  trap_not_finite(false);
  finish_store();
  make_current(nullptr);
  if (!abandoned) detector_.check_exits();
  for (size_t w = 0; w < open_.size(); ++w) {
    std::vector<OpenRequest>& warp = open_[w];
    const size_t sites = std::min(warp.size(), sites_.size());  // a warp's vector has spare ones
    for (size_t i = 0; i < sites; ++i) finish(sites_[i], warp[i], w);
  }
  for (Site& site : sites_) site.has_operation = false;  // the next group numbers its own
  take_hazards();
}

void WorkerTracer::end_block(const Block& block) {
  ++counts_.blocks;
  if (block.group->traced) ++counts_.traced_blocks;
  for (uint32_t i = 0; i < block.warp_count; ++i) {
    counts_.basic_blocks += block.warps[i].basic_blocks;
    counts_.active_lanes += block.warps[i].active_lanes;
  }
}

void WorkerTracer::merge_into(Shared& sums) {
  KernelCounts& kernel = sums.kernels[launch_->kernel];
  kernel.blocks += counts_.blocks;
  kernel.traced_blocks += counts_.traced_blocks;
  kernel.basic_blocks += counts_.basic_blocks;
  kernel.active_lanes += counts_.active_lanes;
  for (const Site& site : sites_) {
    if (site.counts.requests == 0) continue;
    sums.sites[{launch_->kernel, site.key}].add(site.counts);
    if (site.key.space == Space::global) kernel.bytes_requested += site.counts.bytes;
  }
  for (size_t i = 0; i < worst_.size(); ++i) {
    if (worst_[i].active == 0) continue;
    Request& kept = sums.worst[{launch_->kernel, sites_[i].key}];
    if (kept.active == 0 || worst_[i].rank < kept.rank) kept = worst_[i];
  }
  for (auto& [key, found] : findings_) {
    const auto [at, is_new] = sums.findings.try_emplace(key, found);
    if (is_new) continue;
    const uint64_t count = at->second.count + found.count;
    const bool relies = at->second.relies && found.relies;
    if (found.group < at->second.group) at->second = found;
    at->second.count = count;
    at->second.relies = relies;
  }
  sums.flag_places.merge(order_.flag_places);
  for (const auto& [serial, buffer] : buffers_) sums.buffer_names[serial] = buffer->name;
}

void WorkerTracer::merge_sectors(std::map<uint64_t, std::vector<uint64_t>>& touched) const {
  for (const auto& [serial, buffer] : buffers_) {
    std::vector<uint64_t>& words = touched[serial];
    words.resize(std::max(words.size(), buffer->sectors.size()));
    for (size_t i = 0; i < buffer->sectors.size(); ++i) words[i] |= buffer->sectors[i];
  }
}

void WorkerTracer::check_pending_registers(const Thread& thread, const Access& access) {
  for (uintptr_t at = access.address & ~uintptr_t{3}; at < access.address + access.bytes; at += 4) {
    const auto found = pending_registers_.find(at);
    if (found == pending_registers_.end()) continue;
    note(Kind::registers_pending, found->second, access.pc, thread, Op::load);
    return;
  }
}

void WorkerTracer::lane_access(Actor operation, const Access& access) {
  Thread& thread = *current_thread;
  if (!pending_registers_.empty() && access.op == Op::load) {
    check_pending_registers(thread, access);
  }
  finish_accesses(thread);
  const Location at = locate(thread, access);
  const Op op = access.op;
  const uint32_t token = token_of(access.pc);
  if (at.buffer == nullptr) {
    if (at.offset == Location::kIgnored) return;
    if (!thread.block->group->traced) return;  // an atomic: only those of global memory order
    count_lane(thread, {token, access.part, Space::shared, op, access.bytes, 0}, access);
    RaceDetector::Access one{
        operation,        token, op == Op::store || op == Op::atomic || op == Op::async_store,
        op == Op::atomic, false, access.may_outlive};
    // Lanes that rely on being in step use volatile, too, but no fence.
    one.flag = access.use == FlagUse::volatile_access &&
               (op == Op::load || order_.has_fenced(thread.actor));
    one.overwrites = access.overwrites;
    one.deferred = shows_value(access);
    order_.touch(thread.actor);
    assume_flag(thread, access);
    detector_.access(at.offset, access.bytes, one, owner_of(at.offset));
    if (detector_.has_deferred()) note_store(access);
    note_flag(thread, access);
    return;
  }
  Buffer& buffer = *at.buffer;
  require_previous_ended(buffer, thread, access);
  mark_sectors(buffer, access.address, access.bytes);
  check_written(buffer, thread, access);
  const size_t site = count_lane(
      thread, {token, access.part, Space::global, op, access.bytes, buffer.serial}, access);
  if (buffer.shadow == nullptr) return;
  assume_flag(thread, access);
  check_global(buffer, site, thread, access);
  note_flag(thread, access);
}

void WorkerTracer::bulk_access(Actor operation, const Access& access) {
  Thread& thread = *current_thread;
  finish_store();
  const Location at = locate(thread, access);
  if (at.buffer == nullptr && at.offset == Location::kIgnored) return;
  const uint32_t token = token_of(access.pc);
  const Space space = at.buffer == nullptr ? Space::shared : Space::global;
  const uint64_t serial = at.buffer == nullptr ? 0 : at.buffer->serial;
  const size_t index = site_index({token, 0, space, access.op, 0, serial});
  Site& site = sites_[index];
  if (!site.has_operation || site.operation != operation) {
    site.has_operation = true;
    site.operation = operation;
    site.next_sector = 0;
    ++site.counts.requests;
    ++site.counts.lanes;
  }
  const uint32_t bytes = access.bytes;
  site.counts.bytes += bytes;
  site.counts.largest_range = std::max<uint64_t>(site.counts.largest_range, bytes);
  if (at.buffer == nullptr) {
    RaceDetector::Access found{operation, token, access.op == Op::async_store};
    found.async_proxy = true;
    found.is_answer = access.is_answer;
    detector_.access(at.offset, bytes, found, owner_of(at.offset));
    return;
  }
  require_previous_ended(*at.buffer, thread, access);
  uintptr_t first = access.address / kSectorBytes;
  const uintptr_t last = (access.address + bytes - 1) / kSectorBytes;
  if (first + 1 == site.next_sector) ++first;  // the range before ended in the same sector
  site.counts.units += last + 1 - first;
  site.next_sector = last + 1;
  site.counts.ideal += (bytes + kSectorBytes - 1) / kSectorBytes;
  mark_sectors(*at.buffer, access.address, bytes);
  check_written(*at.buffer, thread, access);
  check_global(*at.buffer, index, thread, access);
}

void WorkerTracer::check_written(const Buffer& buffer, Thread& thread, const Access& access) {
  if (buffer.written == nullptr) return;
  // Fresh memory holds 0xFF: what holds anything else was written, if only by code that is not
  // traced.
  const auto is = [](const unsigned char* begin, size_t count, unsigned char value) {
    return std::all_of(begin, begin + count, [value](unsigned char c) { return c == value; });
  };
  const Op op = access.op;
  unsigned char* written = buffer.written + (access.address - buffer.begin);
  const bool reads =
      op == Op::load || op == Op::async_load || (op == Op::atomic && !access.overwrites);
  if (reads && is(written, access.bytes, 0) &&
      is(reinterpret_cast<const unsigned char*>(access.address), access.bytes, 0xff)) {
    Occurrence& found = note(Kind::global_uninitialised, 0, access.pc, thread, op);
    if (found.count == 1) {
      found.offset = access.address - buffer.begin;
      found.detail = buffer.name;
    }
  }
  if (op == Op::store || op == Op::async_store || op == Op::atomic) {
    std::memset(written, 1, access.bytes);
  }
}

void WorkerTracer::mark_sectors(Buffer& buffer, uintptr_t address, size_t bytes) {
  const uintptr_t base = buffer.begin / kSectorBytes;
  const uintptr_t last = (address + bytes - 1) / kSectorBytes - base;
  for (uintptr_t at = address / kSectorBytes - base; at <= last; ++at) {
    buffer.sectors[at / 64] |= uint64_t{1} << (at % 64);
  }
}

size_t WorkerTracer::site_index(const SiteKey& key) {
  const size_t mask = table_.size() - 1;
  uint64_t hash = (uint64_t{key.pc} << 8 | key.bytes) ^ key.buffer << 40 ^
                  uint64_t { key.part } << 50 ^ uint64_t { static_cast<unsigned>(key.op) } << 60;
  hash *= 0x9e3779b97f4a7c15ull;
  size_t at = hash >> 40 & mask;
  while (table_[at].index >= 0) {
    if (table_[at].key == key) return static_cast<size_t>(table_[at].index);
    at = (at + 1) & mask;
  }
  table_[at] = {key, static_cast<int>(sites_.size())};
  sites_.push_back({});
  sites_.back().key = key;
  const size_t index = sites_.size() - 1;
  if (2 * sites_.size() > table_.size()) grow_table();
  return index;
}

void WorkerTracer::grow_table() {
  table_.assign(table_.size() * 2, {});
  std::vector<Site> sites = std::move(sites_);
  sites_.clear();
  sites_.reserve(sites.size() * 2);
  for (const Site& site : sites) sites_[site_index(site.key)] = site;
}

size_t WorkerTracer::count_lane(const Thread& thread, const SiteKey& key, const Access& access) {
  const size_t index = site_index(key);
  Site& site = sites_[index];
  site.rule = access.rule;
  const size_t number = size_t{thread.block->index} * warps_per_block_ + thread.id / kWarpSize;
  std::vector<OpenRequest>& warp = open_[number];
  if (warp.size() <= index) warp.resize(index + 8);
  OpenRequest& open = warp[index];
  const uint32_t bit = uint32_t{1} << thread.lane;
  const uint64_t instruction = thread.warp->instruction;
  if (open.instruction != instruction || (open.lanes.active & bit) != 0) {
    finish(site, open, number);
    open.instruction = instruction;
  }
  open.lanes.active |= bit;
  open.lanes.address[thread.lane] = access.address;
  if (access.source == 0) return index;
  if (open.source == nullptr) open.source = std::make_unique<LaneRequest>();
  open.source->active |= bit;
  open.source->address[thread.lane] = access.source;
  return index;
}

void WorkerTracer::finish(Site& site, OpenRequest& open, size_t warp) {
  if (open.lanes.active == 0) return;
  const auto bytes = static_cast<int>(site.key.bytes);
  const RequestCost cost = site.key.space == Space::global
                               ? global_cost(open.lanes, bytes)
                               : shared_cost(open.lanes, bytes, site.rule);
  const auto lanes = static_cast<uint64_t>(std::popcount(open.lanes.active));
  uint64_t copy_units = 0;
  if (site.key.space == Space::shared && site.key.op == Op::async_store) {
    copy_units = cost.units;
    // A copy passes as often as its slower side. Only 4 bytes: 16 go past L1, 8 are not measured.
    if (open.source != nullptr && bytes == 4) {
      copy_units = std::max<uint64_t>(copy_units, source_wavefronts(*open.source));
    }
    if (open.source != nullptr) open.source->active = 0;
  }
  site.counts.add(
      {1, lanes, cost.units, cost.ideal, lanes * site.key.bytes, site.key.bytes, copy_units});
  if (keep_requests) keep(site, open, warp, cost);
  open.lanes.active = 0;
}

void WorkerTracer::keep(const Site& site, const OpenRequest& open, size_t warp,
                        const RequestCost& cost) {
  const auto index = static_cast<size_t>(&site - sites_.data());
  if (worst_.size() <= index) worst_.resize(index + 1);
  Request& kept = worst_[index];
  const uint64_t block = warp / warps_per_block_, in_block = warp % warps_per_block_;
  const uint64_t middle = warps_per_block_ / 2;
  const uint64_t from_middle =
      in_block < middle ? 2 * (middle - in_block) : 2 * (in_block - middle) + 1;
  const LaneRequest& lanes = open.lanes;
  const std::array<uint64_t, 6> rank = {~uint64_t{cost.units - cost.ideal},
                                        static_cast<uint64_t>(kLanes - std::popcount(lanes.active)),
                                        shared().launch_number,
                                        group_id_,
                                        block << 16 | from_middle,
                                        open.instruction};
  if (kept.active != 0 && kept.rank <= rank) return;
  std::string name;
  const uintptr_t start = start_of(site, lanes, name);
  if (start == 0) return;
  const char* rule = site.rule == SharedRule::load_store    ? "load_store"
                     : site.rule == SharedRule::matrix_rows ? "matrix_rows"
                                                            : "atomic";
  const uint3 of = blocks_[block];
  kept = {{of.x, of.y, of.z},
          static_cast<uint32_t>(in_block),
          lanes.active,
          {},
          name,
          cost.units,
          cost.ideal,
          site.key.space == Space::shared ? rule : "",
          rank};
  for (uint32_t rest = lanes.active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    kept.address[lane] = lanes.address[lane] - start;
  }
}

uintptr_t WorkerTracer::start_of(const Site& site, const LaneRequest& lanes,
                                 std::string& name) const {
  if (site.key.space == Space::global) {
    return buffers_.at(site.key.buffer)->begin & ~uintptr_t{kLineBytes - 1};
  }
  const auto within = [&lanes](uintptr_t begin, uintptr_t end) {
    bool all = true;
    for (uint32_t rest = lanes.active; rest != 0; rest &= rest - 1) {
      const uintptr_t address = lanes.address[std::countr_zero(rest)];
      all = all && address >= begin && address < end;
    }
    return all;
  };
  for (uint32_t i = 0; i < group_->block_count; ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(group_->blocks[i]->shared);
    if (begin != 0 && within(begin, begin + launch_->shared_bytes)) return begin;
  }
  if (!within(static_shared_.begin, static_shared_.end)) return 0;
  const uintptr_t first = lanes.address[std::countr_zero(lanes.active)] - static_shared_.begin;
  const SharedVariable* variable = find_shared_variable(first, 1);
  if (variable == nullptr ||
      !within(static_shared_.begin + variable->begin, static_shared_.begin + variable->end)) {
    return static_shared_.begin;
  }
  name = variable->name;
  return (static_shared_.begin + variable->begin) & ~uintptr_t{3};  // the words stay whole
}

}  // namespace cookbook::simt::tracing
