// SPDX-License-Identifier: MIT
// The SIMT backend's TMA store writes what a GPU's writes: the same test on both.
#include "tests/tma_rows.hpp"

#include <gtest/gtest.h>

#include "common/backend/backend.hpp"

namespace cookbook::tests {
namespace {

// PTX says that nothing outside the tensor is written. A GPU writes whole units of 16 bytes.
TEST(TmaRows, AreStoredInUnitsOf16Bytes) {
  if (device_info().cc() < 90) GTEST_SKIP() << "TMA needs sm_90";
  for (int width = 1; width <= kBoxCols; ++width) {
    SCOPED_TRACE(width);
    const std::vector<float> got = store_box(width);
    const int written = (width + 3) / 4 * 4;
    for (int i = 0; i < kBoxRows * kBoxCols; ++i) {
      ASSERT_EQ(got[static_cast<std::size_t>(i)],
                i % kBoxCols < written ? static_cast<float>(i + 1) : 0.0f)
          << "row " << i / kBoxCols << ", column " << i % kBoxCols;
    }
  }
}

}  // namespace
}  // namespace cookbook::tests
