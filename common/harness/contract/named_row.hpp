// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>

#include "common/harness/contract/level.hpp"

namespace cookbook {

/// A level of a sidebar: level L under another name.
template <class L>
LevelEntry named(std::string name) {
  LevelEntry entry = make_level<L>();
  entry.name = std::move(name);
  return entry;
}

}  // namespace cookbook
