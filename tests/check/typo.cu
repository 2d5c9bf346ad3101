// SPDX-License-Identifier: MIT
// An error of the program itself, in g++'s words.
// exit: 2
__global__ void set(int* x) {
  y[threadIdx.x] = 1;  // unsupported: 'y' was not declared
}

int main() { return 0; }
