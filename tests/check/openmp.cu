// SPDX-License-Identifier: MIT
// exit: 2
#include <omp.h>  // unsupported: OpenMP without -Xcompiler -fopenmp

int main() { return omp_get_thread_num(); }
