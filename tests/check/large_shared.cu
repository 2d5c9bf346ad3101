// SPDX-License-Identifier: MIT
// What nvcc refuses.
// exit: 2
__global__ void right(float* x) {
  __shared__ float a[64][96], b[64][88];
  {
    __shared__ float c[8];
    a[0][0] = b[0][0] = c[0] = x[0];
  }
}
__global__ void wrong(float* x) {
  __shared__ float a[64][96], b[64][96];
  if (x != nullptr) {
    __shared__ float c[8];  // unsupported: more than 48 KB
    a[0][0] = b[0][0] = c[0] = x[0];
  }
}

struct Filter {
  __constant__ float weights[9];  // unsupported: __constant__ of a member
};

int main() {}
