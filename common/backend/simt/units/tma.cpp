// SPDX-License-Identifier: MIT
// TMA. The data and bytes of a load arrive together, when the schedule says so. A store reads
// shared memory between its issue and wait_group.read, and writes global memory between that and
// wait_group.
#include "common/device/tma.cuh"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "common/backend/simt/runtime/convergence.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/runtime/timeline.hpp"
#include "common/backend/simt/units/async_tracer.hpp"
#include "common/backend/simt/units/bulk_add.hpp"
#include "common/backend/simt/units/mbarrier_tracer.hpp"
#include "common/backend/simt/units/numbers.hpp"
#include "common/backend/simt/units/state.hpp"
#include "common/backend/simt/units/tensor_map_tag.hpp"

namespace cookbook {
namespace simt {

// The box of a tensor that one instruction copies. A 1-D bulk copy is a tensor of one row.
struct Box {
  TensorMap map;
  Coordinates at;  // coordinates of its first element

  uint32_t row_bytes() const { return uint32_t{map.box[0]} * map.element_bytes; }
  uint32_t rows() const { return uint32_t{map.box[1]} * map.box[2] * map.box[3] * map.box[4]; }
  uint32_t bytes() const { return row_bytes() * rows(); }
};

// A row of a box: the part of it that is within the tensor, which may be nothing.
struct Row {
  char* global;    // address of the first byte within
  uint32_t skip;   // bytes of the row before it
  uint32_t bytes;  // within
};

struct BulkStore {
  Box box;
  const char* smem;
  bool add;
  bool was_read = false;
  bool was_written = false;
  std::vector<char> data;  // after it was read
  Actor actor = 0;
  bool released = false;
};

namespace {

Row row_of(const Box& box, uint32_t row) {
  const TensorMap& map = box.map;
  uint64_t address = map.base;
  for (int i = 1; i < 5; ++i) {
    const int64_t coordinate = box.at[static_cast<size_t>(i)] + row % map.box[i];
    row /= map.box[i];
    if (coordinate < 0 || coordinate >= static_cast<int64_t>(map.extents[i]))
      return {nullptr, 0, 0};
    address += static_cast<uint64_t>(coordinate) * map.strides[i - 1];
  }
  const int64_t first = std::max<int64_t>(box.at[0], 0);
  const int64_t end =
      std::min<int64_t>(box.at[0] + map.box[0], static_cast<int64_t>(map.extents[0]));
  if (first >= end) return {nullptr, 0, 0};
  address += static_cast<uint64_t>(first) * map.element_bytes;
  return {reinterpret_cast<char*>(address),
          static_cast<uint32_t>(first - box.at[0]) * map.element_bytes,
          static_cast<uint32_t>(end - first) * map.element_bytes};
}

// A row as a store writes it: in whole units of 16 bytes, so that a row of another length is
// followed by up to 15 bytes of what the box has next. Measured on an H200, for elements of 1, 2
// and 4 bytes and every swizzle; PTX says that bytes out of bounds are not written.
Row stored_row_of(const Box& box, uint32_t row) {
  Row result = row_of(box, row);
  const uint32_t units = (result.bytes + 15) / 16;
  result.bytes = std::min(units * 16, box.row_bytes() - result.skip);
  return result;
}

// Shared memory of byte `offset` (a multiple of 16) of a tile that begins at `smem`. Dynamic shared
// memory is aligned so that host addresses have the bits that matter of shared addresses.
template <class T>
T* swizzled(T* smem, uint32_t offset, uint8_t swizzle) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(smem) + offset;
  if (swizzle == kSwizzleOf32Bytes) return reinterpret_cast<T*>(address ^ ((address >> 2) & 96));
  const uintptr_t mask = swizzle_span_bytes(static_cast<Swizzle>(swizzle)) - 16;
  return reinterpret_cast<T*>(address ^ ((address >> 3) & mask));
}

void copy_in(const Box& box, char* smem) {
  const uint32_t row_bytes = box.row_bytes();
  std::vector<char> line(row_bytes);
  for (uint32_t r = 0; r < box.rows(); ++r) {
    const Row row = row_of(box, r);
    const char* source = row.global;
    if (row.bytes != row_bytes) {
      std::fill(line.begin(), line.end(), char{0});
      if (row.bytes != 0) std::memcpy(line.data() + row.skip, row.global, row.bytes);
      source = line.data();
    }
    if (box.map.swizzle == 0) {
      std::memcpy(smem + size_t{r} * row_bytes, source, row_bytes);
      continue;
    }
    for (uint32_t b = 0; b < row_bytes; b += 16) {
      std::memcpy(swizzled(smem, r * row_bytes + b, box.map.swizzle), source + b, 16);
    }
  }
}

void read_shared(BulkStore& store) {
  if (store.was_read) return;
  const uint32_t bytes = store.box.bytes();
  store.data.resize(bytes);
  for (uint32_t b = 0; b < bytes; b += 16) {
    std::memcpy(store.data.data() + b, swizzled(store.smem, b, store.box.map.swizzle), 16);
  }
  store.was_read = true;
}

template <class T>
void add_element(char* to, const char* from) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  T addend;
  std::memcpy(static_cast<void*>(&addend), from, sizeof addend);
  auto* target = reinterpret_cast<Bits*>(to);
  Bits old = __atomic_load_n(target, __ATOMIC_RELAXED), sum;
  do {
    sum = reinterpret<Bits>(reinterpret<T>(old) + addend);
  } while (
      !__atomic_compare_exchange_n(target, &old, sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void add_row(TensorType type, char* to, const char* from, uint32_t bytes, uint32_t step) {
  for (uint32_t b = 0; b < bytes; b += step) {
    switch (type) {
      case TensorType::f32: add_element<float>(to + b, from + b); break;
      case TensorType::bf16: add_element<__nv_bfloat16>(to + b, from + b); break;
      case TensorType::f16: add_element<__half>(to + b, from + b); break;
      case TensorType::u64: add_element<uint64_t>(to + b, from + b); break;
      default: add_element<uint32_t>(to + b, from + b);  // u32, s32: others were rejected at issue
    }
  }
}

void write_global(BulkStore& store) {
  if (store.was_written) return;
  read_shared(store);
  const Box& box = store.box;
  for (uint32_t r = 0; r < box.rows(); ++r) {
    const Row row = stored_row_of(box, r);
    if (row.bytes == 0) continue;
    const char* from = store.data.data() + size_t{r} * box.row_bytes() + row.skip;
    if (store.add) {
      add_row(static_cast<TensorType>(box.map.type), row.global, from, row.bytes,
              box.map.element_bytes);
    } else {
      std::memcpy(row.global, from, row.bytes);
    }
  }
  store.was_written = true;
  store.data = {};
}

void require_map(const TensorMap* map, int rank, const char* what, void* pc) {
  require_capability(90, what, pc);
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0) {
    fail_at(pc, "{}: the tensor map is not aligned to 64 bytes", what);
  }
  if (map->tag != kTensorMapTag) {
    fail_at(pc, "{}: the tensor map was not made by make_tensor_map", what);
  }
  if (rank != 0 && map->rank != rank) {
    fail_at(pc, "{}: the tensor map has {} dimensions", what, map->rank);
  }
  if (rank != 0 && !current_thread->block->previous_ended) {  // 0: a prefetch of the map
    fail_at(pc, "{} in a dependent launch before wait_for_previous_launch()", what);
  }
}

// A box may be partly out of bounds, but its rows must begin on 16-byte boundaries of the tensor's.
// PTX does not say so; an H200 answers "an illegal instruction was encountered" (the rule was found
// by triton-lang/triton, issue 7385).
void require_start(const Box& box, const char* what, void* pc) {
  const int64_t bytes = box.at[0] * box.map.element_bytes;
  if (bytes % 16 != 0) {
    fail_at(pc, "{}: innermost coordinate {} is {} bytes into the row: must be a multiple of 16",
            what, box.at[0], bytes);
  }
}

void require_tile(const Box& box, const void* smem, unsigned alignment, const char* what,
                  void* pc) {
  require_own_shared(smem, what, pc);
  if (reinterpret_cast<uintptr_t>(smem) % alignment != 0) {
    fail_at(pc, "{}: the address in shared memory is not aligned to {} bytes", what, alignment);
  }
  const Block* owner = find_shared_block(smem);
  if (owner == nullptr) return;
  const auto offset = static_cast<size_t>(static_cast<const char*>(smem) - owner->shared);
  if (offset + box.bytes() > owner->shared_bytes) {
    fail_at(pc, "{}: {} bytes at offset {} run past the block's {} bytes of dynamic shared memory",
            what, box.bytes(), offset, owner->shared_bytes);
  }
}

// Tells the tracer about the global side of an operation, row by row.
void record_global(const Box& box, BulkUse use, void* pc, Actor actor) {
  for (uint32_t r = 0; r < box.rows(); ++r) {
    const Row row = use == BulkUse::read ? row_of(box, r) : stored_row_of(box, r);
    if (row.bytes == 0) continue;
    async_tracer->async_bulk(row.global, row.bytes, use, pc, actor);
  }
}

// Of a store, or of an addition of elements of the box's type.
BulkUse store_use(const Box& box, bool add) {
  if (!add) return BulkUse::write;
  const auto type = static_cast<TensorType>(box.map.type);
  const bool rounds =
      type == TensorType::f32 || type == TensorType::bf16 || type == TensorType::f16;
  return rounds ? BulkUse::add_rounded : BulkUse::add;
}

void start_load(const Box& box, char* smem, uint64_t* bar, bool first, const char* what, void* pc) {
  Group& group = *current_thread->block->group;
  find_mbarrier(group, bar, what, pc);
  Actor actor = 0;
  if (async_tracer != nullptr) {
    actor = async_tracer->async_begin();
    if (first)
      record_global(box, BulkUse::read, pc, actor);  // a multicast reads global memory once
    async_tracer->async_bulk(smem, box.bytes(), BulkUse::write, pc, actor);
    mbarrier_tracer->mbarrier_use(bar, actor, true, pc);
  }
  lane_acted(pc);
  const Block& from = *current_thread->block;
  defer([box, smem, bar, actor, what, pc, &from, &group] {
    Mbarrier& barrier = find_mbarrier(group, bar, what, pc);
    copy_in(box, smem);
    mbarrier_complete_bytes(barrier, box.bytes(), actor, from, Signal::bulk_copy, pc);
  });
}

// The box that a load copies, after the checks.
Box box_to_load(const void* smem, const TensorMap* map, const Coordinates& at, int rank,
                const char* what, void* pc) {
  require_map(map, rank, what, pc);
  const Box box{*map, at};
  require_start(box, what, pc);
  require_tile(box, smem, 128, what, pc);
  return box;
}

void load(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at, int rank,
          const char* what, void* pc) {
  const Box box = box_to_load(smem, map, at, rank, what, pc);
  require_own_shared(bar, what, pc);
  start_load(box, static_cast<char*>(smem), bar, true, what, pc);
}

// For each block of the mask: copies to `smem`'s offset there and signals `bar_of(rank)`.
template <class BarOf>
void start_multicast(const Box& box, void* smem, uint16_t mask, const char* what, void* pc,
                     const BarOf& bar_of) {
  if (mask == 0) fail_at(pc, "{}: the mask names no block", what);
  bool first = true;
  for (uint32_t rank_to = 0; rank_to < 16; ++rank_to) {
    if ((mask >> rank_to & 1) == 0) continue;
    start_load(box, static_cast<char*>(map_to_rank(smem, rank_to, what, pc)), bar_of(rank_to),
               first, what, pc);
    first = false;
  }
}

// The rank of the block that has `bar`, which is one of the caller's pair.
uint32_t rank_in_pair(const uint64_t* bar, const char* what, void* pc) {
  require_sm_100a(what, pc);
  const Block& own = *current_thread->block;
  const Block* owner = find_shared_block(bar);
  if (owner == nullptr || (owner->rank ^ own.rank) > 1) {
    fail_at(pc, "{}: the mbarrier is in neither block of the pair's dynamic shared memory", what);
  }
  return owner->rank;
}

void load_multicast(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at,
                    int rank, uint16_t mask, const char* what, void* pc) {
  require_capability(90, what, pc);
  const Box box = box_to_load(smem, map, at, rank, what, pc);
  require_own_shared(bar, what, pc);
  start_multicast(box, smem, mask, what, pc, [&](uint32_t rank_to) {
    return static_cast<uint64_t*>(map_to_rank(bar, rank_to, what, pc));
  });
}

void start_store(const Box& box, const void* smem, unsigned alignment, bool add, const char* what,
                 void* pc) {
  require_tile(box, smem, alignment, what, pc);
  lane_acted(pc);
  auto store = std::make_shared<BulkStore>();
  store->box = box;
  store->smem = static_cast<const char*>(smem);
  store->add = add;
  if (async_tracer != nullptr) {
    store->actor = async_tracer->async_begin();
    async_tracer->async_bulk(smem, box.bytes(), BulkUse::read, pc, store->actor);
    record_global(box, store_use(box, add), pc, store->actor);
  }
  if (async_schedule() == AsyncSchedule::early) write_global(*store);
  if (async_schedule() == AsyncSchedule::random) {
    defer([store] { read_shared(*store); });
    defer([store] { write_global(*store); });
  }
  thread_units(*current_thread).bulk.open.push_back(std::move(store));
}

void store(const TensorMap* map, const void* smem, Coordinates at, int rank, bool add,
           const char* what, void* pc) {
  require_map(map, rank, what, pc);
  const auto type = static_cast<TensorType>(map->type);
  if (add && (type == TensorType::u8 || type == TensorType::u16 || type == TensorType::s64 ||
              type == TensorType::f64)) {
    fail_at(pc, "{}: the tensor's type has no addition", what);
  }
  require_start({*map, at}, what, pc);
  start_store({*map, at}, smem, 128, add, what, pc);
}

Box contiguous(const void* gmem, const void* smem, uint32_t bytes, const char* what, void* pc) {
  require_capability(90, what, pc);
  if (bytes % 16 != 0) {
    fail_at(pc, "{}: the size must be a multiple of 16 bytes, got {}", what, bytes);
  }
  if (reinterpret_cast<uintptr_t>(gmem) % 16 != 0 || reinterpret_cast<uintptr_t>(smem) % 16 != 0) {
    fail_at(pc, "{}: an address is not aligned to 16 bytes", what);
  }
  if (bytes / 16 > 0xffff) {
    fail_at(pc, "{}: {} bytes do not fit in shared memory", what, bytes);
  }
  Box box{};  // one row of 16-byte elements
  box.map.base = reinterpret_cast<uintptr_t>(gmem);
  box.map.element_bytes = 16;
  box.map.rank = 1;
  std::fill(std::begin(box.map.box), std::end(box.map.box), uint16_t{1});
  std::fill(std::begin(box.map.extents), std::end(box.map.extents), uint64_t{1});
  box.map.box[0] = static_cast<uint16_t>(bytes / 16);
  box.map.extents[0] = bytes / 16;
  return box;
}

}  // namespace

void tma_load(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at, int rank) {
  load(smem, map, bar, at, rank, "cp.async.bulk.tensor", COOKBOOK_SIMT_PC);
}

void tma_multicast(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at, int rank,
                   uint16_t mask) {
  load_multicast(smem, map, bar, at, rank, mask, "cp.async.bulk.tensor", COOKBOOK_SIMT_PC);
}

void tma_load_pair(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at,
                   int rank) {
  void* const pc = COOKBOOK_SIMT_PC;
  constexpr const char* kWhat = "cp.async.bulk.tensor with cta_group::2";
  rank_in_pair(bar, kWhat, pc);
  const Box box = box_to_load(smem, map, at, rank, kWhat, pc);
  start_load(box, static_cast<char*>(smem), bar, true, kWhat, pc);
}

void tma_multicast_pair(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at,
                        int rank, uint16_t mask) {
  void* const pc = COOKBOOK_SIMT_PC;
  constexpr const char* kWhat = "cp.async.bulk.tensor with cta_group::2";
  const uint32_t parity = rank_in_pair(bar, kWhat, pc) & 1;
  const Box box = box_to_load(smem, map, at, rank, kWhat, pc);
  start_multicast(box, smem, mask, kWhat, pc, [&](uint32_t rank_to) {
    return static_cast<uint64_t*>(map_to_rank(bar, (rank_to & ~1u) | parity, kWhat, pc));
  });
}

void tma_store(const TensorMap* map, const void* smem, const Coordinates& at, int rank, bool add) {
  store(map, smem, at, rank, add, "cp.async.bulk.tensor", COOKBOOK_SIMT_PC);
}

void bulk_wait(int pending_groups, bool only_reads) {
  const MarkedWait marked(timeline::Kind::wait_stores, 0, static_cast<uint32_t>(pending_groups));
  Thread& thread = *current_thread;
  BulkStoreState& state = thread_units(thread).bulk;
  const auto keep = static_cast<size_t>(pending_groups);
  if (state.groups.size() <= keep) return;
  const size_t count = state.groups.size() - keep;
  for (size_t i = 0; i < count; ++i) {
    for (const std::shared_ptr<BulkStore>& store : state.groups[i]) {
      if (only_reads) {
        read_shared(*store);
      } else {
        write_global(*store);
      }
      if (sync_tracer != nullptr && !store->released) sync_tracer->release(&state, store->actor);
      store->released = true;
    }
  }
  if (sync_tracer != nullptr) sync_tracer->acquire(&state, thread.actor);
  // Groups of which only the source was read stay in the list, but not without bound: a persistent
  // kernel may never wait for their writes.
  constexpr size_t kMaxRead = 8;
  const size_t done = only_reads ? (count > kMaxRead ? count - kMaxRead : 0) : count;
  for (size_t i = 0; i < done; ++i) {
    for (const std::shared_ptr<BulkStore>& store : state.groups.front()) write_global(*store);
    state.groups.pop_front();
  }
}

void bulk_thread_exit(Thread& thread) {
  BulkStoreState& state = thread_units(thread).bulk;
  state.groups.push_back(std::exchange(state.open, {}));
  for (const auto& group : state.groups) {
    for (const std::shared_ptr<BulkStore>& store : group) write_global(*store);
  }
  state.groups.clear();
}

}  // namespace simt

using namespace simt;

void tma_prefetch_descriptor(const TensorMap* map) {
  require_map(map, 0, "tma_prefetch_descriptor", COOKBOOK_SIMT_PC);
}

void tma_load_1d(void* smem, const TensorMap* map, uint64_t* bar, int x, CachePolicy) {
  load(smem, map, bar, {x}, 1, "tma_load_1d", COOKBOOK_SIMT_PC);
}

void tma_load_2d(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, CachePolicy) {
  load(smem, map, bar, {x, y}, 2, "tma_load_2d", COOKBOOK_SIMT_PC);
}

void tma_load_3d(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z,
                 CachePolicy) {
  load(smem, map, bar, {x, y, z}, 3, "tma_load_3d", COOKBOOK_SIMT_PC);
}

void tma_load_4d(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z, int w,
                 CachePolicy) {
  load(smem, map, bar, {x, y, z, w}, 4, "tma_load_4d", COOKBOOK_SIMT_PC);
}

void tma_load_5d(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z, int w, int v,
                 CachePolicy) {
  load(smem, map, bar, {x, y, z, w, v}, 5, "tma_load_5d", COOKBOOK_SIMT_PC);
}

void tma_load_2d_multicast(void* smem, const TensorMap* map, uint64_t* bar, int x, int y,
                           uint16_t mask, CachePolicy) {
  load_multicast(smem, map, bar, {x, y}, 2, mask, "tma_load_2d_multicast", COOKBOOK_SIMT_PC);
}

void tma_load_4d_multicast(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z,
                           int w, uint16_t mask, CachePolicy) {
  load_multicast(smem, map, bar, {x, y, z, w}, 4, mask, "tma_load_4d_multicast", COOKBOOK_SIMT_PC);
}

void tma_store_2d(const TensorMap* map, const void* smem, int x, int y) {
  store(map, smem, {x, y}, 2, false, "tma_store_2d", COOKBOOK_SIMT_PC);
}

void tma_store_3d(const TensorMap* map, const void* smem, int x, int y, int z) {
  store(map, smem, {x, y, z}, 3, false, "tma_store_3d", COOKBOOK_SIMT_PC);
}

void tma_store_add_2d(const TensorMap* map, const void* smem, int x, int y) {
  store(map, smem, {x, y}, 2, true, "tma_store_add_2d", COOKBOOK_SIMT_PC);
}

void tma_store_commit() {
  BulkStoreState& state = thread_units(*current_thread).bulk;
  mark(timeline::Kind::commit_stores, timeline::Edge::moment);
  state.groups.push_back(std::exchange(state.open, {}));
}

void bulk_load(void* smem, const void* gmem, uint32_t bytes, uint64_t* bar, CachePolicy) {
  void* const pc = COOKBOOK_SIMT_PC;
  const Box box = contiguous(gmem, smem, bytes, "bulk_load", pc);
  require_tile(box, smem, 16, "bulk_load", pc);
  require_own_shared(bar, "bulk_load", pc);
  start_load(box, static_cast<char*>(smem), bar, true, "bulk_load", pc);
}

void bulk_store(void* gmem, const void* smem, uint32_t bytes) {
  void* const pc = COOKBOOK_SIMT_PC;
  start_store(contiguous(gmem, smem, bytes, "bulk_store", pc), smem, 16, false, "bulk_store", pc);
}

void bulk_store_add(float* gmem, const void* smem, uint32_t floats) {
  void* const pc = COOKBOOK_SIMT_PC;
  Box box = contiguous(gmem, smem, floats * uint32_t{sizeof(float)}, "bulk_store_add", pc);
  box.map.type = static_cast<uint8_t>(TensorType::f32);
  box.map.element_bytes = sizeof(float);  // in place of 16 bytes
  box.map.box[0] = static_cast<uint16_t>(floats);
  box.map.extents[0] = floats;
  start_store(box, smem, 16, true, "bulk_store_add", pc);
}

void fence_proxy_async() {
  require_capability(90, "fence_proxy_async", COOKBOOK_SIMT_PC);
  if (async_tracer != nullptr) async_tracer->proxy_fence();
}

// The tracer follows the proxies in shared memory only, which this fence does nothing for.
void fence_proxy_async_global() {
  require_capability(90, "fence_proxy_async_global", COOKBOOK_SIMT_PC);
}

}  // namespace cookbook
