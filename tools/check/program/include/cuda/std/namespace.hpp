// SPDX-License-Identifier: MIT
// cuda::std is the standard library: kernels run on the CPU.
#pragma once
#include <cstddef>

#include "../../cuda_runtime.h"

namespace cuda::std {
using namespace ::std;
}
