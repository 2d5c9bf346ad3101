// SPDX-License-Identifier: MIT
#include "common/backend/simt/runtime/memory.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/host_access.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/runtime/worker.hpp"

namespace cookbook {
namespace simt {
namespace {

// Whether only touched pages take memory: tests use row pitches of 4 GiB, and where nothing runs
// nothing is read.
bool is_sparse(size_t bytes) { return bytes >= size_t{4} << 30 || !runs_blocks(); }

// Around every buffer and its guard bands: a store that misses by less than this crashes, and the
// crash names its line. Otherwise it could change other data of the process.
constexpr size_t kUnmappedBytes = 16 << 20;
constexpr uint32_t kRankShift = 24;
constexpr uint32_t kOffsetMask = (1u << kRankShift) - 1;
constexpr size_t kWindowBytes = size_t{1} << 32;

class Registry {
 public:
  void add(const void* data, size_t bytes, const std::string& name, bool is_constant = false) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto begin = reinterpret_cast<uintptr_t>(data);
    allocations_[begin] = Allocation{begin, bytes, name, next_serial_++, nullptr, is_constant};
  }

  void remove(const void* data) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto at = allocations_.find(reinterpret_cast<uintptr_t>(data));
    if (at == allocations_.end()) return;
    if (at->second.written) munmap(at->second.written, at->second.bytes);
    allocations_.erase(at);
  }

  void track(const void* data) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    Allocation& allocation = allocations_.at(reinterpret_cast<uintptr_t>(data));
    void* memory = mmap(nullptr, allocation.bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) allocation.written = static_cast<unsigned char*>(memory);
  }

  void mark_all() {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    for (auto& [begin, allocation] : allocations_) {
      if (allocation.written) munmap(allocation.written, allocation.bytes);
      allocation.written = nullptr;
    }
  }

  // Only what lies in whole pages of its own: DeviceMemory, with its guard bands.
  void protect(int protection) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    for (const auto& [begin, allocation] : allocations_) {
      const uintptr_t first = begin / page * page;
      const uintptr_t end = (begin + allocation.bytes + page - 1) / page * page;
      mprotect(reinterpret_cast<void*>(first), end - first, protection);
    }
  }

  // The allocation that contains `address` or is nearest to it, at most `distance` bytes away.
  const Allocation* find(uintptr_t address, size_t distance) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto above = allocations_.upper_bound(address);
    const Allocation* nearest = nullptr;
    size_t gap = distance;
    if (above != allocations_.begin()) {
      const Allocation& below = std::prev(above)->second;
      const size_t offset = address - below.begin;
      if (offset < below.bytes) return &below;
      if (offset - below.bytes + 1 <= gap) {
        nearest = &below;
        gap = offset - below.bytes + 1;
      }
    }
    if (above != allocations_.end() && above->first - address <= gap && gap > 0) {
      nearest = &above->second;
    }
    return nearest;
  }

 private:
  std::shared_mutex mutex_;
  std::map<uintptr_t, Allocation> allocations_;
  uint64_t next_serial_ = 1;
};

// Never destroyed: buffers with static storage duration may outlive it otherwise.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

thread_local std::vector<Range> static_shared_ranges;

int add_tls_range(dl_phdr_info* info, size_t, void*) {
  if (!info->dlpi_tls_data) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
    const auto begin = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
    static_shared_ranges.push_back({begin, begin + info->dlpi_phdr[i].p_memsz});
  }
  return 0;
}

}  // namespace

const Allocation* find_allocation(uintptr_t address) { return registry().find(address, 0); }

const Allocation* find_nearest_allocation(uintptr_t address, size_t distance) {
  return registry().find(address, distance);
}

void register_memory(const void* begin, size_t bytes, const std::string& name, bool is_constant) {
  registry().add(begin, bytes, name, is_constant);
}

namespace {
std::vector<Range>& red_zones() {
  static auto* instance = new std::vector<Range>;
  return *instance;
}
}  // namespace

void register_red_zone(const void* begin, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(begin);
  red_zones().push_back({at, at + bytes});
}
bool is_red_zone(uintptr_t address) {
  return std::any_of(red_zones().begin(), red_zones().end(),
                     [address](const Range& zone) { return zone.contains(address); });
}
void unregister_memory(const void* begin) { registry().remove(begin); }

void track_writes(const void* begin) { registry().track(begin); }

