// SPDX-License-Identifier: MIT
#pragma once

#include "../cooperative_groups.h"
#include "../cuda/atomic"

namespace cooperative_groups {

#define COOKBOOK_OPERATION(NAME, RESULT) \
  template <class T = void>              \
  struct NAME {                          \
    template <class U>                   \
    U operator()(U a, U b) const {       \
      return RESULT;                     \
    }                                    \
  };
COOKBOOK_OPERATION(plus, a + b)
COOKBOOK_OPERATION(less, b < a ? b : a)
COOKBOOK_OPERATION(greater, a < b ? b : a)
COOKBOOK_OPERATION(bit_and, (a & b))
COOKBOOK_OPERATION(bit_or, a | b)
COOKBOOK_OPERATION(bit_xor, a ^ b)
#undef COOKBOOK_OPERATION

/// Every thread of the group gets the result.
template <class Group, class T, class Operation>
__forceinline__ T reduce(const Group& group, T value, Operation operation) {
  const auto all = [&](const auto& of) {
    T result = of(0);
    for (unsigned rank = 1; rank < group.size(); ++rank) result = operation(result, of(rank));
    return result;
  };
  if constexpr (requires { group.exchange(value, all); }) {
    return group.exchange(value, all);
  } else {
    return all([&](unsigned rank) { return group.shfl(value, static_cast<int>(rank)); });
  }
}

namespace detail {
/// `atomic` becomes operation(atomic, value). Returns what it was.
template <class Atomic, class T, class Operation>
__forceinline__ T update(Atomic& atomic, T value, Operation operation) {
  T old = atomic.load(cuda::memory_order_relaxed);
  while (!atomic.compare_exchange_weak(old, static_cast<T>(operation(old, value)),
                                       cuda::memory_order_relaxed)) {
  }
  return old;
}
}  // namespace detail

/// One thread writes the result, or combines it with an atomic.
template <class Group, class T, class Operation>
__forceinline__ void reduce_store_async(const Group& group, T* to, T value, Operation operation) {
  const T result = reduce(group, value, operation);
  if (group.thread_rank() == 0) *to = result;
}
template <class Group, class Atomic, class T, class Operation>
__forceinline__ void reduce_update_async(const Group& group, Atomic& atomic, T value,
                                         Operation operation) {
  const T result = reduce(group, value, operation);
  if (group.thread_rank() == 0) detail::update(atomic, result, operation);
}

}  // namespace cooperative_groups
