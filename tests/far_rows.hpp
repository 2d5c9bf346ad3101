// SPDX-License-Identifier: MIT
// Pitches so large that offsets do not fit in 32 bits.
#pragma once

#include "common/harness/verdict/check.hpp"
#include "tests/layout_cases.hpp"

namespace cookbook {

/// Runs `level` once on a case of far_row_cases() and compares all rows with the reference. Only
/// the rows themselves are accessed, so the SIMT backend needs memory only for them.
CheckResult check_far_rows(const LevelEntry& level, const Ladder& ladder, const LayoutCase& layout);

}  // namespace cookbook
