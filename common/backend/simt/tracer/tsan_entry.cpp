// SPDX-License-Identifier: MIT
//
// The functions that g++ calls from code compiled with -fsanitize=thread
// -fsanitize-coverage=trace-pc. Objects compiled so are linked without -fsanitize, against these
// instead of the sanitizer's runtime. Host code of the same files calls them too: outside of a CUDA
// thread they only do what an atomic operation must do.
#include <cstdint>
#include <cstring>

#include "common/backend/simt/runtime/internal.hpp"
#include "common/backend/simt/tracer/instrumentation.hpp"
#include "common/backend/simt/tracer/library_code.hpp"

namespace {

using cookbook::simt::FlagUse;
using cookbook::simt::Op;
using cookbook::simt::Thread;

inline bool tracing(const void* pc) {
  const Thread* thread = cookbook::simt::current_thread;
  return thread != nullptr && cookbook::simt::hooks != nullptr && thread->block->group->traced &&
         !cookbook::simt::library_code.contains(pc);
}

inline void scalar(const volatile void* address, unsigned bytes, Op op, void* pc, bool natural) {
  if (!tracing(pc)) return;
  cookbook::simt::trace_access(*cookbook::simt::current_thread,
                               reinterpret_cast<uintptr_t>(address), bytes, op, natural, pc);
}

/// A volatile access of a naturally aligned type: a flag, if it is in global memory.
inline void flag(const volatile void* address, unsigned bytes, Op op, void* pc) {
  if (!tracing(pc)) return;
  cookbook::simt::trace_flag_access(*cookbook::simt::current_thread,
                                    reinterpret_cast<uintptr_t>(address), bytes, op,
                                    FlagUse::volatile_access, false, pc);
}

/// An atomic, which `perform` performs.
template <class F>
auto atomic(const volatile void* address, unsigned bytes, int order, void* pc, F&& perform,
            FlagUse use = FlagUse::atomic) {
  if (!tracing(pc)) return perform();
  Thread& thread = *cookbook::simt::current_thread;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const bool releases =
      order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
  cookbook::simt::trace_flag_access(thread, at, bytes, Op::atomic, use, releases, pc);
  const auto result = perform();
  cookbook::simt::trace_flag_read(thread, at);
  return result;
}

/// An access of a type less aligned than its size. One of at most 16 bytes counts as a whole, a
/// larger one as the widest pieces that fit.
void range(const void* address, size_t bytes, Op op, void* pc) {
  if (!tracing(pc) || bytes == 0) return;
  Thread& thread = *cookbook::simt::current_thread;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  size_t piece = bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
  if (bytes == 2) piece = 2;
  if (bytes == 12) piece = 4;
  for (size_t at = 0; at < bytes; at += piece) {
    cookbook::simt::trace_access(thread, begin + at, static_cast<unsigned>(piece), op, false, pc,
                                 static_cast<unsigned>(at / piece) & 0xff);
  }
}

// libgcc and libstdc++ provide 16-byte atomics only with -latomic; fibers of one worker run one at
// a time, and nothing in the book uses them across blocks.
template <class T>
T load_value(const volatile T* p) {
  if constexpr (sizeof(T) == 16) {
    return *p;
  } else {
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);
  }
}
template <class T>
bool compare_exchange(volatile T* p, T* expected, T value) {
  if constexpr (sizeof(T) == 16) {
    const T old = *p;
    if (old == *expected) {
      *p = value;
      return true;
    }
    *expected = old;
    return false;
  } else {
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
  }
}
template <class T, class F>
T update(volatile T* p, F&& f) {
  T old = load_value(p);
  while (!compare_exchange(p, &old, static_cast<T>(f(old)))) {
  }
  return old;
}

}  // namespace

#define CALLER __builtin_return_address(0)

#define ACCESS(N)                                                                              \
  void __tsan_read##N(void* p) { scalar(p, N, Op::load, CALLER, true); }                       \
  void __tsan_write##N(void* p) { scalar(p, N, Op::store, CALLER, true); }                     \
  void __tsan_read_write##N(void* p) {                                                         \
    scalar(p, N, Op::load, CALLER, true);                                                      \
    scalar(p, N, Op::store, CALLER, true);                                                     \
  }                                                                                            \
  void __tsan_unaligned_read##N(void* p) { scalar(p, N, Op::load, CALLER, false); }            \
  void __tsan_unaligned_write##N(void* p) { scalar(p, N, Op::store, CALLER, false); }          \
  void __tsan_unaligned_read_write##N(void* p) {                                               \
    scalar(p, N, Op::load, CALLER, false);                                                     \
    scalar(p, N, Op::store, CALLER, false);                                                    \
  }                                                                                            \
  void __tsan_volatile_read##N(void* p) { flag(p, N, Op::load, CALLER); }                      \
  void __tsan_volatile_write##N(void* p) { flag(p, N, Op::store, CALLER); }                    \
  void __tsan_unaligned_volatile_read##N(void* p) { scalar(p, N, Op::load, CALLER, false); }   \
  void __tsan_unaligned_volatile_write##N(void* p) { scalar(p, N, Op::store, CALLER, false); } \
  void __tsan_read##N##_pc(void* p, void* pc) { scalar(p, N, Op::load, pc, true); }            \
  void __tsan_write##N##_pc(void* p, void* pc) { scalar(p, N, Op::store, pc, true); }

