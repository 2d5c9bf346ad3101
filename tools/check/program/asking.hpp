// SPDX-License-Identifier: MIT
#pragma once

#include "common/backend/simt/language/kernel_call.hpp"

namespace cookbook::simt::program {

/// An address in the code of the kernel that `call` calls. One caller at a time.
void* ask(const KernelCall& call);

}  // namespace cookbook::simt::program
