// SPDX-License-Identifier: MIT
// As much of PyTorch as the sources of learn-cuda name (foreign_kernels.py).
#pragma once
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#define TORCH_CHECK(ok, ...)          \
  do {                                \
    if (!(ok)) {                      \
      printf("TORCH_CHECK failed\n"); \
      exit(9);                        \
    }                                 \
  } while (0)
#define TORCH_LIBRARY(name, m) \
  template <class M>           \
  void torch_library_##name(M& m)
namespace at {
struct TensorOptions {};
struct Tensor {
  long sizes[2];
  void* data;
  long size(int i) const { return sizes[i]; }
  void* data_ptr() const { return data; }
  TensorOptions options() const { return {}; }
};
inline Tensor empty(std::initializer_list<int>, TensorOptions) { exit(9); }
}  // namespace at
