// SPDX-License-Identifier: MIT
// In place of CUTLASS's: the driver is called as it is (foreign_kernels.py).
#pragma once
#include "cutlass/cutlass.h"

#define CUTLASS_CUDA_DRIVER_WRAPPER_CALL(function) ::function

namespace cutlass {
struct CudaHostAdapter {};
}  // namespace cutlass
