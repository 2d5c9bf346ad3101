// SPDX-License-Identifier: MIT
// FOREIGN_CALL checks its own results: that of FOREIGN_SOURCE with a `main` (foreign_kernels.py).
#define main their_main
#include FOREIGN_SOURCE
#undef main

int main() {
  FOREIGN_CALL;
  return 0;
}