void mark_written(const void* address, size_t bytes) {
  const Allocation* allocation = find_allocation(reinterpret_cast<uintptr_t>(address));
  if (!allocation || !allocation->written) return;
  const size_t offset = reinterpret_cast<uintptr_t>(address) - allocation->begin;
  std::memset(allocation->written + offset, 1, std::min(bytes, allocation->bytes - offset));
}

Unwritten find_unwritten(const void* address, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(address);
  const Allocation* allocation = find_allocation(first);
  if (!allocation || !allocation->written) return {};
  constexpr size_t kLongestGap = 8, kRecurring = 3;
  const auto* data = reinterpret_cast<const unsigned char*>(allocation->begin);
  const size_t begin = first - allocation->begin;
  const size_t end = begin + std::min(bytes, allocation->bytes - begin);
  // Fresh memory holds 0xFF: what holds anything else was written by code that is not traced.
  const auto is_fresh = [&](size_t at) { return !allocation->written[at] && data[at] == 0xff; };
  Unwritten found;
  size_t gaps = 0;
  bool only_gaps = true;
  for (size_t at = begin; at < end;) {
    if (!is_fresh(at)) {
      ++at;
      continue;
    }
    size_t stop = at;
    while (stop < end && is_fresh(stop)) ++stop;
    if (found.bytes == 0) found.begin = at, found.end = stop;
    found.bytes += stop - at;
    ++gaps;
    only_gaps &= stop - at < kLongestGap && stop < end;
    at = stop;
  }
  return only_gaps && gaps >= kRecurring ? Unwritten{} : found;
}

void mark_all_written() { registry().mark_all(); }

