// SPDX-License-Identifier: MIT
// What there is no equivalent for is named.
// exit: 2
__global__ void read(cudaTextureObject_t t, float* x) {  // unsupported: textures
  x[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
}

int main() { return 0; }
