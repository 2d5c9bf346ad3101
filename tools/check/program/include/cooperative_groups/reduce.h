// SPDX-License-Identifier: MIT
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T = void>
struct plus {
  template <class U>
  U operator()(U a, U b) const {
    return a + b;
  }
};
template <class T = void>
struct less {
  template <class U>
  U operator()(U a, U b) const {
    return b < a ? b : a;
  }
};
template <class T = void>
struct greater {
  template <class U>
  U operator()(U a, U b) const {
    return a < b ? b : a;
  }
};
template <class T = void>
struct bit_and {
  template <class U>
  U operator()(U a, U b) const {
    return a & b;
  }
};
template <class T = void>
struct bit_or {
  template <class U>
  U operator()(U a, U b) const {
    return a | b;
  }
};
template <class T = void>
struct bit_xor {
  template <class U>
  U operator()(U a, U b) const {
    return a ^ b;
  }
};

/// Every thread of the group gets the result.
template <class Group, class T, class Operation>
__forceinline__ T reduce(const Group& group, T value, Operation operation) {
  T result = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    result = operation(result, group.shfl(value, static_cast<int>(rank)));
  }
  return result;
}

}  // namespace cooperative_groups
