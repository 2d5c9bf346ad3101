// SPDX-License-Identifier: MIT
// fail() with a message that is put together.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "common/backend/simt/runtime/scheduler.hpp"

namespace cookbook::simt {

// `pc`: a return address within the kernel, or null.
template <class... A>
[[noreturn]] void fail_at(void* pc, fmt::format_string<A...> text, A&&... values) {
  fail(fmt::format(text, std::forward<A>(values)...), pc);
}

}  // namespace cookbook::simt
