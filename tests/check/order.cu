// SPDX-License-Identifier: MIT
// Streams, events, copies and the host: what nothing orders, and each beside its correct version.
// exit: 1
#include <cstdio>
#define CHECK(call) \
  if ((call) != cudaSuccess) return 1

__global__ void fill(int* x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void set_managed(int* x, int value) { x[threadIdx.x] = value; }
__global__ void add(const int* x, int* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + 1;
}
__global__ void greet() { printf("hello from %d\n", threadIdx.x); }

int main() {
  const int n = 256, bytes = n * sizeof(int);
  int *x, *y, *z, *both, *pinned, *managed;
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaMalloc(&z, bytes));
  CHECK(cudaMalloc(&both, 2 * bytes));
  CHECK(cudaMallocHost(&pinned, bytes));
  CHECK(cudaMallocManaged(&managed, bytes));
  cudaStream_t one, two, blocking;
  cudaEvent_t done;
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaEventCreate(&done));

  // An event orders two streams; without it nothing does.
  fill<<<2, 128, 0, one>>>(x, 1);
  CHECK(cudaEventRecord(done, one));
  CHECK(cudaStreamWaitEvent(two, done));
  add<<<2, 128, 0, two>>>(x, y);
  CHECK(cudaDeviceSynchronize());
  fill<<<2, 128, 0, one>>>(x, 2);
  add<<<2, 128, 0, two>>>(x, y);  // finds: race
  CHECK(cudaDeviceSynchronize());

  // The default stream and an ordinary one wait for each other. Halves of a buffer are apart.
  fill<<<2, 128, 0, blocking>>>(x, 3);
  add<<<2, 128>>>(x, z);
  fill<<<2, 128, 0, one>>>(both, 1);
  fill<<<2, 128, 0, two>>>(both + n, 2);
  CHECK(cudaDeviceSynchronize());

  // The host must wait for a copy to pinned memory before it reads, ...
  CHECK(cudaMemcpyAsync(pinned, x, bytes, cudaMemcpyDeviceToHost, one));
  CHECK(cudaStreamSynchronize(one));
  int sum = pinned[0];
  CHECK(cudaMemcpyAsync(pinned, x, bytes, cudaMemcpyDeviceToHost, one));
  sum += pinned[1];  // finds: race
  CHECK(cudaDeviceSynchronize());
  // ... for one from it before it writes, ...
  CHECK(cudaMemcpyAsync(z, pinned, bytes, cudaMemcpyHostToDevice, one));
  pinned[2] = 7;  // finds: race
  CHECK(cudaDeviceSynchronize());
  // ... and for a kernel that writes managed memory.
  set_managed<<<1, 256>>>(managed, 5);
  CHECK(cudaDeviceSynchronize());
  sum += managed[0];
  set_managed<<<1, 256>>>(managed, 6);
  sum += managed[1];  // finds: race

  greet<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  // The buffer of printf() holds 40 lines.
  CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1000));
  greet<<<1, 40>>>();
  greet<<<1, 64>>>();  // finds: lost output
  CHECK(cudaDeviceSynchronize());

  // The time until an event is known when it is over.
  cudaEvent_t start;
  float time;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventRecord(start));
  add<<<2, 128>>>(x, z);
  CHECK(cudaEventRecord(done));
  cudaEventElapsedTime(&time, start, done);  // finds: unchecked error
  CHECK(cudaEventSynchronize(done));
  CHECK(cudaEventElapsedTime(&time, start, done));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  CHECK(cudaFree(z));
  CHECK(cudaFree(both));
  CHECK(cudaFree(managed));
  CHECK(cudaFreeHost(pinned));
  greet<<<1, 1>>>();  // finds: lost output
  return sum == 0;
}
