// SPDX-License-Identifier: MIT
// Which memory an address is in, and whether it may be accessed.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt::tracing {

namespace {

/// How far outside of an allocation an access may land and still be in mapped guard memory.
constexpr size_t kGuardBytes = 4096;

/// Whether the process has memory there.
bool is_mapped(uintptr_t address) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / page * page), 1, &resident) == 0;
}

}  // namespace

WorkerTracer::Location WorkerTracer::locate(Thread& thread, const Access& access) {
  const uintptr_t address = access.address;
  const size_t bytes = access.bytes;
  const Block& own = *thread.block;
  if (own.shared != nullptr) {
    const size_t at = address - reinterpret_cast<uintptr_t>(own.shared);
    if (at < launch_->shared_bytes + kSharedPadBytes) {
      return in_dynamic_shared(own, at, thread, access);
    }
  }
  if (recent_[0] != nullptr && address >= recent_[0]->begin && address + bytes <= recent_[0]->end) {
    check_alignment(thread, access);
    return {recent_[0]};
  }
  if (static_shared_.contains(address)) {
    const uintptr_t at = address - static_shared_.begin;
    if (is_guard_variable(at)) return {};
    const SharedVariable* variable = find_shared_variable(at, bytes);
    if (variable != nullptr && variable->name.empty()) {
      fail(Fault::out_of_bounds,
           fmt::format("out of bounds: {} {} bytes of the backend's own thread-local storage",
                       access.op == Op::load ? "reads" : "writes", bytes),
           access.pc);
    }
    if (variable == nullptr && nearest_shared_variable(at) != nullptr) {
      Occurrence& found = note(Kind::shared_out_of_bounds, 0, access.pc, thread, access.op);
      if (found.count == 1) found.detail = describe_static_overrun(at, bytes);
      return {};
    }
    check_alignment(thread, access);
    if (group_->block_count > 1) {
      note(Kind::static_shared, 0, access.pc, thread, access.op);
      return {};  // one variable for all blocks: its races say nothing
    }
    return {nullptr, static_offset_ + (address - static_shared_.begin)};
  }
  if (is_own_stack(reinterpret_cast<const void*>(address))) return {};
  for (size_t i = 1; i < recent_.size() && recent_[i] != nullptr; ++i) {
    if (address < recent_[i]->begin || address + bytes > recent_[i]->end) continue;
    std::rotate(recent_.begin(), recent_.begin() + i, recent_.begin() + i + 1);
    check_alignment(thread, access);
    return {recent_[0]};
  }
  return locate_slowly(thread, access);
}

WorkerTracer::Location WorkerTracer::in_dynamic_shared(const Block& block, size_t at,
                                                       Thread& thread, const Access& access) {
  if (at + access.bytes > launch_->shared_bytes) {
    Occurrence& found = note(Kind::shared_out_of_bounds, 0, access.pc, thread, access.op);
    if (found.count == 1) {
      found.detail =
          fmt::format("{} bytes at byte offset {} of the dynamic shared memory, which has {} bytes",
                      access.bytes, at, launch_->shared_bytes);
    }
    return {};
  }
  check_alignment(thread, access);
  return {nullptr, shared_stride_ * block.index + at};
}

WorkerTracer::Location WorkerTracer::locate_slowly(Thread& thread, const Access& access) {
  const uintptr_t address = access.address;
  const size_t bytes = access.bytes;
  const auto* pointer = reinterpret_cast<const void*>(address);
  if (is_stack(pointer)) {
    Occurrence& found = note(Kind::out_of_bounds, 0, access.pc, thread, access.op);
    if (found.count == 1) {
      found.detail = fmt::format("{} bytes of another thread's local memory", bytes);
    }
    return {};
  }
  if (group_->block_count > 1) {
    if (const Block* block = find_shared_block(pointer)) {
      const size_t at = address - reinterpret_cast<uintptr_t>(block->shared);
      return in_dynamic_shared(*block, at, thread, access);
    }
  }
  const Allocation* allocation = find_allocation(address);
  if (allocation != nullptr && address + bytes <= allocation->begin + allocation->bytes) {
    if (allocation->is_constant) {
      check_alignment(thread, access);
      if (access.op != Op::load) {
        Occurrence& found = note(Kind::out_of_bounds, 0, access.pc, thread, access.op);
        if (found.count == 1) {
          found.detail = fmt::format("'{}', which is __constant__", allocation->name);
        }
      }
      return {};
    }
    Buffer& buffer = use_buffer(*allocation);
    check_alignment(thread, access);
    return {&buffer};
  }
  const bool may_be_host = allocation == nullptr && describe_host_variable;
  const std::string variable = may_be_host ? describe_host_variable(pointer) : "";
  if (!variable.empty()) {
    Occurrence& found = note(Kind::out_of_bounds, 0, access.pc, thread, access.op);
    found.on_host = true;
    if (found.count == 1) found.detail = fmt::format("{} bytes of {}", bytes, variable);
    return {};
  }
  // Read only: else these would be memory that all threads share and nobody counts.
  const bool reads = access.op == Op::load;
  const uintptr_t arguments = reinterpret_cast<uintptr_t>(launch_->arguments);
  if (reads && address >= arguments && address < arguments + launch_->argument_bytes) {
    return {};
  }
  for (const Range& image : shared().images) {
    if (!reads || allocation != nullptr || is_red_zone(address)) break;
    if (image.contains(address)) return {};
  }
  if (describe_unmapped && !describe_unmapped(pointer).empty()) return {};  // the crash says more
  check_alignment(thread, access);  // a GPU looks at that first
  const Allocation* near =
      allocation != nullptr ? allocation : find_nearest_allocation(address, kGuardBytes);
  const bool mapped = near != nullptr && address + kGuardBytes >= near->begin &&
                      address + bytes <= near->begin + near->bytes + kGuardBytes;
  Occurrence& found = note(Kind::out_of_bounds, 0, access.pc, thread, access.op);
  if (found.count == 1) {
    found.on_host = near == nullptr && is_mapped(address);
    found.detail = found.on_host ? fmt::format("{} bytes through a pointer to host memory, {:#x}",
                                               bytes, address)
                                 : describe_overrun(address, bytes, near);
  }
  if (!mapped) {
    fail(Fault::out_of_bounds,
         fmt::format("out of bounds: {} {}", access.op == Op::load ? "reads" : "writes",
                     found.detail),
         access.pc);
  }
  return {};
}

