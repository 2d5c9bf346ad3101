// SPDX-License-Identifier: MIT
// This machine's ceilings, measured by the kernels of chapter 0.
#pragma once

#include <functional>
#include <string>

#include "common/harness/result.hpp"

namespace cookbook {

/// Measures every roof of this GPU (about two seconds). A roof the GPU does not have (wgmma below
/// sm_90a) stays empty. CUDA backend only.
Roofs measure_roofs(const std::function<void(const std::string&)>& progress = {});

}  // namespace cookbook
