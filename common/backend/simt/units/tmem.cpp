// SPDX-License-Identifier: MIT
// A load reaches the registers at once, and only a trace sees that a program uses them before it
// waits: ThunderKittens does, and is right on a B200. A store is over at any time until its wait.
#include "common/backend/simt/units/tmem.hpp"

#include <algorithm>
#include <string>

#include "common/backend/simt/runtime/access_tracer.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/runtime/timeline.hpp"
#include "common/backend/simt/units/async_tracer.hpp"
#include "common/backend/simt/units/tcgen05.hpp"
#include "common/backend/simt/units/tensor_tracer.hpp"
#include "common/backend/simt/units/tmem_state.hpp"
#include "common/backend/simt/units/warp_collective.hpp"

namespace cookbook::simt {
namespace {

// All lanes meet in one instruction, which waits for them (`.sync`). Lanes need not have met
// before: learn-cuda's _matmul_tmem.cu, where one lane issues alone before, is right on a B200.
template <class Lane, class Compute>
void meet_warp(Lane& mine, const char* what, void* pc, const Compute& compute) {
  warp_collective(mine, what, pc, compute, Meet::exchange);
}

TensorMemory::PerWarp& of_warp(const Thread& thread) {
  TensorMemory& memory = tensor_memory(*thread.block);
  if (memory.warps.empty()) memory.warps.resize(thread.block->warp_count);
  return memory.warps[thread.id / kWarpSize];
}

// ---- allocation ----

bool is_free(const TensorMemory& memory, uint32_t first, uint32_t columns) {
  return std::none_of(memory.allocations.begin(), memory.allocations.end(), [&](const auto& other) {
    return first < other.first + other.columns && other.first < first + columns;
  });
}

// Grants the oldest request of the block, or of both blocks of its pair, if there is room.
bool grant(const std::array<Block*, 2>& blocks, int cta_group) {
  std::array<TensorMemory*, 2> memories{};
  for (int i = 0; i < cta_group; ++i) memories[i] = &tensor_memory(*blocks[i]);
  for (int i = 0; i < cta_group; ++i) {
    if (memories[i]->requests.empty()) return false;
  }
  const uint32_t columns = memories[0]->requests.front()->columns;
  if (cta_group == 2 && memories[1]->requests.front()->columns != columns) {
    fail_at(memories[1]->requests.front()->pc,
            "tcgen05.alloc: {} columns, and {} in the other block of the pair",
            memories[1]->requests.front()->columns, columns);
  }
  for (uint32_t first = 0; first + columns <= kTmemColumns; first += 32) {
    bool free = true;
    for (int i = 0; i < cta_group; ++i) free = free && is_free(*memories[i], first, columns);
    if (!free) continue;
    for (int i = 0; i < cta_group; ++i) {
      TensorMemory& memory = *memories[i];
      const std::shared_ptr<TmemRequest> request = memory.requests.front();
      memory.requests.pop_front();
      request->address = first;
      request->granted = true;
      memory.allocations.push_back({first, columns, request->pc});
      for (uint32_t lane = 0; lane < kTmemLanes; ++lane) {
        std::fill_n(&memory.word(lane, first), columns, ~0u);  // NaN
      }
      if (tensor_tracer != nullptr) {
        tensor_tracer->tensor_allocated({blocks[i], first, columns, 0}, request->pc);
      }
      for (Thread* thread : memory.waiting) make_ready(thread);
      memory.waiting.clear();
    }
    return true;
  }
  return false;
}

void require_columns(uint32_t columns, const char* what, void* pc) {
  if (columns >= 32 && columns <= kTmemColumns && (columns & (columns - 1)) == 0) return;
  fail_at(pc, "{}: {} columns; an allocation has 32, 64, 128, 256 or 512", what, columns);
}

struct AllocLane {
  uint32_t columns;
  std::shared_ptr<TmemRequest> request;
  bool done;
};

void request(const std::array<AllocLane*, kWarpSize>& lanes, int cta_group, void* pc) {
  constexpr const char* kWhat = "tcgen05.alloc";
  const Thread& self = *current_thread;
  const uint32_t columns = lanes[0]->columns;
  for (const AllocLane* lane : lanes) {
    if (lane->columns != columns) fail_at(pc, "{}: lanes disagree about the columns", kWhat);
  }
  require_columns(columns, kWhat, pc);
  const std::array<Block*, 2> blocks = blocks_of(cta_group, kWhat, pc);
  require_alive(blocks, kWhat, pc);
  TensorMemory& memory = tensor_memory(*self.block);
  if (memory.relinquished) fail_at(pc, "{} after tcgen05.relinquish_alloc_permit", kWhat);
  if (memory.allocator != nullptr && memory.allocator != self.warp) {
    fail_at(pc, "{}: another warp of the block has allocated before: one warp allocates", kWhat);
  }
  if (columns > memory.least) {
    fail_at(pc, "{}: {} columns after an allocation of {}: later ones may not be larger", kWhat,
            columns, memory.least);
  }
  memory.allocator = self.warp;
  memory.least = columns;
  const auto made = std::make_shared<TmemRequest>();
  made->columns = columns;
  made->pc = pc;
  memory.requests.push_back(made);
  for (AllocLane* lane : lanes) lane->request = made;
  grant(blocks, cta_group);
}

struct AgreeLane {
  uint32_t first, second;
  bool done;
};

// All lanes of the warp come with the same arguments; one runs `act`.
template <class Act>
void agree(uint32_t first, uint32_t second, const char* what, void* pc, const Act& act) {
  AgreeLane mine{first, second, false};
  meet_warp(mine, what, pc, [&](const std::array<AgreeLane*, kWarpSize>& lanes) {
    for (const AgreeLane* lane : lanes) {
      if (lane->first != first || lane->second != second) {
        fail_at(pc, "{}: lanes of the warp have different arguments", what);
      }
    }
    act();
  });
}

// ---- loads and stores ----

struct Access {
  TmemShape shape;
  int repeat;
  bool pack;
  uint32_t offset;        // of s16x32bx2
  uint32_t lane, column;  // first ones
};

int registers_of(TmemShape shape, int repeat) {
  return shape == TmemShape::s16x256b   ? 4 * repeat
         : shape == TmemShape::s16x128b ? 2 * repeat
                                        : repeat;
}

// Where thread `t` of the warp has its register `i`: lane and column, from the first ones. With two
// columns per register the first of them.
std::array<uint32_t, 2> place_of(const Access& access, uint32_t t, uint32_t i) {
  const uint32_t width = access.pack ? 2 : 1;
  switch (access.shape) {
    case TmemShape::s32x32b: return {t, i * width};
    case TmemShape::s16x64b: return {t / 4 + 8 * (t % 2), (t / 2 % 2 + 2 * i) * width};
    case TmemShape::s16x128b: return {t / 4 + 8 * (i % 2), (t % 4 + 4 * (i / 2)) * width};
    case TmemShape::s16x256b:
      return {t / 4 + 8 * (i / 2 % 2), (2 * (t % 4) + i % 2 + 8 * (i / 4)) * width};
    case TmemShape::s16x32bx2: break;
  }
  return {t % 16, i * width + (t < 16 ? 0 : access.offset)};
}

// Columns of one run from the first column on.
uint32_t span_of(const Access& access) {
  const auto n = static_cast<uint32_t>(access.repeat) * (access.pack ? 2 : 1);
  switch (access.shape) {
    case TmemShape::s16x64b: return 2 * n;
    case TmemShape::s16x128b: return 4 * n;
    case TmemShape::s16x256b: return 8 * n;
    default: return n;
  }
}

Access checked_access(uint32_t address, TmemShape shape, int repeat, bool pack, uint32_t offset,
                      const char* what, void* pc) {
  require_sm_100a(what, pc);
  const Thread& self = *current_thread;
  const Access access{shape, repeat, pack, offset, address >> 16 & 127, address & 0xffff};
  const int registers = registers_of(shape, repeat);
  if (repeat < 1 || (repeat & (repeat - 1)) != 0 || registers > 128) {
    fail_at(pc, "{}: no such shape: x{} of {} registers", what, repeat, registers);
  }
  const uint32_t quarter = self.id / kWarpSize % 4, in_quarter = access.lane % 32;
  if (access.lane / 32 != quarter) {
    fail_at(pc, "{}: lane {} of tensor memory; warp {} reaches lanes {} to {}", what, access.lane,
            self.id / kWarpSize, 32 * quarter, 32 * quarter + 31);
  }
  if (in_quarter != 0 && (shape == TmemShape::s32x32b || in_quarter != 16)) {
    fail_at(pc, "{}: lane {} of tensor memory: the shape begins at {}", what, access.lane,
            shape == TmemShape::s32x32b ? "multiples of 32" : "multiples of 16");
  }
  require_allocated(*self.block, access.column, span_of(access), what, pc);
  if (shape == TmemShape::s16x32bx2) {
    require_allocated(*self.block, access.column + offset, span_of(access), what, pc);
  }
  return access;
}

// The lanes of an access, in groups of eight.
uint32_t groups_of(const Access& access) {
  return (access.shape == TmemShape::s32x32b ? 0xfu : 0x3u) << access.lane / 8;
}

template <class Visit>
void for_each_range(const Access& access, const Visit& visit) {
  const Block* block = current_thread->block;
  visit(TensorRange{block, access.column, span_of(access), groups_of(access)});
  if (access.shape == TmemShape::s16x32bx2 && access.offset != 0) {
    visit(TensorRange{block, access.column + access.offset, span_of(access), groups_of(access)});
  }
}

uint32_t read_register(TensorMemory& memory, const Access& access, uint32_t t, uint32_t i) {
  const auto [lane, column] = place_of(access, t, i);
  if (!access.pack) return memory.word(access.lane + lane, access.column + column);
  const uint32_t* both = &memory.word(access.lane + lane, access.column + column);
  return (both[0] & 0xffff) | both[1] << 16;
}

void write_register(TensorMemory& memory, const Access& access, uint32_t t, uint32_t i,
                    uint32_t value) {
  const auto [lane, column] = place_of(access, t, i);
  if (!access.pack) {
    memory.word(access.lane + lane, access.column + column) = value;
    return;
  }
  uint32_t* both = &memory.word(access.lane + lane, access.column + column);
  both[0] = value & 0xffff;
  both[1] = value >> 16;
}

struct AddressLane {
  uint32_t address, offset;
  const uint32_t* registers;  // of a store
  bool done = false;
};

void require_same(const std::array<AddressLane*, kWarpSize>& lanes, const char* what, void* pc) {
  for (const AddressLane* lane : lanes) {
    if (lane->address != lanes[0]->address || lane->offset != lanes[0]->offset) {
      fail_at(pc, "{}: lanes of the warp have different addresses", what);
    }
  }
}

template <class At>
void load(const At& at, uint32_t address, TmemShape shape, int repeat, bool pack, uint32_t offset,
          void* pc) {
  constexpr const char* kWhat = "tcgen05.ld";
  const Access access = checked_access(address, shape, repeat, pack, offset, kWhat, pc);
  Thread& self = *current_thread;
  mark(timeline::Kind::tensor_load, timeline::Edge::moment, access.column, span_of(access));
  const auto count = static_cast<uint32_t>(registers_of(shape, repeat));
  for (uint32_t i = 0; i < count; ++i) require_registers(at(i), kWhat, pc);
  AddressLane mine{address, offset, nullptr};
  meet_warp(mine, kWhat, pc, [&](const std::array<AddressLane*, kWarpSize>& lanes) {
    require_same(lanes, kWhat, pc);
    if (tensor_tracer == nullptr) return;
    const Actor actor = async_tracer->async_begin();
    for_each_range(access, [&](const TensorRange& range) {
      tensor_tracer->tensor_read(range, false, pc, actor);
    });
    of_warp(*current_thread).loads.push_back({actor, nullptr, {}});
  });
  TensorMemory& memory = tensor_memory(*self.block);
  for (uint32_t i = 0; i < count; ++i) {
    *at(i) = read_register(memory, access, self.lane, i);
    if (tensor_tracer == nullptr) continue;
    tensor_tracer->registers_pending(at(i), pc);
    thread_units(self).tmem_loads.push_back(at(i));
  }
}

void finish_stores(TensorMemory::PerWarp& warp) {
  for (TensorMemory::Operation& one : warp.stores) {
    if (!*one.done) one.store();
    *one.done = true;
  }
}

}  // namespace

// ---- for the other units ----

bool TensorMemory::is_allocated(uint32_t first, uint32_t columns) const {
  // Neighbouring allocations count as one range.
  for (uint32_t column = first; column < first + columns;) {
    const auto found =
        std::find_if(allocations.begin(), allocations.end(), [&](const Allocation& one) {
          return column >= one.first && column < one.first + one.columns;
        });
    if (found == allocations.end()) return false;
    column = found->first + found->columns;
  }
  return true;
}

TensorMemory& tensor_memory(Block& block) {
  std::unique_ptr<TensorMemory>& memory = block_units(block).tensor_memory;
  if (memory == nullptr) {
    memory = std::make_unique<TensorMemory>();
    memory->words.assign(size_t{kTmemLanes} * kTmemColumns, ~0u);
  }
  return *memory;
}

std::array<Block*, 2> blocks_of(int cta_group, const char* what, void* pc) {
  require_sm_100a(what, pc);
  Block& own = *current_thread->block;
  TensorMemory& memory = tensor_memory(own);
  if (memory.cta_group != 0 && memory.cta_group != cta_group) {
    fail_at(pc, "{}: the block uses cta_group {} and {}: a kernel has one of them", what,
            memory.cta_group, cta_group);
  }
  memory.cta_group = cta_group;
  if (cta_group == 1) return {&own, nullptr};
  const Group& group = *own.group;
  if (group.launch->cluster % 2 != 0) {
    fail_at(pc, "{}: cta_group 2 in a launch with clusters of {}: it needs pairs of blocks", what,
            group.launch->cluster);
  }
  const uint32_t even = own.index - own.rank + (own.rank & ~1u);
  return {group.blocks[even].get(), group.blocks[even + 1].get()};
}

void require_alive(const std::array<Block*, 2>& blocks, const char* what, void* pc) {
  for (const Block* block : blocks) {
    if (block != nullptr && block->alive == 0) {
      fail_at(pc, "{}: the other block of the pair has exited", what);
    }
  }
}

void require_allocated(Block& block, uint32_t first, uint32_t columns, const char* what, void* pc) {
  const TensorMemory& memory = tensor_memory(block);
  if (first + columns <= kTmemColumns && memory.is_allocated(first, columns)) return;
  fail_at(pc, "{}: columns {} to {} of tensor memory are not allocated{}", what, first,
          first + columns - 1, &block == current_thread->block ? "" : " in the other block");
}

void tmem_group_end(Group& group) {
  for (uint32_t b = 0; b < group.block_count; ++b) {
    Block& block = *group.blocks[b];
    if (block.unit_state == nullptr || block_units(block).tensor_memory == nullptr) continue;
    for (const TensorMemory::Allocation& one : block_units(block).tensor_memory->allocations) {
      fail_at(one.pc, "tcgen05.alloc: {} columns of block {} were not freed before its end, of",
              one.columns, triple(block.block_idx));
    }
  }
}

// ---- what kernels call ----

void tmem_alloc(uint32_t* smem, uint32_t columns, int cta_group) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_sm_100a("tcgen05.alloc", pc);
  require_own_shared(smem, "tcgen05.alloc", pc);
  if (reinterpret_cast<uintptr_t>(smem) % 4 != 0) {
    fail("tcgen05.alloc: the address in shared memory is not aligned to 4 bytes", pc);
  }
  AllocLane mine{columns, nullptr, false};
  meet_warp(mine, "tcgen05.alloc", pc,
            [&](const std::array<AllocLane*, kWarpSize>& lanes) { request(lanes, cta_group, pc); });
  Thread& self = *current_thread;
  TensorMemory& memory = tensor_memory(*self.block);
  while (!mine.request->granted) {
    memory.waiting.push_back(&self);
    block_current("tcgen05.alloc", pc);
  }
  if (self.lane != 0) return;
  mark(timeline::Kind::tensor_alloc, timeline::Edge::moment, mine.request->address, columns);
  *smem = mine.request->address;
  if (access_tracer != nullptr) access_tracer->unit_access(smem, 4, true, pc);
}

