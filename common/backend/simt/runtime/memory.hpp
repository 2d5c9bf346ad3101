// SPDX-License-Identifier: MIT
// Global memory with its registry, and the shared-memory window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

struct Range {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t address) const { return address >= begin && address < end; }
};

// ---- global memory ----

struct Allocation {
  uintptr_t begin = 0;  // exactly the bytes that the user asked for, without guard bands
  size_t bytes = 0;
  std::string name;
  uint64_t serial = 0;               // unique over the process
  unsigned char* written = nullptr;  // where track_writes() was called: 1 for each byte written
  bool is_constant = false;          // a `__constant__` variable: no memory traffic
};
// The DeviceMemory that contains `address`, or null. The pointer is valid until that allocation is
// freed.
const Allocation* find_allocation(uintptr_t address);
// The nearest allocation below or around `address` within `distance` bytes, or null: to name an
// overrun buffer.
const Allocation* find_nearest_allocation(uintptr_t address, size_t distance);

// Memory of the program that kernels may use as if it were a DeviceMemory: a `__device__` variable.
void register_memory(const void* begin, size_t bytes, const std::string& name,
                     bool is_constant = false);
void unregister_memory(const void* begin);
// What lies between such variables: an access there is beyond the end of one.
void register_red_zone(const void* begin, size_t bytes);
bool is_red_zone(uintptr_t address);
// From now on the tracer reports reads of this allocation that nothing has written before: neither
// a kernel nor, by mark_written(), the host. Until the allocation is freed.
void track_writes(const void* begin);
void mark_written(const void* address, size_t bytes);
void mark_all_written();
// The bytes of such an allocation that nothing has written: the first range, and how many there are
// in all. Gaps that recur, as those between the members of a structure, do not count.
struct Unwritten {
  size_t begin = 0, end = 0, bytes = 0;  // offsets in the allocation
};
Unwritten find_unwritten(const void* address, size_t bytes);

// ---- shared memory ----

inline constexpr size_t kSharedAlignment =
    1024;  // of dynamic shared memory: what SWIZZLE_128B needs
inline constexpr size_t kSharedPadBytes =
    1024;  // 0xFF after the dynamic shared memory, checked at block end
inline constexpr uint32_t kDynamicSharedAddress =
    0x400;  // __cvta_generic_to_shared of its first byte
// Behind all dynamic shared memory, and the first address that a wgmma descriptor cannot hold.
inline constexpr uint32_t kStaticSharedAddress = 0x40000;
inline constexpr size_t kMaxDynamicSharedBytes =
    kStaticSharedAddress - kDynamicSharedAddress - kSharedPadBytes;

// The block of the current group whose dynamic shared memory contains `address`, or null.
Block* find_shared_block(const void* address);
// 32-bit shared-window address of a pointer into shared memory, and back. A block's dynamic shared
// memory starts at kDynamicSharedAddress; in a cluster its rank << 24 is added, its own too, as
// CUTLASS relies on (Sm100MmaPeerBitMask). Static __shared__ lies at kStaticSharedAddress and
// above.
uint32_t shared_address(const void* pointer);
void* shared_pointer(uint32_t address);
// True if `pointer` is in this OS thread's thread-local storage: static __shared__.
bool is_static_shared(const void* pointer);
// The part of it that the executable's variables take, before those of libraries.
Range static_shared_range();
// True if `pointer` is on a fiber's stack: a GPU would have it in registers or local memory.
bool is_stack(const void* pointer);
// True if that fiber is the running one.
bool is_own_stack(const void* pointer);

// Looks up this OS thread's thread-local storage anew.
void refresh_static_shared_ranges();

}  // namespace cookbook::simt
