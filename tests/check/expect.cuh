// SPDX-License-Identifier: MIT
// Expectations inside of kernels, which print the lines that do not hold.
#pragma once

#include <cstdio>

__device__ int wrong, checked;

__device__ void expect(bool right, int line) {
  atomicAdd(&checked, 1);
  if (right) return;
  atomicAdd(&wrong, 1);
  printf("line %d is wrong\n", line);
}
#define EXPECT(condition) expect(condition, __LINE__)

/// Prints how many did not hold, with `others` that the host checked; whether one did not.
inline bool any_wrong(int others = 0, int others_wrong = 0) {
  int failures = -1, all = -1;
  if (cudaMemcpyFromSymbol(&failures, wrong, sizeof(int))) return true;
  if (cudaMemcpyFromSymbol(&all, checked, sizeof(int))) return true;
  printf("%d of %d wrong\n", failures + others_wrong, all + others);
  return failures + others_wrong != 0;
}
