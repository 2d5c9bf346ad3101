// SPDX-License-Identifier: MIT
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <class Group, class T, class Operation = plus<T>>
__forceinline__ T inclusive_scan(const Group& group, T value, Operation operation = {}) {
  if constexpr (requires { group.shfl_up(value, 1u); }) {
    for (unsigned delta = 1; delta < group.size(); delta *= 2) {
      const T other = group.shfl_up(value, delta);
      if (group.thread_rank() >= delta) value = operation(other, value);
    }
    return value;
  } else {
    return group.exchange(value, [&](const auto& of) {
      T result = of(0);
      for (unsigned rank = 1; rank <= group.thread_rank(); ++rank) {
        result = operation(result, of(rank));
      }
      return result;
    });
  }
}

/// The first thread gets T(): of sums; of other operations it is not specified.
template <class Group, class T, class Operation = plus<T>>
__forceinline__ T exclusive_scan(const Group& group, T value, Operation operation = {}) {
  const T all = inclusive_scan(group, value, operation);
  const unsigned rank = group.thread_rank();
  if constexpr (requires { group.shfl_up(all, 1u); }) {
    const T sum = group.shfl_up(all, 1);
    return rank == 0 ? T() : sum;
  } else {
    return group.exchange(all, [&](const auto& of) { return rank == 0 ? T() : of(rank - 1); });
  }
}

/// A scan that begins with what the atomic holds, to which the sum of all is added.
template <class Group, class Atomic, class T, class Operation = plus<T>>
__forceinline__ T exclusive_scan_update(const Group& group, Atomic& atomic, T value,
                                        Operation operation = {}) {
  const T all = inclusive_scan(group, value, operation);
  T begin{};
  if (group.thread_rank() == group.size() - 1) begin = detail::update(atomic, all, operation);
  begin = group.shfl(begin, static_cast<int>(group.size() - 1));
  const T before = exclusive_scan(group, value, operation);
  return group.thread_rank() == 0 ? begin : operation(begin, before);
}
template <class Group, class Atomic, class T, class Operation = plus<T>>
__forceinline__ T inclusive_scan_update(const Group& group, Atomic& atomic, T value,
                                        Operation operation = {}) {
  return operation(exclusive_scan_update(group, atomic, value, operation), value);
}

}  // namespace cooperative_groups
