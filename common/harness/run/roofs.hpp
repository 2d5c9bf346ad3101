// SPDX-License-Identifier: MIT
// This machine's ceilings. Chapter 0 measures them; what links the runner links chapter 0's
// measure_roofs() with it (chapters/CMakeLists.txt).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/harness/report/result.hpp"

namespace cookbook {

/// Measures every roof of this GPU (about four seconds), or those in `only`. A roof that is not
/// measured, or that the GPU does not have (wgmma below sm_90a), stays empty. CUDA backend only;
/// defined in chapters/00_roofs/roofs.cpp.
Roofs measure_roofs(const std::function<void(const std::string&)>& progress = {},
                    const std::vector<Roof>& only = all_roofs());

}  // namespace cookbook
