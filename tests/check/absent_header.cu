// SPDX-License-Identifier: MIT
// A header that is not here.
// exit: 2
#include <cufft.h>  // unsupported: cuFFT

int main() { return 0; }
