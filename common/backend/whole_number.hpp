// SPDX-License-Identifier: MIT
// Numbers on command lines and in environment variables.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace cookbook {

/// `text` as a T if it is nothing else: no sign that T cannot have, no blank, nothing after it.
template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace cookbook
