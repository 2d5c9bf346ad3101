// SPDX-License-Identifier: MIT
// Fences, clocks, and atomics that g++ has no builtin for, as compare-and-swap loops. Global memory
// is shared by the worker threads, so these are atomic for the CPU too.
#include <chrono>
#include <cstring>
#include <type_traits>

#include "common/backend/simt/language/language.hpp"
#include "common/backend/simt/runtime/access_tracer.hpp"
#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {
namespace {

template <size_t kBytes>
using WordOf =
    std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>;

// Replaces *address by update(*address) and returns the old value.
template <class T, class Update>
T modify(T* address, void* pc, Update update) {
  using Word = WordOf<sizeof(T)>;
  if (access_tracer) access_tracer->atomic_access(address, sizeof(T), pc);
  auto* word = reinterpret_cast<Word*>(address);
  Word old_bits = __atomic_load_n(word, __ATOMIC_RELAXED);
  T old_value;
  Word new_bits;
  do {
    std::memcpy(static_cast<void*>(&old_value), &old_bits, sizeof(T));
    const T new_value = update(old_value);
    std::memcpy(&new_bits, static_cast<const void*>(&new_value), sizeof(T));
  } while (!__atomic_compare_exchange_n(word, &old_bits, new_bits, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  if (access_tracer) access_tracer->atomic_done(address);
  return old_value;
}

}  // namespace

template <class T>
T atomic_add(T* address, T value) {
  return modify(address, __builtin_return_address(0), [&](T old) { return old + value; });
}
template <class T>
T atomic_min(T* address, T value) {
  return modify(address, __builtin_return_address(0),
                [&](T old) { return value < old ? value : old; });
}
template <class T>
T atomic_max(T* address, T value) {
  return modify(address, __builtin_return_address(0),
                [&](T old) { return old < value ? value : old; });
}
uint32_t atomic_inc(uint32_t* address, uint32_t limit) {
  return modify(address, __builtin_return_address(0),
                [&](uint32_t old) { return old >= limit ? 0 : old + 1; });
}
uint32_t atomic_dec(uint32_t* address, uint32_t limit) {
  return modify(address, __builtin_return_address(0),
                [&](uint32_t old) { return old == 0 || old > limit ? limit : old - 1; });
}

template float atomic_add(float*, float);
template double atomic_add(double*, double);
template __half atomic_add(__half*, __half);
template __nv_bfloat16 atomic_add(__nv_bfloat16*, __nv_bfloat16);
template __half2 atomic_add(__half2*, __half2);
template __nv_bfloat162 atomic_add(__nv_bfloat162*, __nv_bfloat162);
template int atomic_min(int*, int);
template unsigned atomic_min(unsigned*, unsigned);
template unsigned long long atomic_min(unsigned long long*, unsigned long long);
template long long atomic_min(long long*, long long);
template int atomic_max(int*, int);
template unsigned atomic_max(unsigned*, unsigned);
template unsigned long long atomic_max(unsigned long long*, unsigned long long);
template long long atomic_max(long long*, long long);

void memory_fence() {
  if (access_tracer && current_thread) access_tracer->memory_fence(false);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void memory_fence_block() {
  if (access_tracer && current_thread) access_tracer->memory_fence(true);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void set_block_scope(bool on) {
  if (current_thread) current_thread->block_scope = on;
}

unsigned long long nanosecond_counter() {
  return static_cast<unsigned long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::steady_clock::now().time_since_epoch())
                                             .count());
}

long long cycle_counter() { return static_cast<long long>(nanosecond_counter()); }

}  // namespace cookbook::simt
