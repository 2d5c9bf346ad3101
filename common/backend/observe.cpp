// SPDX-License-Identifier: MIT
#include "common/backend/observe.hpp"

namespace cookbook {
namespace {

Observer& current() {
  static Observer one;
  return one;
}

}  // namespace

void set_observer(const Observer& observer) { current() = observer; }

const Observer& detail::observer() { return current(); }

}  // namespace cookbook