std::string WorkerTracer::describe_static_overrun(uintptr_t at, size_t bytes) {
  const SharedVariable& near = *nearest_shared_variable(at);
  return fmt::format(
      "{} bytes at byte offset {} of the __shared__ variable '{}', which has {} bytes", bytes,
      static_cast<int64_t>(at - near.begin), near.name, near.end - near.begin);
}

std::string WorkerTracer::describe_overrun(uintptr_t address, size_t bytes,
                                           const Allocation* near) {
  if (near == nullptr && address < kGuardBytes) {
    return fmt::format("{} bytes through a null pointer{}", bytes, source_of_null.load());
  }
  if (near == nullptr)
    return fmt::format("{} bytes at {:#x}, which is in no buffer", bytes, address);
  return fmt::format("{} bytes at byte offset {} of '{}', which has {} bytes", bytes,
                     static_cast<int64_t>(address - near->begin), near->name, near->bytes);
}

void WorkerTracer::require_previous_ended(const Buffer& buffer, const Thread& thread,
                                          const Access& access) {
  if (thread.block->previous_ended) return;
  const bool reads = access.op == Op::load || access.op == Op::async_load;
  fail_at(access.pc, "{} '{}' in a dependent launch before wait_for_previous_launch()",
          reads ? "reads" : "writes", buffer.name);
}

void WorkerTracer::report_misaligned(Thread& thread, const Access& access) {
  Occurrence& found = note(Kind::misaligned, 0, access.pc, thread, access.op);
  found.detail = fmt::format("{0} bytes at an address that is {1} past a multiple of {0}",
                             access.bytes, access.address & (access.bytes - 1));
  fail(Fault::misaligned,
       fmt::format("misaligned: {} {}", access.op == Op::load ? "reads" : "writes", found.detail),
       access.pc);
}

WorkerTracer::Buffer& WorkerTracer::use_buffer(const Allocation& allocation) {
  std::unique_ptr<Buffer>& buffer = buffers_[allocation.serial];
  if (buffer == nullptr) {
    buffer = std::make_unique<Buffer>();
    buffer->begin = allocation.begin;
    buffer->end = allocation.begin + allocation.bytes;
    buffer->serial = allocation.serial;
    buffer->name = allocation.name;
    buffer->written = allocation.written;
    const uintptr_t sectors = buffer->end / kSectorBytes - buffer->begin / kSectorBytes + 1;
    buffer->sectors.resize(sectors / 64 + 1);
    if (launch_->group_count > 1 || group_->thread_count > 1 || observe_range != nullptr) {
      Shared& state = shared();
      const std::lock_guard<std::mutex> lock(state.mutex);
      std::unique_ptr<GlobalShadow>& shadow = state.shadows[allocation.serial];
      if (shadow == nullptr) {
        shadow = std::make_unique<GlobalShadow>(allocation.begin, allocation.bytes);
      }
      if (shadow->words() != nullptr) buffer->shadow = shadow.get();
    }
  }
  std::move_backward(recent_.begin(), recent_.end() - 1, recent_.end());
  recent_[0] = buffer.get();
  return *buffer;
}

uint32_t WorkerTracer::owner_of(size_t offset) const {
  return offset < static_offset_ ? static_cast<uint32_t>(offset / shared_stride_) : 0;
}

size_t WorkerTracer::barrier_offset(const uint64_t* bar) const {
  const auto address = reinterpret_cast<uintptr_t>(bar);
  if (const Block* block = find_shared_block(bar)) {
    return shared_stride_ * block->index + (address - reinterpret_cast<uintptr_t>(block->shared));
  }
  return static_offset_ + (address - static_shared_.begin);
}

}  // namespace cookbook::simt::tracing
