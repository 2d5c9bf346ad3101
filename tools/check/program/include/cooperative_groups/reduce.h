// SPDX-License-Identifier: MIT
#pragma once

#include "../cooperative_groups.h"

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
  T result = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    result = operation(result, group.shfl(value, static_cast<int>(rank)));
  }
  return result;
}

}  // namespace cooperative_groups
