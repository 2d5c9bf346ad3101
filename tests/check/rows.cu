// SPDX-License-Identifier: MIT
// An array of pointers is on the device, and what they point to is not.
// exit: 1
__global__ void twice(float** rows) {
  rows[threadIdx.y][threadIdx.x] *= 2;  // finds: out-of-bounds  // says: a pointer to host memory
}

int main() {
  float host[2][32] = {}, *rows[2] = {host[0], host[1]}, **on_device;
  if (cudaMalloc(&on_device, sizeof(rows)) != cudaSuccess) return 1;
  if (cudaMemcpy(on_device, rows, sizeof(rows), cudaMemcpyHostToDevice)) return 1;
  twice<<<1, dim3(32, 2)>>>(on_device);
  // Here the host's memory is at hand, and the plain run goes well.
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  return cudaFree(on_device) != cudaSuccess;
}
