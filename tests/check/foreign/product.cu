// SPDX-License-Identifier: MIT
// FOREIGN_CALL is C = A B^T of FOREIGN_SOURCE, on matrices of n x n (foreign_kernels.py).
#include <tuple>
#include FOREIGN_SOURCE
#include <cmath>
#include <vector>
int main() {
  const int n = 512;
  std::vector<nv_bfloat16> a(n * n), b(n * n), c(n * n);
  unsigned state = 1;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return __float2bfloat16(static_cast<float>(static_cast<int>(state >> 24) - 128) / 64);
  };
  for (auto& x : a) x = next();
  for (auto& x : b) x = next();
  nv_bfloat16 *A, *B, *C;
  if (cudaMalloc(&A, n * n * 2) || cudaMalloc(&B, n * n * 2) || cudaMalloc(&C, n * n * 2)) return 1;
  if (cudaMemcpy(A, a.data(), n * n * 2, cudaMemcpyHostToDevice)) return 1;
  if (cudaMemcpy(B, b.data(), n * n * 2, cudaMemcpyHostToDevice)) return 1;
  FOREIGN_CALL;
  if (cudaMemcpy(c.data(), C, n * n * 2, cudaMemcpyDeviceToHost)) return 1;
  int wrong = 0;
  for (int i = 0; i < n * n; ++i) {
    double want = 0, size = 0;
    for (int k = 0; k < n; ++k) {
      const double term =
          double(__bfloat162float(a[i / n * n + k])) * __bfloat162float(b[i % n * n + k]);
      want += term, size += std::fabs(term);
    }
    wrong += !(std::fabs(__bfloat162float(c[i]) - want) <= std::fabs(want) / 128 + size * 1e-6);
  }
  printf("%d wrong\n", wrong);
  return cudaFree(A) || cudaFree(B) || cudaFree(C) || wrong != 0;
}
