// SPDX-License-Identifier: MIT
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <class Group, class T, class Operation = plus<T>>
__forceinline__ T inclusive_scan(const Group& group, T value, Operation operation = {}) {
  for (unsigned delta = 1; delta < group.size(); delta *= 2) {
    const T other = group.shfl_up(value, delta);
    if (group.thread_rank() >= delta) value = operation(other, value);
  }
  return value;
}

/// Of sums: the first thread gets T().
template <class Group, class T>
__forceinline__ T exclusive_scan(const Group& group, T value) {
  const T sum = group.shfl_up(inclusive_scan(group, value), 1);
  return group.thread_rank() == 0 ? T() : sum;
}

}  // namespace cooperative_groups