void open_device_memory(bool open) {
  registry().protect(open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void refresh_static_shared_ranges() {
  static_shared_ranges.clear();
  dl_iterate_phdr(&add_tls_range, nullptr);
}

bool is_static_shared(const void* pointer) {
  return std::any_of(static_shared_ranges.begin(), static_shared_ranges.end(), [&](const Range& r) {
    return r.contains(reinterpret_cast<uintptr_t>(pointer));
  });
}

Range static_shared_range() { return static_shared_ranges.front(); }

bool is_stack(const void* pointer) { return current_worker->stacks.contains(pointer); }

bool is_own_stack(const void* pointer) {
  return static_cast<size_t>(current_thread->stack_top - static_cast<const char*>(pointer)) <=
         kStackBytes;
}

Block* find_shared_block(const void* address) {
  const Group& group = current_worker->group;
  const auto value = reinterpret_cast<uintptr_t>(address);
  const auto contains = [value](const Block& block) {
    return value - reinterpret_cast<uintptr_t>(block.shared) < block.shared_bytes + kSharedPadBytes;
  };
  if (current_thread && contains(*current_thread->block)) return current_thread->block;
  for (uint32_t b = 0; b < group.block_count; ++b) {
    if (contains(*group.blocks[b])) return group.blocks[b].get();
  }
  return nullptr;
}

uint32_t shared_address(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (const Block* block = find_shared_block(pointer)) {
    const auto offset = static_cast<uint32_t>(address - reinterpret_cast<uintptr_t>(block->shared));
    const bool own = block == current_thread->block;
    const uint32_t window = block->group->launch->cluster > 1 ? block->rank
                            : own                             ? 0
                                                              : block->index + 1;
    return (window << kRankShift) + kDynamicSharedAddress + offset;
  }
  uint32_t base = kStaticSharedAddress;
  for (const Range& range : static_shared_ranges) {
    if (range.contains(address)) return base + static_cast<uint32_t>(address - range.begin);
    base += static_cast<uint32_t>(range.end - range.begin);
  }
  fail("__cvta_generic_to_shared of a pointer that is not into shared memory",
       __builtin_return_address(0));
}

void* shared_pointer(uint32_t address) {
  const uint32_t rank = address >> kRankShift, offset = address & kOffsetMask;
  if (offset >= kStaticSharedAddress) {
    uint32_t rest = offset - kStaticSharedAddress;
    for (const Range& range : static_shared_ranges) {
      if (rest < range.end - range.begin) return reinterpret_cast<void*>(range.begin + rest);
      rest -= static_cast<uint32_t>(range.end - range.begin);
    }
  } else if (offset >= kDynamicSharedAddress) {
    Group& group = current_worker->group;
    const Block& own = *current_thread->block;
    if (group.launch->cluster > 1 && rank < group.block_count) {
      return group.blocks[rank]->shared + (offset - kDynamicSharedAddress);
    }
    if (rank == 0) return own.shared + (offset - kDynamicSharedAddress);
    if (rank <= group.block_count) {
      return group.blocks[rank - 1]->shared + (offset - kDynamicSharedAddress);
    }
  }
  fail("no shared memory at this address of the shared window", __builtin_return_address(0));
}

SharedWindow::~SharedWindow() {
  if (reserved_ != nullptr) munmap(reserved_, 2 * kWindowBytes);
}

char* SharedWindow::block(uint32_t index, size_t bytes) {
  if (index >= kWindowBytes >> kRankShift || failed_) return nullptr;
  if (reserved_ == nullptr) {
    void* memory = mmap(nullptr, 2 * kWindowBytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    failed_ = memory == MAP_FAILED;  // a process may have a limit
    if (failed_) return nullptr;
    reserved_ = static_cast<char*>(memory);
    const auto address = reinterpret_cast<uintptr_t>(memory);
    window_ = reserved_ + (kWindowBytes - address % kWindowBytes) % kWindowBytes;
  }
  char* first = window_ + (size_t{index} << kRankShift);
  const size_t page = std::max<size_t>(kDynamicSharedAddress, sysconf(_SC_PAGESIZE));
  const size_t needed = (kDynamicSharedAddress + bytes + page - 1) / page * page;
  if (mprotect(first, needed, PROT_READ | PROT_WRITE) != 0) return nullptr;
  return first + kDynamicSharedAddress;
}

void* dynamic_shared_memory() { return current_thread->block->shared; }

}  // namespace simt

DeviceMemory::DeviceMemory(size_t bytes, std::string name, size_t misalign_bytes)
    : bytes_(bytes), name_(std::move(name)) {
  const size_t used = kGuardBytes + misalign_bytes + bytes + kGuardBytes;
  const size_t page = std::max(kGuardBytes, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  allocation_bytes_ = (used + page - 1) / page * page;
  void* reserved = mmap(nullptr, allocation_bytes_ + 2 * simt::kUnmappedBytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) throw std::bad_alloc();
  allocation_ = static_cast<unsigned char*>(reserved) + simt::kUnmappedBytes;
  if (mprotect(allocation_, allocation_bytes_, PROT_READ | PROT_WRITE) != 0) {
    munmap(reserved, allocation_bytes_ + 2 * simt::kUnmappedBytes);
    throw std::bad_alloc();
  }
  data_ = allocation_ + kGuardBytes + misalign_bytes;
  const auto guard = [this](unsigned char* begin, unsigned char* end) {
    const std::vector<unsigned char> band = guard_pattern(begin, end);
    std::memcpy(begin, band.data(), band.size());
  };
  guard(allocation_, data_);
  guard(data_ + bytes_, allocation_ + allocation_bytes_);
  if (!simt::is_sparse(allocation_bytes_)) std::memset(data_, 0xff, bytes_);
  simt::registry().add(data_, bytes_, name_);
}

DeviceMemory::~DeviceMemory() {
  if (!allocation_) return;
  simt::registry().remove(data_);
  munmap(allocation_ - simt::kUnmappedBytes, allocation_bytes_ + 2 * simt::kUnmappedBytes);
}

void DeviceMemory::copy_from_host(const void* source, size_t bytes, size_t offset) {
  check_range(bytes, offset);
  if (bytes != 0) std::memcpy(data_ + offset, source, bytes);
}

void DeviceMemory::copy_to_host(void* destination, size_t bytes, size_t offset) const {
  check_range(bytes, offset);
  if (bytes != 0) std::memcpy(destination, data_ + offset, bytes);
}

void DeviceMemory::fill(unsigned char byte) {
  if (bytes_ != 0) std::memset(data_, byte, bytes_);
}

bool DeviceMemory::guards_intact() const {
  const auto intact = [this](const unsigned char* begin, const unsigned char* end) {
    const std::vector<unsigned char> band = guard_pattern(begin, end);
    return std::memcmp(begin, band.data(), band.size()) == 0;
  };
  return intact(allocation_, data_) && intact(data_ + bytes_, allocation_ + allocation_bytes_);
}

}  // namespace cookbook
