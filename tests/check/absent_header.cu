// SPDX-License-Identifier: MIT
// A header that is not here.
// exit: 2
#include <cusolverDn.h>  // unsupported: cuSOLVER

int main() { return 0; }
