// SPDX-License-Identifier: MIT
// Which combinations of size, layout, inputs and device a level is tested with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/contract/level.hpp"
#include "common/harness/verdict/acceptance.hpp"
#include "common/harness/verdict/inputs.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/devices.hpp"
#endif

namespace cookbook {

/// A covering array: one vector of values per row, with value i in 0 .. counts[i] - 1. Every pair
/// of values of every two factors is in some row. The same rows each time.
std::vector<std::vector<int>> pairwise(const std::vector<int>& counts);

struct LayoutCase {
  Size size;
  Variant variant;
  InputKind kind = InputKind::normal;
  int sm_count = 0;  ///< of the SIMT backend's device
  int schedule = 0;  ///< a simt::AsyncSchedule
  std::string text() const;
};

/// What a case needs of the device, until the end of its scope.
class CaseDevice {
 public:
  explicit CaseDevice(const LayoutCase& layout) {
#if COOKBOOK_SIMT
    simt::set_sm_count(layout.sm_count);
#endif
    set_schedule({layout.schedule, layout.schedule}, 7);
  }
  ~CaseDevice() {
#if COOKBOOK_SIMT
    simt::set_sm_count(0);
#endif
    set_schedule({}, 0);
  }
  CaseDevice(const CaseDevice&) = delete;
  CaseDevice& operator=(const CaseDevice&) = delete;
};

/// The cases of a ladder: sizes (those that the ladder lists, and odd ones made from its even
/// ones), pitch and base address of each tensor, inputs, number of SMs and schedule of asynchronous
/// copies.
/// 1. All rows on 16-byte boundaries, so that vector paths and TMA run, at every size.
/// 2. As 1, but one tensor's pitch or base address is off.
/// 3. Any layout.
/// Within 1 and 3 all pairs. Sizes that take more than a quarter of the traced size's work are in
/// one case each.
std::vector<LayoutCase> layout_cases(const Ladder& ladder);

/// For check_far_rows(): per tensor that has a pitch one case in which its rows are 2^31 + 8
/// elements apart, or 2^31 + 16 of one byte. A row times that pitch, or the pitch itself, overflows
/// in 32 bits with or without a sign.
std::vector<LayoutCase> far_row_cases(const Ladder& ladder);

/// Fewer, for the tracer: small odd sizes in tight, aligned and odd layouts, and one tensor off.
std::vector<LayoutCase> traced_layout_cases(const Ladder& ladder);

}  // namespace cookbook
