// SPDX-License-Identifier: MIT
// Bulk reductions on the SIMT backend; what the function does is documented in
// common/device/bulk_add.cuh.
#pragma once

#include <cstdint>

namespace cookbook {

void bulk_store_add(float* gmem, const void* smem, uint32_t floats);

}  // namespace cookbook
