// SPDX-License-Identifier: MIT
#include "common/backend/simt/runtime/convergence.hpp"

#include <algorithm>

#include "common/backend/device_bytes.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"

namespace cookbook::simt {

void lane_acted(void* pc, bool waited) {
  if (!sync_tracer) return;
  LanePath& path = current_thread->path;
  LanePath::Places& places = waited ? path.waited : path.acted;
  places.hash = mix_bits(places.hash ^ reinterpret_cast<uintptr_t>(pc));
  if (places.count < places.first.size()) places.first[places.count] = pc;
  ++places.count;
}

void lane_met(bool only_acts) {
  if (!sync_tracer) return;
  current_thread->path.acted.clear();
  if (!only_acts) current_thread->path.waited.clear();
}

void require_converged(const LanePath& path, const Thread& first, const char* operation, void* pc) {
  const Thread& self = *current_thread;
  const bool waited = path.waited.hash != self.path.waited.hash;
  if (!waited && path.acted.hash == self.path.acted.hash) return;
  const LanePath::Places& a = waited ? path.waited : path.acted;
  const LanePath::Places& b = waited ? self.path.waited : self.path.acted;
  const bool is_first = a.count >= b.count;  // the one that did more is the one that was alone
  const LanePath::Places& more = is_first ? a : b;
  const LanePath::Places& less = is_first ? b : a;
  size_t i = 0;
  while (i + 1 < std::min<size_t>(more.count, more.first.size()) && i < less.count &&
         more.first[i] == less.first[i]) {
    ++i;
  }
  sync_tracer->diverged(operation, is_first ? first : self, waited, more.first[i], pc);
}

}  // namespace cookbook::simt
