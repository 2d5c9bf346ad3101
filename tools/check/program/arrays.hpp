// SPDX-License-Identifier: MIT
#pragma once

#include "tools/check/program/include/cuda_runtime.h"

/// Here its texels lie row by row; on a GPU nobody knows how.
struct cudaArray {
  char* begin;
  cudaChannelFormatDesc format;
  cudaExtent extent;  // in texels; 0 where there is no such dimension
  unsigned flags;
  size_t texel_bytes() const { return (format.x + format.y + format.z + format.w) / 8; }
  size_t pitch() const { return extent.width * texel_bytes(); }
};