#define FETCH(BITS, T, NAME, EXPRESSION)                                       \
  T __tsan_atomic##BITS##_fetch_##NAME(volatile T* p, T value, int order) {    \
    return atomic(p, BITS / 8, order, CALLER, [=] {                            \
      return update(p, [value](T old) { return static_cast<T>(EXPRESSION); }); \
    });                                                                        \
  }

#define COMPARE_EXCHANGE(BITS, T, NAME)                                                  \
  int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile T* p, T* expected, T value, \
                                                    int order, int) {                    \
    return atomic(p, BITS / 8, order, CALLER,                                            \
                  [=] { return compare_exchange(p, expected, value); });                 \
  }

#define ATOMIC(BITS, T)                                                                          \
  T __tsan_atomic##BITS##_load(const volatile T* p, int) {                                       \
    return atomic(                                                                               \
        p, BITS / 8, __ATOMIC_RELAXED, CALLER, [=] { return load_value(p); },                    \
        FlagUse::atomic_load);                                                                   \
  }                                                                                              \
  void __tsan_atomic##BITS##_store(volatile T* p, T value, int order) {                          \
    atomic(p, BITS / 8, order, CALLER, [=] { return update(p, [value](T) { return value; }); }); \
  }                                                                                              \
  T __tsan_atomic##BITS##_exchange(volatile T* p, T value, int order) {                          \
    return atomic(p, BITS / 8, order, CALLER,                                                    \
                  [=] { return update(p, [value](T) { return value; }); });                      \
  }                                                                                              \
  FETCH(BITS, T, add, old + value)                                                               \
  FETCH(BITS, T, sub, old - value)                                                               \
  FETCH(BITS, T, and, old& value)                                                                \
  FETCH(BITS, T, or, old | value)                                                                \
  FETCH(BITS, T, xor, old ^ value)                                                               \
  FETCH(BITS, T, nand, ~(old & value))                                                           \
  COMPARE_EXCHANGE(BITS, T, strong)                                                              \
  COMPARE_EXCHANGE(BITS, T, weak)                                                                \
  T __tsan_atomic##BITS##_compare_exchange_val(volatile T* p, T expected, T value, int order,    \
                                               int) {                                            \
    atomic(p, BITS / 8, order, CALLER,                                                           \
           [=, &expected] { return compare_exchange(p, &expected, value); });                    \
    return expected;                                                                             \
  }

extern "C" {

void __sanitizer_cov_trace_pc() {
  if (tracing(CALLER)) cookbook::simt::bb_park(CALLER);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {
  if (Thread* thread = cookbook::simt::current_thread) ++thread->call_depth;
}
void __tsan_func_exit() {
  if (Thread* thread = cookbook::simt::current_thread) --thread->call_depth;
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void* p, unsigned long bytes) { range(p, bytes, Op::load, CALLER); }
void __tsan_write_range(void* p, unsigned long bytes) { range(p, bytes, Op::store, CALLER); }
void __tsan_read_range_pc(void* p, unsigned long bytes, void* pc) { range(p, bytes, Op::load, pc); }
void __tsan_write_range_pc(void* p, unsigned long bytes, void* pc) {
  range(p, bytes, Op::store, pc);
}

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
ATOMIC(128, unsigned __int128)
void __tsan_atomic_thread_fence(int) {
  if (tracing(CALLER)) cookbook::simt::hooks->memory_fence();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

// g++ leaves memcpy and its kin alone; clang calls these.
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  range(from, bytes, Op::load, CALLER);
  range(to, bytes, Op::store, CALLER);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  range(from, bytes, Op::load, CALLER);
  range(to, bytes, Op::store, CALLER);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  range(to, bytes, Op::store, CALLER);
  return std::memset(to, value, bytes);
}

}  // extern "C"
