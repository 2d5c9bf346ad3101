// SPDX-License-Identifier: MIT
// A header that is not here.
// exit: 2
#include <curand_kernel.h>  // unsupported: cuRAND

int main() { return 0; }
