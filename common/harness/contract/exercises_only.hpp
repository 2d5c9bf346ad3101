// SPDX-License-Identifier: MIT
// Included before a chapter's ladder.hpp: of its levels, only the exercises are compiled. The rest
// of the ladder has been compiled elsewhere, and takes minutes.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/harness/contract/claim.hpp"
#include "common/harness/contract/tensor.hpp"

// level.hpp keeps its own two functions under other names; everything that it includes is above.
#define make_level make_any_level
#define rows any_rows
#include "common/harness/contract/level.hpp"
#undef make_level
#undef rows

namespace cookbook {

/// The entry of an exercise; for another level one that has a name and cannot run.
template <class L>
LevelEntry make_level() {
  if constexpr (std::string_view(L::text.source).find("/exercises/") != std::string_view::npos) {
    return make_any_level<L>();
  } else {
    LevelEntry entry;
    entry.name = L::text.name;
    return entry;
  }
}

template <class... Levels>
std::vector<LevelEntry> rows() {
  return {make_level<Levels>()...};
}

}  // namespace cookbook
