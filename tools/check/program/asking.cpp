// SPDX-License-Identifier: MIT
// How a launch learns which kernel it runs. This file must not see program.hpp, where `asking` is
// const: a kernel never sees it change.
#include "tools/check/program/asking.hpp"

namespace cookbook::simt::program {

__thread bool asking = false;

namespace {
void* answered_from = nullptr;
}

bool answer() {
  answered_from = __builtin_return_address(0);
  return true;
}

void* ask(const KernelCall& call) {
  answered_from = nullptr;
  asking = true;
  call.invoke(nullptr, call.arguments);
  asking = false;
  return answered_from;
}

}  // namespace cookbook::simt::program
