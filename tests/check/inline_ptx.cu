// SPDX-License-Identifier: MIT
// Assembly is named, never guessed.
// exit: 2
__global__ void lane(unsigned* x) {
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(x[0]));  // unsupported: inline PTX
}

int main() { return 0; }
