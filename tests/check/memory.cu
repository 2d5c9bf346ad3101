// SPDX-License-Identifier: MIT
// Accesses that take more than they need: a column of global memory, and of shared memory.
// exit: 0
__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][32];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  const int column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  out[row * n + column] = tile[threadIdx.x][threadIdx.y];  // finds: bank conflict
}

__global__ void columns(const float* in, float* out, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += in[threadIdx.x * n + i];  // finds: uncoalesced
  }
  out[threadIdx.x] = sum;
}

int main() {
  const int n = 64;
  float *in, *out;
  if (cudaMalloc(&in, n * n * sizeof(float)) || cudaMalloc(&out, n * n * sizeof(float))) return 1;
  if (cudaMemset(in, 0, n * n * sizeof(float))) return 1;
  transpose<<<dim3(2, 2), dim3(32, 32)>>>(in, out, n);
  columns<<<1, n>>>(in, out, n);
  if (cudaDeviceSynchronize()) return 1;
  return cudaFree(in) || cudaFree(out);
}
