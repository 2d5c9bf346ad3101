// SPDX-License-Identifier: MIT
// What there is no equivalent for is named.
// exit: 2
texture<float, 1> values;

__global__ void read(float* x) { x[threadIdx.x] = tex1Dfetch(values, threadIdx.x); }

int main() {
  float* x;
  if (cudaMalloc(&x, 128)) return 1;
  return cudaBindTexture(0, values, x, 128);  // unsupported: texture references
}
