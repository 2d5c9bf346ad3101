// SPDX-License-Identifier: MIT
// A wgmma of a warpgroup is computed once for all its 128 threads, after all have issued it: by the
// first thread that waits for it (late), by the last that issues it (early), at either time or
// while they wait (random). Accumulators are written then and not before, through the pointers that
// the threads passed. Those variables are still in scope, because the threads have not yet returned
// from their waits. A registers are copied at issue.
#include "common/device/wgmma.cuh"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/convergence.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/runtime/timeline.hpp"
#include "common/backend/simt/units/async_tracer.hpp"
#include "common/backend/simt/units/shared_operand.hpp"
#include "common/backend/simt/units/tensor_sum.hpp"
#include "common/backend/simt/units/wgmma_state.hpp"

namespace cookbook {
namespace simt {
namespace {

constexpr uint32_t kMaxDescribed = 0x3fff << 4;  // what a descriptor's 14-bit fields can say

void unpack_chunk(const char* bytes, Format format, float* values) {
  if (format == Format::e4m3) {
    for (int i = 0; i < 16; ++i) values[i] = e4m3_bits_to_float(static_cast<uint8_t>(bytes[i]));
    return;
  }
  uint16_t bits[8];
  std::memcpy(bits, bytes, 16);
  for (int i = 0; i < 8; ++i) {
    values[i] = format == Format::bf16 ? bf16_bits_to_float(bits[i]) : half_bits_to_float(bits[i]);
  }
}

SharedOperand operand_of(uint64_t descriptor, bool is_mn_major, Format format) {
  const auto layout = static_cast<uint32_t>(descriptor >> 62);
  const Swizzle swizzle = layout == 0 ? Swizzle::none : static_cast<Swizzle>(4 - layout);
  return {descriptor, swizzle, is_mn_major, format == Format::e4m3 ? 16u : 8u};
}
SharedOperand operand_a(const WgmmaShape& shape) {
  return operand_of(shape.desc_a, shape.a_is_mn_major, shape.format);
}
SharedOperand operand_b(const WgmmaShape& shape) {
  return operand_of(shape.desc_b, shape.b_is_mn_major, shape.format);
}

uint32_t depth_of(const WgmmaShape& shape) { return shape.format == Format::e4m3 ? 32 : 16; }

// Rows of the accumulator that thread `id` of the warpgroup has: row_of(id, 0) and row_of(id, 1).
uint32_t row_of(uint32_t id, uint32_t which) { return id / 32 * 16 + id % 32 / 4 + 8 * which; }

// Scratch of one wgmma: one at a time per OS thread.
struct WgmmaScratch {
  float a[64][32];   // (m, k)
  float b[32][256];  // (k, n)
  float d[256];      // a row of the accumulator
  TensorSums sums;
};

void load_operands(const WgmmaProduct& product, const Block& block, WgmmaScratch& scratch) {
  const WgmmaShape& shape = product.shape;
  const uint32_t depth = depth_of(shape);
  const char* base = shared_base(block);
  const auto transpose = [&](bool is_mn_major, auto&& at) {
    return [&, is_mn_major, at](uint32_t mn, uint32_t k, uint32_t address) {
      float values[16];
      unpack_chunk(base + address, shape.format, values);
      const uint32_t count = shape.format == Format::e4m3 ? 16 : 8;
      for (uint32_t i = 0; i < count; ++i) {
        at(is_mn_major ? mn + i : mn, is_mn_major ? k : k + i) = values[i];
      }
    };
  };
  operand_b(shape).for_each_chunk(
      0, static_cast<uint32_t>(shape.columns), depth,
      transpose(shape.b_is_mn_major,
                [&](uint32_t n, uint32_t k) -> float& { return scratch.b[k][n]; }));
  if (!shape.a_in_registers) {
    operand_a(shape).for_each_chunk(
        0, 64, depth, transpose(shape.a_is_mn_major, [&](uint32_t m, uint32_t k) -> float& {
          return scratch.a[m][k];
        }));
    return;
  }
  for (uint32_t id = 0; id < kWarpgroupThreads; ++id) {
    for (uint32_t r = 0; r < 4; ++r) {
      const uint32_t bits = product.a[id][r];
      const uint32_t k = id % 4 * 2 + 8 * (r / 2);
      for (uint32_t i = 0; i < 2; ++i) {
        const auto half = static_cast<uint16_t>(bits >> (16 * i));
        scratch.a[row_of(id, r % 2)][k + i] =
            shape.format == Format::bf16 ? bf16_bits_to_float(half) : half_bits_to_float(half);
      }
    }
  }
}

void execute(const WgmmaProduct& product, const Block& block) {
  static thread_local WgmmaScratch scratch;
  const WgmmaShape& shape = product.shape;
  load_operands(product, block, scratch);
  scratch.sums.set_b(sum_rule(shape.format, true, device_info().cc()), shape.format, shape.format,
                     scratch.b[0], 256, shape.columns, static_cast<int>(depth_of(shape)));
  for (uint32_t row = 0; row < 64; ++row) {
    const uint32_t which = row % 16 / 8;
    const uint32_t quad = row / 16 * 32 + row % 8 * 4;  // the first of the four threads of the row
    constexpr size_t pair = 2 * sizeof(float);          // a thread has two columns of every eight
    const auto for_each_pair = [&](auto&& visit) {
      for (uint32_t t = 0; t < 4; ++t) {
        float* sums = product.d[quad + t] + 2 * which;
        float* elements = scratch.d + 2 * t;
        for (int j = 0; j < shape.columns; j += 8) visit(sums + j / 2, elements + j);
      }
    };
    if (shape.accumulate) {
      for_each_pair([](float* sums, float* elements) { std::memcpy(elements, sums, pair); });
    } else {
      std::fill_n(scratch.d, shape.columns, 0.0f);
    }
    scratch.sums.add(scratch.a[row], scratch.d);
    for_each_pair([](float* sums, float* elements) { std::memcpy(sums, elements, pair); });
  }
}

void execute_until(Warpgroup& warpgroup, uint64_t end, const Block& block) {
  for (; warpgroup.executed < end; ++warpgroup.executed) {
    execute(*warpgroup.products[warpgroup.executed - warpgroup.first], block);
  }
}

void wake_waiting(Warpgroup& warpgroup) {
  for (Thread* waiting : warpgroup.waiting) make_ready(waiting);
  warpgroup.waiting.clear();
}

bool all_issued(const Warpgroup& warpgroup, uint64_t end) {
  return warpgroup.first + warpgroup.products.size() >= end &&
         (end == warpgroup.first ||
          warpgroup.products[end - 1 - warpgroup.first]->arrived == kWarpgroupThreads);
}

Warpgroup& current_warpgroup(void* pc) {
  require_sm_90a("wgmma", pc);
  const Thread& thread = *current_thread;
  Block& block = *thread.block;
  const uint32_t index = thread.id / kWarpgroupThreads;
  if ((index + 1) * kWarpgroupThreads > block.thread_count) {
    fail(
        "wgmma: this warp is not in a complete warpgroup (four warps, the first a multiple of "
        "four)",
        pc);
  }
  auto& warpgroups = block_units(block).warpgroups;
  if (warpgroups.size() <= index) warpgroups.resize(index + 1);
  if (warpgroups[index] == nullptr) warpgroups[index] = std::make_unique<Warpgroup>();
  return *warpgroups[index];
}

void require_operand(const SharedOperand& operand, uint32_t rows, uint32_t depth, const char* which,
                     void* pc) {
  const Block& block = *current_thread->block;
  const uint64_t end = operand.end_address(rows, depth);
  if (end > kDynamicSharedAddress + block.shared_bytes) {
    fail_at(
        pc,
        "wgmma: operand {} runs past the block's {} bytes of dynamic shared memory, to offset {}",
        which, block.shared_bytes, end - kDynamicSharedAddress);
  }
}

// Reads are reported to the tracer at issue, whenever they happen, so that memory that is released
// before the wait is a race. Each warp reports its rows of A and a quarter of B.
void record_reads(const WgmmaProduct& product, uint32_t warp, Actor actor) {
  const WgmmaShape& shape = product.shape;
  const char* base = shared_base(*current_thread->block);
  const uint32_t depth = depth_of(shape);
  uint32_t begin = 0, end = 0;  // of the piece that grows
  const auto flush = [&] {
    if (end > begin) {
      async_tracer->async_bulk(base + begin, end - begin, BulkUse::read, product.pc, actor);
    }
  };
  const auto visit = [&](uint32_t, uint32_t, uint32_t address) {
    if (address == end) {
      end += 16;
    } else if (address + 16 == begin) {
      begin = address;
    } else {
      flush();
      begin = address;
      end = address + 16;
    }
  };
  if (!shape.a_in_registers) {
    operand_a(shape).for_each_chunk(warp * 16, warp * 16 + 16, depth, visit);
  }
  const auto groups = static_cast<uint32_t>(shape.columns) / 8;  // of eight columns
  operand_b(shape).for_each_chunk(groups * warp / 4 * 8, groups * (warp + 1) / 4 * 8, depth, visit);
  flush();
}

// All lanes of the warpgroup execute one instruction, and those of a warp together.
void check_converged(WgmmaProduct& product, uint32_t warp, void* pc) {
  const Thread& self = *current_thread;
  if (product.pc != pc) {
    sync_tracer->different_places("wgmma", self.block->threads[self.id / kWarpgroupThreads * 128],
                                  product.pc, pc);
  }
  if (product.first[warp] == nullptr) {
    product.first[warp] = &self;
    product.path[warp] = self.path;
  } else {
    require_converged(product.path[warp], *product.first[warp], "wgmma", pc);
  }
}

void issue(float* d, const WgmmaShape& shape, const uint32_t* a, void* pc) {
  Thread& thread = *current_thread;
  Warpgroup& warpgroup = current_warpgroup(pc);
  WgmmaThreadState& state = thread_units(thread).wgmma;
  if (!state.fenced) fail("wgmma: no wgmma_fence() before the first wgmma", pc);
  require_registers(d, "wgmma", pc);
  if (a != nullptr) require_registers(a, "wgmma", pc);
  const uint32_t id = thread.id % kWarpgroupThreads;
  const uint64_t number = state.issued++;
  if (number == warpgroup.first + warpgroup.products.size()) {
    warpgroup.products.push_back(std::make_unique<WgmmaProduct>());
    WgmmaProduct& product = *warpgroup.products.back();
    product.shape = shape;
    product.pc = pc;
    if (shape.a_in_registers) product.a.resize(kWarpgroupThreads);
    const auto columns = static_cast<uint32_t>(shape.columns);
    require_operand(operand_b(shape), columns, depth_of(shape), "B", pc);
    if (!shape.a_in_registers) require_operand(operand_a(shape), 64, depth_of(shape), "A", pc);
  }
  WgmmaProduct& product = *warpgroup.products[number - warpgroup.first];
  if (product.shape != shape) {
    fail(
        "wgmma: this thread's wgmma differs from another's of the warpgroup (shape, descriptors "
        "or accumulate)",
        pc);
  }
  if (sync_tracer != nullptr) check_converged(product, id / 32, pc);
  product.d[id] = d;
  if (a != nullptr) std::memcpy(product.a[id].data(), a, 16);
  if (async_tracer != nullptr && product.actors[id / 32] == 0) {
    product.actors[id / 32] = async_tracer->async_begin();
    record_reads(product, id / 32, product.actors[id / 32]);
  }
  if (++product.arrived < kWarpgroupThreads) return;
  if (happens_now()) execute_until(warpgroup, number + 1, *thread.block);
  wake_waiting(warpgroup);
}

// Some thread has waited for all wgmma before `end`: their operands may be overwritten.
void release_until(Warpgroup& warpgroup, const WgmmaBatch& batch) {
  if (sync_tracer != nullptr) {
    for (; warpgroup.released < batch.end; ++warpgroup.released) {
      for (const Actor actor : warpgroup.products[warpgroup.released - warpgroup.first]->actors) {
        sync_tracer->release(&warpgroup.batch_object[batch.number % 16], actor);
      }
    }
  }
  warpgroup.released = std::max(warpgroup.released, batch.end);
  while (warpgroup.first < std::min(warpgroup.executed, warpgroup.released)) {
    warpgroup.products.pop_front();
    ++warpgroup.first;
  }
}

// The random schedule may let others run on before it executes what a thread already waits for; all
// threads of the warpgroup then wait. True if it does.
bool put_off(Warpgroup& warpgroup, uint64_t end, const Block* block) {
  if (async_schedule() != AsyncSchedule::random) return false;
  WgmmaProduct& last = *warpgroup.products[end - 1 - warpgroup.first];
  if (!last.waited_for) {
    last.waited_for = true;
    if (happens_now()) return false;
    last.put_off = true;
    defer([&warpgroup, end, block] {
      execute_until(warpgroup, end, *block);
      wake_waiting(warpgroup);
    });
  }
  return last.put_off;
}

}  // namespace

uint64_t wgmma_descriptor(Swizzle swizzle, const void* smem, uint32_t leading_bytes,
                          uint32_t stride_bytes) {
  void* const pc = COOKBOOK_SIMT_PC;
  if (find_shared_block(smem) != current_thread->block) {
    fail("wgmma_descriptor: the address is not in this block's dynamic shared memory", pc);
  }
  const uint32_t address = shared_address(smem);
  if (address % 16 != 0) {
    fail("wgmma_descriptor: the address is not aligned to 16 bytes", pc);
  }
  if (leading_bytes % 16 != 0 || stride_bytes % 16 != 0 || leading_bytes > kMaxDescribed ||
      stride_bytes > kMaxDescribed) {
    fail_at(pc, "wgmma_descriptor: byte offsets are multiples of 16 up to 262128, got {} and {}",
            leading_bytes, stride_bytes);
  }
  const uint64_t layout = swizzle == Swizzle::none ? 0 : 4 - static_cast<uint64_t>(swizzle);
  // Addresses beyond those of the own block's window are bits that a descriptor has no room for.
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{leading_bytes >> 4} << 16 |
         uint64_t{stride_bytes >> 4} << 32 | layout << 62;
}

void wgmma_shared_a(float* d, int columns, Format format, bool a_is_mn_major, bool b_is_mn_major,
                    uint64_t desc_a, uint64_t desc_b, bool accumulate) {
  issue(d, {columns, format, false, a_is_mn_major, b_is_mn_major, accumulate, desc_a, desc_b},
        nullptr, COOKBOOK_SIMT_PC);
}

void wgmma_register_a(float* d, int columns, Format format, bool b_is_mn_major, const uint32_t* a,
                      uint64_t desc_b, bool accumulate) {
  issue(d, {columns, format, true, false, b_is_mn_major, accumulate, 0, desc_b}, a,
        COOKBOOK_SIMT_PC);
}

void wgmma_wait(int pending_groups) {
  const MarkedWait marked(timeline::Kind::wait_wgmma, 0, static_cast<uint32_t>(pending_groups));
  void* const pc = COOKBOOK_SIMT_PC;
  Thread& thread = *current_thread;
  Warpgroup& warpgroup = current_warpgroup(pc);
  WgmmaThreadState& state = thread_units(thread).wgmma;
  while (state.pending.size() > static_cast<size_t>(pending_groups)) {
    const WgmmaBatch batch = state.pending.front();
    state.pending.pop_front();
    // The four warps execute a wgmma together, so it cannot end before all have issued it.
    while (warpgroup.executed < batch.end && !all_issued(warpgroup, batch.end)) {
      warpgroup.waiting.push_back(&thread);
      block_current("wgmma_wait (for other warps of the warpgroup to issue the same wgmma)", pc);
    }
    if (warpgroup.executed < batch.end && put_off(warpgroup, batch.end, thread.block)) {
      while (warpgroup.executed < batch.end) {
        warpgroup.waiting.push_back(&thread);
        block_current("wgmma_wait", pc);
      }
    }
    execute_until(warpgroup, batch.end, *thread.block);
    release_until(warpgroup, batch);
    if (sync_tracer != nullptr) {
      sync_tracer->acquire(&warpgroup.batch_object[batch.number % 16], thread.actor);
    }
  }
}

}  // namespace simt

using namespace simt;

void wgmma_fence() {
  current_warpgroup(COOKBOOK_SIMT_PC);
  thread_units(*current_thread).wgmma.fenced = true;
}

void wgmma_commit() {
  WgmmaThreadState& state = thread_units(*current_thread).wgmma;
  mark(timeline::Kind::commit_wgmma, timeline::Edge::moment);
  state.pending.push_back({state.committed, state.issued, state.batches++});
  state.committed = state.issued;
}

}  // namespace cookbook
