// SPDX-License-Identifier: MIT
// What a worker notes as wrong.
#include <fmt/format.h>
#include <unwind.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/backend/simt/runtime/control_flow.hpp"
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt::tracing {
namespace {

// Where the function was called that `pc` lies in; null where this stack does not show it.
void* caller_of(void* pc) {
  void* frames[CrashRecord::kMaxFrames];
  void** end = frames + walk_stack(frames, CrashRecord::kMaxFrames, false);
  void** at = std::find(frames, end, pc);
  return end - at > 1 ? at[1] : nullptr;
}

// A function on the stack, and where its caller calls it.
struct Called {
  void* function;
  void* pc;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* data) {
  constexpr size_t kMost = 4096;
  auto& stack = *static_cast<std::vector<Called>*>(data);
  const auto pc = reinterpret_cast<void*>(_Unwind_GetIP(context));
  if (pc == nullptr || stack.size() == kMost) return _URC_END_OF_STACK;
  if (!stack.empty()) stack.back().pc = pc;
  stack.push_back({reinterpret_cast<void*>(_Unwind_GetRegionStart(context)), nullptr});
  return _URC_NO_REASON;
}

}  // namespace

// A depth that no GPU has: without a recursion it is the backend's own nesting.
void WorkerTracer::deep_recursion() {
  constexpr int kMostLooks = 64;
  if (current_thread->call_depth % most_calls != 0 || recursed_ || !group_->traced) return;
  if (++looks_at_stacks_ > kMostLooks) return;
  const Thread& thread = *current_thread;
  const NoThread none;
  std::vector<Called> stack;
  _Unwind_Backtrace(&visit, &stack);
  std::map<void*, uint32_t> calls;  // of each function, but for those that leave nothing to do
  uint32_t all = 0;
  for (const Called& one : stack) {
    if (one.pc == nullptr) continue;
    const auto [at, is_new] = returns_after_.try_emplace(one.pc);
    if (is_new) at->second = returns_after(one.pc);
    if (at->second) continue;
    ++calls[one.function];
    ++all;
  }
  if (all < most_calls) return;
  const auto more = [](const auto& one, const auto& other) { return one.second < other.second; };
  const auto [function, count] = *std::max_element(calls.begin(), calls.end(), more);
  if (count < 4) return;
  const auto is_it = [f = function](const Called& one) { return one.function == f; };
  const auto innermost = std::find_if(stack.begin(), stack.end(), is_it);
  recursed_ = true;
  Occurrence& found = note(Kind::recursion, 0, innermost->pc, thread, Op::load);
  if (found.count == 1) found.detail = fmt::format("{} calls of {}", count, kernel_name(function));
}

void WorkerTracer::note_pair(Kind kind, const Thread& earlier, void* earlier_pc,
                             const char* operation, void* pc) {
  Occurrence& found = note(kind, token_of(earlier_pc), pc, *current_thread, Op::load);
  if (found.count != 1) return;
  found.earlier_thread = earlier.thread_idx;
  found.detail = operation;
}

void WorkerTracer::passed_without_exited(const Block& block, void* pc) {
  if (!block.group->traced) return;
  const NoThread none;
  const auto has_exited = [](const Thread& one) { return one.state == ThreadState::exited; };
  const Thread* const begin = block.threads;
  const Thread* const end = begin + block.thread_count;
  const Thread* const first = std::find_if(begin, end, has_exited);
  if (first == end || first->basic_block == 0) return;
  const uint32_t place = token_of(place_of_exit(*first));
  Occurrence& found =
      note(Kind::exited_before, place, pc, *block.barriers[0].places[0].first, Op::load);
  if (found.count != 1) return;
  found.earlier_thread = first->thread_idx;
  found.detail = fmt::format("{} of {}", std::count_if(first, end, has_exited), block.thread_count);
}

void WorkerTracer::lane_absent(uint32_t source, uint32_t mask, void* pc) {
  const Warp& warp = *current_thread->warp;
  Occurrence& found = note(Kind::absent_lane, 0, pc, *current_thread, Op::load);
  if (found.count != 1) return;
  const char* why = (warp.lanes >> source & 1) == 0   ? "which the block does not have"
                    : (mask >> source & 1) == 0       ? "which is not in the mask"
                    : (warp.alive >> source & 1) == 0 ? "which has exited"
                                                      : "which does not take part";
  found.detail = fmt::format("lane {}, {}", source, why);
}

void WorkerTracer::overflow(const std::string& operation, void* pc) {
  Occurrence& found = note(Kind::overflow, 0, pc, *current_thread, Op::load);
  if (found.count == 1) found.detail = operation;
}

Occurrence& WorkerTracer::note(Kind kind, uint32_t earlier, void* pc, const Thread& thread, Op op) {
  Occurrence& found = findings_[{launch_->kernel, kind, earlier, token_of(pc)}];
  if (found.count++ == 0) {
    found.group = group_id_;
    found.block = thread.block->block_idx;
    found.later_thread = thread.thread_idx;
    found.op = op;
    if (void* caller = caller_of(pc)) found.caller = token_of(caller);
  }
  return found;
}

uint3 WorkerTracer::thread_index(uint32_t linear) const {
  return index_in(launch_->block, linear % threads_per_block_);
}

void WorkerTracer::take_hazards() {
  for (const auto& [hazard_key, hazard] : detector_.hazards()) {
    Occurrence& found =
        findings_[{launch_->kernel, hazard.kind, hazard.earlier_pc, hazard.later_pc}];
    const uint64_t before = found.count;
    if (before == 0) {
      static_cast<HazardFacts&>(found) = hazard;
      found.group = group_id_;
      found.block = blocks_[hazard.later_thread / threads_per_block_];
      found.earlier_block = blocks_[hazard.earlier_thread / threads_per_block_];
      found.later_thread = thread_index(hazard.later_thread);
      found.earlier_thread = thread_index(hazard.earlier_thread);
      found.one_warp = is_one_warp(hazard.earlier_thread, hazard.later_thread);
      found.is_static = hazard.offset >= static_offset_;
      if (hazard.offset >= detector_.tensor_offset()) {
        found.is_static = false;
        const size_t at = hazard.offset - detector_.tensor_offset();
        const size_t lane = at / 4 / 512 % 4 * 32 + at % 4 * 8;
        found.detail =
            fmt::format("tensor memory, column {}, lanes {} to {}", at / 4 % 512, lane, lane + 7);
      }
      found.offset = found.is_static || shared_stride_ == 0 ? hazard.offset - static_offset_
                                                            : hazard.offset % shared_stride_;
    }
    found.count = before + hazard.count;
  }
  detector_.clear_hazards();
}

}  // namespace cookbook::simt::tracing
