// SPDX-License-Identifier: MIT
// The planted kernels that several tests run. In one file, because the headers take a compiler
// longer than these kernels do.
#include "tests/planted/limits.cu"
#include "tests/planted/product.cu"
#include "tests/planted/reverse.cu"
#include "tests/planted/rows.cu"
#include "tests/planted/small_types.cu"
