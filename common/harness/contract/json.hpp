// SPDX-License-Identifier: MIT
// What of JSON documents is null.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

/// @cond  Doxygen does not know the library's template.
/// Null where there is no value.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  template <class Json>
  static void to_json(Json& json, const std::optional<T>& value) {
    json = value ? Json(*value) : Json();
  }
  template <class Json>
  static void from_json(const Json& json, std::optional<T>& value) {
    value = json.is_null() ? std::nullopt : std::optional(json.template get<T>());
  }
};
/// @endcond

namespace cookbook {

inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

}  // namespace cookbook
