// SPDX-License-Identifier: MIT
// Names that a program may use for its own things: a folder called cuda/, and functions that are
// called as one of a texture and one of C++20 are.
#pragma once

__host__ __device__ inline float lerp(float a, float b, float t) { return a + t * (b - a); }
__host__ __device__ inline float tex2D(const float* image, int width, int x, int y) {
  return image[y * width + x];
}
