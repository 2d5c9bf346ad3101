// SPDX-License-Identifier: MIT
/// @file
/// The marks of a run (timeline.hpp), for programs that are no chapter.
#pragma once

#include <functional>
#include <vector>

#include "common/backend/timeline.hpp"

namespace cookbook {

/// The marks of block 0 of what `run` launches, in their order. On a GPU none.
std::vector<timeline::Event> marks_of(const std::function<void()>& run);

}  // namespace cookbook
