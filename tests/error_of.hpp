// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <string>

namespace cookbook {

/// What the E that `call` throws says; "" if it throws nothing. Any other exception passes through.
template <class E = std::exception, class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace cookbook
