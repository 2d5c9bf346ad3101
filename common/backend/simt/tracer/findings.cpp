// SPDX-License-Identifier: MIT
// What a worker notes as wrong.
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt::tracing {

void WorkerTracer::different_places(const char* operation, const Thread& first, void* first_pc,
                                    void* pc) {
  Occurrence& found =
      note(Kind::different_places, token_of(first_pc), pc, *current_thread, Op::load);
  if (found.count != 1) return;
  found.earlier_thread = first.thread_idx;
  found.detail = operation;
}

void WorkerTracer::diverged(const char* operation, const Thread& alone, bool waited, void* alone_pc,
                            void* pc) {
  const Kind kind = waited ? Kind::waited_alone : Kind::acted_alone;
  Occurrence& found = note(kind, token_of(alone_pc), pc, *current_thread, Op::load);
  if (found.count != 1) return;
  found.earlier_thread = alone.thread_idx;
  found.detail = operation;
}

void WorkerTracer::overflow(const std::string& operation, const char* type, void* pc) {
  Occurrence& found = note(Kind::overflow, 0, pc, *current_thread, Op::load);
  if (found.count == 1) found.detail = operation + ", which does not fit in " + type + ",";
}

Occurrence& WorkerTracer::note(Kind kind, uint32_t earlier, void* pc, const Thread& thread, Op op) {
  Occurrence& found = findings_[{launch_->kernel, kind, earlier, token_of(pc)}];
  if (found.count++ == 0) {
    found.group = group_id_;
    found.block = thread.block->block_idx;
    found.later_thread = thread.thread_idx;
    found.op = op;
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
    if (found.count == 0) {
      found.group = group_id_;
      found.block = blocks_[hazard.later_thread / threads_per_block_];
      found.earlier_block = blocks_[hazard.earlier_thread / threads_per_block_];
      found.later_thread = thread_index(hazard.later_thread);
      found.earlier_thread = thread_index(hazard.earlier_thread);
      found.earlier_async = hazard.earlier_async;
      found.later_async = hazard.later_async;
      found.earlier_atomic = hazard.earlier_atomic;
      found.later_atomic = hazard.later_atomic;
      found.idle_wait = hazard.idle_wait_pc;
      found.write = hazard.write;
      found.is_static = hazard.offset >= static_offset_;
      found.offset = found.is_static || shared_stride_ == 0 ? hazard.offset - static_offset_
                                                            : hazard.offset % shared_stride_;
    }
    found.count += hazard.count;
  }
  detector_.clear_hazards();
}

}  // namespace cookbook::simt::tracing
