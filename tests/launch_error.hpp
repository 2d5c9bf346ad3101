// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>

#include "common/backend/simt/runtime/launch.hpp"
#include "tests/error_of.hpp"

namespace cookbook {

/// What is said of an error that a kernel made; "" if it made none.
template <class... P, class... A>
std::string launch_error(void (*kernel)(P...), const LaunchConfig& config, A&&... arguments) {
  return error_of<simt::KernelError>(
      [&] { launch(kernel, config, {}, std::forward<A>(arguments)...); });
}

}  // namespace cookbook