void tmem_relinquish(int cta_group) {
  void* const pc = COOKBOOK_SIMT_PC;
  blocks_of(cta_group, "tcgen05.relinquish_alloc_permit", pc);
  agree(0, 0, "tcgen05.relinquish_alloc_permit", pc,
        [] { tensor_memory(*current_thread->block).relinquished = true; });
}

void tmem_dealloc(uint32_t address, uint32_t columns, int cta_group) {
  void* const pc = COOKBOOK_SIMT_PC;
  constexpr const char* kWhat = "tcgen05.dealloc";
  const std::array<Block*, 2> blocks = blocks_of(cta_group, kWhat, pc);
  require_columns(columns, kWhat, pc);
  agree(address, columns, kWhat, pc, [&] {
    Block& block = *current_thread->block;
    TensorMemory& memory = tensor_memory(block);
    const auto found = std::find_if(
        memory.allocations.begin(), memory.allocations.end(), [&](const auto& allocation) {
          return allocation.first == (address & 0xffff) && allocation.columns == columns;
        });
    if (found == memory.allocations.end()) {
      fail_at(pc, "{}: no allocation of {} columns at column {}", kWhat, columns, address & 0xffff);
    }
    if (tensor_tracer != nullptr) {
      tensor_tracer->tensor_freed({&block, found->first, columns, 0xffff}, pc);
    }
    memory.allocations.erase(found);
    grant(blocks, cta_group);
  });
  mark(timeline::Kind::tensor_free, timeline::Edge::moment, address & 0xffff, columns);
}

