// SPDX-License-Identifier: MIT
//
// The functions that g++ calls from code compiled with -fsanitize=thread
// -fsanitize-coverage=trace-pc. Objects compiled so are linked without -fsanitize, against these
// instead of the sanitizer's runtime. Host code of the same files calls them too: outside of a CUDA
// thread they only do what an atomic operation must do.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "common/backend/simt/runtime/access_tracer.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace {

using namespace cookbook::simt;
using tracing::address_of;
using tracing::FlagUse;
using tracing::natural_access;
using tracing::worker_tracer;

inline bool is_traced(const void* pc) {
  return worker_tracer != nullptr && current_thread != nullptr &&
         current_thread->block->group->traced && !library_code.contains(pc);
}

inline void access(const tracing::Access& access) {
  worker_tracer->lane_access(current_thread->actor, access);
}

/// Where nothing is traced: what host code accesses may be observed.
inline void untraced(const volatile void* address, size_t bytes, Op op, void* pc) {
  if (observe_host_access != nullptr && current_thread == nullptr && bytes > 0) {
    observe_host_access(address_of(address), bytes, op != Op::load, pc);
  }
}

/// A volatile access of a naturally aligned type: a flag, if it is in global memory.
inline void flag(const volatile void* address, unsigned bytes, Op op, void* pc) {
  if (!is_traced(pc)) return untraced(address, bytes, op, pc);
  tracing::Access one = natural_access(address, bytes, op, pc);
  one.use = FlagUse::volatile_access;
  access(one);
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

/// An atomic, which `perform` performs. `changes(old)`: whether it stores another value.
template <class T, class F, class C>
auto atomic(const volatile T* address, int order, void* pc, F&& perform, C&& changes,
            FlagUse use = FlagUse::atomic, bool overwrites = false, bool compares = false) {
  if (!is_traced(pc)) {
    untraced(address, sizeof(T), use == FlagUse::atomic_load ? Op::load : Op::atomic, pc);
    return perform();
  }
  tracing::Access one = natural_access(address, sizeof(T), Op::atomic, pc);
  one.use = use;
  one.fenced = order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
  one.rule = SharedRule::atomic;
  one.overwrites = overwrites;
  // What others see after it must have been released before. A poll that changes nothing releases
  // nothing: threads that poll would release to each other without end.
  one.changes = changes(load_value(address));
  access(one);
  const auto result = perform();
  const bool acquires =
      order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
  worker_tracer->flag_acquire(address_of(address), compares && one.changes && !acquires);
  return result;
}

template <class T>
T exchange(volatile T* p, T value, int order, void* pc) {
  return atomic(
      p, order, pc, [=] { return update(p, [value](T) { return value; }); },
      [value](T old) { return old != value; }, FlagUse::atomic, true);
}

/// The widest parts of an access of a type that is less aligned than its size, such as a struct of
/// floats: nvcc accesses no more at once than the alignment, which the hook does not tell. Most
/// structs are aligned to four bytes; those of four bytes in all are aligned to two.
uint32_t part_of(size_t bytes) {
  const uint32_t part = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
  return part > 1 && part == bytes ? part / 2 : part;
}

void range(const void* address, size_t bytes, Op op, void* pc, uint32_t part) {
  if (!is_traced(pc)) return untraced(address, bytes, op, pc);
  for (size_t at = 0; at < bytes; at += part) {
    access({.address = address_of(address) + at,
            .pc = pc,
            .bytes = part,
            .op = op,
            .part = static_cast<uint32_t>(at / part) & 0xff});
  }
}

/// The bytes of the arithmetic type to which a cast makes a pointer: of text that begins with
/// "(const int*)" or "<int*>". 0: it is no such cast.
size_t pointed_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, size_t> kTypes[] = {
      {"short", 2},    {"int", 4},     {"", 4},  // unsigned
      {"float", 4},    {"long", 8},    {"longlong", 8}, {"double", 8},  {"int16_t", 2},
      {"uint16_t", 2}, {"int32_t", 4}, {"uint32_t", 4}, {"int64_t", 8}, {"uint64_t", 8}};
  size_t at = 1;
  bool is_unsigned = false;
  // The words from here on without those that do not change the size.
  const auto words = [&] {
    std::string found;
    while (at < text.size()) {
      size_t end = at;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
        ++end;
      const std::string_view word = text.substr(at, end - at);
      if (word.empty() && text[at] != ' ') break;
      at = std::max(end, at + 1);
      if (word == "unsigned") is_unsigned = true;
      if (word != "unsigned" && word != "signed" && word != "const" && word != "volatile") {
        found += word;
      }
    }
    return found;
  };
  const std::string type = words();
  if (at == text.size() || text[at++] != '*') return 0;
  if (!words().empty() || at == text.size() || (text[at] != ')' && text[at] != '>')) return 0;
  if (type.empty() && !is_unsigned) return 0;
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return 0;
}

/// Whether the access of `bytes` at `pc` is of a type that is aligned to its size. g++ calls the
/// hook of a struct that is less aligned where it knows an address that is, as of a variable: the
/// line then says `*(int*)`, or it is one of CUDA's vector types.
bool is_natural(void* pc, size_t bytes) {
  struct Known {
    void* pc = nullptr;
    bool is_natural = false;
  };
  thread_local std::array<Known, 64> known;
  Known& entry = known[reinterpret_cast<uintptr_t>(pc) % known.size()];
  if (entry.pc == pc) return entry.is_natural;
  const NoThread none;
  entry = {pc, copies_vector_type(pc)};
  if (entry.is_natural) return true;
  const SourceLocation location = symbolize({pc})[0];
  const std::string line = source_line(location.file, location.line);
  for (size_t at = line.find_first_of("(<"); at != line.npos;
       at = line.find_first_of("(<", at + 1)) {
    if (pointed_bytes(std::string_view(line).substr(at)) == bytes) entry.is_natural = true;
  }
  return entry.is_natural;
}

