// SPDX-License-Identifier: MIT
// A source for the host compiler: no word, type or macro of CUDA is there before an #include.
// exit: 0
// prints: 8 bytes
#include <cstdio>

#ifdef __CUDACC__
#error "nvcc compiles this without __CUDACC__"
#endif

typedef struct {
  double wide;
} uchar3;
inline int min(int a) { return a; }

int main() { printf("%d bytes\n", min(static_cast<int>(sizeof(uchar3)))); }