void tmem_load(uint32_t* registers, uint32_t address, TmemShape shape, int repeat, bool pack,
               uint32_t offset) {
  load([registers](uint32_t i) { return registers + i; }, address, shape, repeat, pack, offset,
       COOKBOOK_SIMT_PC);
}

void tmem_load_to(uint32_t* const* registers, uint32_t address, TmemShape shape, int repeat,
                  bool pack, uint32_t offset) {
  load([registers](uint32_t i) { return registers[i]; }, address, shape, repeat, pack, offset,
       COOKBOOK_SIMT_PC);
}

void tmem_wait_load() {
  void* const pc = COOKBOOK_SIMT_PC;
  require_sm_100a("tcgen05.wait::ld", pc);
  agree(0, 0, "tcgen05.wait::ld", pc, [] {
    if (sync_tracer == nullptr) return;
    TensorMemory::PerWarp& warp = of_warp(*current_thread);
    for (const TensorMemory::Operation& one : warp.loads) {
      sync_tracer->release(&warp.load_object, one.actor);
      tensor_tracer->tensor_waited(one.actor);
    }
    warp.loads.clear();
  });
  if (sync_tracer == nullptr) return;
  Thread& self = *current_thread;
  for (const uint32_t* variable : thread_units(self).tmem_loads) {
    tensor_tracer->registers_arrived(variable);
  }
  thread_units(self).tmem_loads.clear();
  sync_tracer->acquire(&of_warp(self).load_object, self.actor);
}