/// An access that g++ takes for one of a struct.
void of_struct(const void* address, size_t bytes, Op op, void* pc) {
  const bool may_be_natural = bytes <= 16 && (bytes & (bytes - 1)) == 0;
  if (may_be_natural && address_of(address) % bytes != 0 && is_traced(pc) &&
      !is_own_stack(address) && is_natural(pc, bytes)) {
    return access(natural_access(address, bytes, op, pc));
  }
  range(address, bytes, op, pc, part_of(bytes));
}

inline void scalar(const volatile void* address, unsigned bytes, Op op, void* pc) {
  if (!is_traced(pc)) return untraced(address, bytes, op, pc);
  // g++ calls the same hook for a struct of two doubles, which need not lie at a multiple of 16.
  const auto* at = const_cast<const void*>(address);
  if (bytes == 16 && address_of(at) % 16 == 8 && !is_own_stack(at) && is_own_struct(pc)) {
    return range(at, bytes, op, pc, 8);
  }
  access(natural_access(address, bytes, op, pc));
}

/// Apart from its hook, which then needs no stack: without a trace every block calls that for
/// nothing.
[[gnu::noinline]] void basic_block(void* pc) {
  if (is_traced(pc)) worker_tracer->enter_basic_block(pc);
}

}  // namespace

#define CALLER __builtin_return_address(0)

#define ACCESS(N)                                                         \
  void __tsan_read##N(void* p) { scalar(p, N, Op::load, CALLER); }        \
  void __tsan_write##N(void* p) { scalar(p, N, Op::store, CALLER); }      \
  void __tsan_volatile_read##N(void* p) { flag(p, N, Op::load, CALLER); } \
  void __tsan_volatile_write##N(void* p) { flag(p, N, Op::store, CALLER); }

#define FETCH(BITS, T, NAME, EXPRESSION)                                                       \
  T __tsan_atomic##BITS##_fetch_##NAME(volatile T* p, T value, int order) {                    \
    const auto f = [value](T old) { return static_cast<T>(EXPRESSION); };                      \
    return atomic(                                                                             \
        p, order, CALLER, [=] { return update(p, f); }, [=](T old) { return f(old) != old; }); \
  }

#define COMPARE_EXCHANGE(BITS, T, NAME)                                                         \
  int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile T* p, T* expected, T value,        \
                                                    int order, int) {                           \
    return atomic(                                                                              \
        p, order, CALLER, [=] { return compare_exchange(p, expected, value); },                 \
        [=](T old) { return old == *expected && old != value; }, FlagUse::atomic, false, true); \
  }

#define ATOMIC(BITS, T)                                                                      \
  T __tsan_atomic##BITS##_load(const volatile T* p, int) {                                   \
    return atomic(                                                                           \
        p, __ATOMIC_RELAXED, CALLER, [=] { return load_value(p); }, [](T) { return false; }, \
        FlagUse::atomic_load);                                                               \
  }                                                                                          \
  void __tsan_atomic##BITS##_store(volatile T* p, T value, int order) {                      \
    exchange(p, value, order, CALLER);                                                       \
  }                                                                                          \
  T __tsan_atomic##BITS##_exchange(volatile T* p, T value, int order) {                      \
    return exchange(p, value, order, CALLER);                                                \
  }                                                                                          \
  FETCH(BITS, T, add, old + value)                                                           \
  FETCH(BITS, T, sub, old - value)                                                           \
  FETCH(BITS, T, and, old& value)                                                            \
  FETCH(BITS, T, or, old | value)                                                            \
  FETCH(BITS, T, xor, old ^ value)                                                           \
  FETCH(BITS, T, nand, ~(old & value))                                                       \
  COMPARE_EXCHANGE(BITS, T, strong)                                                          \
  COMPARE_EXCHANGE(BITS, T, weak)

extern "C" {

void __sanitizer_cov_trace_pc() {
  if (worker_tracer != nullptr) basic_block(CALLER);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {
  if (current_thread == nullptr) return;
  if (++current_thread->call_depth >= most_calls) [[unlikely]] {
    if (worker_tracer != nullptr) worker_tracer->deep_recursion();
  }
}
void __tsan_func_exit() {
  if (current_thread != nullptr) --current_thread->call_depth;
}
void __tsan_vptr_update(void**, void*) {}

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void* p, unsigned long bytes) { of_struct(p, bytes, Op::load, CALLER); }
void __tsan_write_range(void* p, unsigned long bytes) { of_struct(p, bytes, Op::store, CALLER); }

// Copies by functions of the C library, which only the grader of submissions redirects here.
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) noexcept {
  range(from, bytes, Op::load, CALLER, 1);
  range(to, bytes, Op::store, CALLER, 1);
  return memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) noexcept {
  range(from, bytes, Op::load, CALLER, 1);
  range(to, bytes, Op::store, CALLER, 1);
  return memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) noexcept {
  range(to, bytes, Op::store, CALLER, 1);
  return memset(to, value, bytes);
}
int __tsan_memcmp(const void* one, const void* other, unsigned long bytes) noexcept {
  range(one, bytes, Op::load, CALLER, 1);
  range(other, bytes, Op::load, CALLER, 1);
  return memcmp(one, other, bytes);
}

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
ATOMIC(128, unsigned __int128)
void __tsan_atomic_thread_fence(int) {
  if (is_traced(CALLER)) worker_tracer->memory_fence(false);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
