// SPDX-License-Identifier: MIT
// An instruction that has no model is named, unless the function is never called.
// exit: 2
__device__ inline void never_called() { asm volatile("tcgen05.shift.cta_group::1.down [0];"); }

__global__ void kernel(unsigned* x) {
  asm volatile("redux.sync.mul.s32 %0, 1, -1;" : "=r"(x[0]));  // unsupported: redux.sync.mul.s32
}

int main() { return 0; }