void tmem_store(uint32_t address, const uint32_t* registers, TmemShape shape, int repeat,
                bool unpack, uint32_t offset) {
  void* const pc = COOKBOOK_SIMT_PC;
  constexpr const char* kWhat = "tcgen05.st";
  const Access access = checked_access(address, shape, repeat, unpack, offset, kWhat, pc);
  require_registers(registers, kWhat, pc);
  AddressLane mine{address, offset, registers};
  meet_warp(mine, kWhat, pc, [&](const std::array<AddressLane*, kWarpSize>& lanes) {
    require_same(lanes, kWhat, pc);
    const auto count = static_cast<uint32_t>(registers_of(shape, repeat));
    std::vector<uint32_t> values;
    for (const AddressLane* lane : lanes) {
      values.insert(values.end(), lane->registers, lane->registers + count);
    }
    Block& block = *current_thread->block;
    TensorMemory::Operation one{0, std::make_shared<bool>(false), {}};
    one.store = [access, count, values = std::move(values), memory = &tensor_memory(block)] {
      for (uint32_t t = 0; t < kWarpSize; ++t) {
        for (uint32_t i = 0; i < count; ++i) {
          write_register(*memory, access, t, i, values[t * count + i]);
        }
      }
    };
    if (tensor_tracer != nullptr) {
      one.actor = async_tracer->async_begin();
      for_each_range(access, [&](const TensorRange& range) {
        tensor_tracer->tensor_write(range, true, pc, one.actor);
      });
    }
    TensorMemory::PerWarp& warp = of_warp(*current_thread);
    warp.stores.push_back(one);
    defer([one] {
      if (!*one.done) one.store();
      *one.done = true;
    });
  });
}

void tmem_wait_store() {
  void* const pc = COOKBOOK_SIMT_PC;
  require_sm_100a("tcgen05.wait::st", pc);
  agree(0, 0, "tcgen05.wait::st", pc, [] {
    TensorMemory::PerWarp& warp = of_warp(*current_thread);
    finish_stores(warp);
    for (const TensorMemory::Operation& one : warp.stores) {
      if (sync_tracer == nullptr) break;
      sync_tracer->release(&warp.store_object, one.actor);
      tensor_tracer->tensor_waited(one.actor);
    }
    warp.stores.clear();
  });
  if (sync_tracer != nullptr) {
    sync_tracer->acquire(&of_warp(*current_thread).store_object, current_thread->actor);
  }
}

void tcgen05_fence_before_thread_sync() {
  require_sm_100a("tcgen05.fence", COOKBOOK_SIMT_PC);
  if (tensor_tracer != nullptr) tensor_tracer->tensor_before_fence();
}

void tcgen05_fence_after_thread_sync() {
  require_sm_100a("tcgen05.fence", COOKBOOK_SIMT_PC);
  if (tensor_tracer != nullptr) tensor_tracer->tensor_after_fence();
}

}  // namespace cookbook::simt
