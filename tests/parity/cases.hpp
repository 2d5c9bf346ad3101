// SPDX-License-Identifier: MIT
// What hardware and model are compared on: the small kernels of kernels.cuh and every level of the
// first chapters, each at a fixed small size or two.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/harness/contract/level.hpp"

namespace cookbook::parity {

/// Chapter number of the small kernels, which belong to none.
constexpr int kNoChapter = -1;

struct Case {
  std::string name;  ///< "kernels/copy_coalesced" or "chapter-3/transpose/padded"
  int chapter = kNoChapter;
  Size size;  ///< where it is measured
  /// Allocates and fills the buffers for a problem of `size` and returns the launches. The buffers
  /// live as long as what is returned. Throws std::runtime_error if this device cannot run it.
  std::function<std::function<void(Stream)>(const Size& size)> prepare;

  /// "kernels" or "chapter-3": cases that are profiled together.
  std::string group() const { return name.substr(0, name.find('/')); }
};

/// Every case, in a fixed order.
const std::vector<Case>& all_cases();

/// The case called `name`, or null.
const Case* find_case(const std::string& name);

}  // namespace cookbook::parity
