// SPDX-License-Identifier: MIT
// A header that is not here.
// exit: 2
#include <cusparse.h>  // unsupported: cuSPARSE

int main() { return 0; }
