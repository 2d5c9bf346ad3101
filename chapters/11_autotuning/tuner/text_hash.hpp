// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace cookbook::tune {

/// 16 hexadecimal digits that stand for a text: FNV-1a.
inline std::string text_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

}  // namespace cookbook::tune
