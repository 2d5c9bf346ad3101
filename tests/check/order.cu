// SPDX-License-Identifier: MIT
// Streams, events, copies, graphs and the host: what nothing orders, and each beside its correct
// version.
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
__global__ void accumulate(int* sum, const int* x, int times) {
  sum[threadIdx.x] += times * x[threadIdx.x];
}
__global__ void greet() { printf("hello from %d\n", threadIdx.x); }

// A graph runs what was captured, with the arguments of then; nothing runs at the capture. Its
// branches are ordered by what was captured, as streams are.
int graphs(cudaStream_t one, cudaStream_t two, cudaEvent_t fork, cudaEvent_t join, int* pinned) {
  int *x, *sum;
  CHECK(cudaMalloc(&x, 1024));
  CHECK(cudaMalloc(&sum, 1024));
  CHECK(cudaMemset(sum, 0, 1024));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 256; ++i) pinned[i] = i;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemcpyAsync(x, pinned, 1024, cudaMemcpyHostToDevice, one));
  CHECK(cudaEventRecord(fork, one));
  CHECK(cudaStreamWaitEvent(two, fork));
  void (*kernel)(int*, const int*, int) = accumulate;
  int times = 1;
  kernel<<<1, 128, 0, one>>>(sum, x, times);
  times = 2;
  kernel<<<1, 128, 0, two>>>(sum + 128, x + 128, times);
  CHECK(cudaEventRecord(join, two));
  CHECK(cudaStreamWaitEvent(one, join));
  times = 100;
  kernel = nullptr;
  CHECK(cudaStreamEndCapture(one, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, one));
  CHECK(cudaMemcpyAsync(pinned, sum, 1024, cudaMemcpyDeviceToHost, one));
  CHECK(cudaStreamSynchronize(one));
  if (pinned[1] != 3 || pinned[129] != 6 * 129) return 1;
  // Without the first event nothing would order the branch. The second branch is not joined, ...
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, one));
  CHECK(cudaStreamWaitEvent(two, fork));
  fill<<<1, 256, 0, two>>>(x, 1);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  int* more;
  CHECK(cudaMalloc(&more, 4));
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  if (cudaStreamEndCapture(one, &graph) != cudaErrorStreamCaptureUnjoined || graph) return 1;
  // ... and a call that waits breaks the capture.
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  fill<<<1, 256, 0, one>>>(x, 1);
  if (cudaStreamSynchronize(one) != cudaErrorStreamCaptureUnsupported) return 1;
  if (cudaMalloc(&more, 4) != cudaErrorStreamCaptureUnsupported) return 1;
  if (cudaStreamEndCapture(one, &graph) != cudaErrorStreamCaptureInvalidated) return 1;
  if (cudaGetLastError() != cudaErrorStreamCaptureInvalidated) return 1;
  // Node by node: the second kernel waits for the copy alone.
  cudaGraphNode_t copy, first, second;
  void* arguments[] = {&x, &sum};
  cudaKernelNodeParams launch = {0};
  launch.func = (void*)add;
  launch.gridDim = dim3(2);
  launch.blockDim = dim3(128);
  launch.kernelParams = arguments;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, x, pinned, 1024, cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddKernelNode(&first, graph, &copy, 1, &launch));
  int value = 5;
  void* others[] = {&sum, &value};
  launch.func = (void*)fill;
  launch.kernelParams = others;
  CHECK(cudaGraphAddKernelNode(&second, graph, &copy, 1, &launch));  // finds: race
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, one));
  CHECK(cudaStreamSynchronize(one));
  CHECK(cudaGraphAddDependencies(graph, &first, &second, 1));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, one));
  CHECK(cudaMemcpyAsync(pinned, sum, 1024, cudaMemcpyDeviceToHost, one));
  CHECK(cudaStreamSynchronize(one));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(more));
  CHECK(cudaFree(x));
  CHECK(cudaFree(sum));
  return pinned[7] != 5;
}

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
  cudaEvent_t done, other;
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaEventCreate(&done));
  CHECK(cudaEventCreate(&other));
  if (graphs(one, two, done, other, pinned)) return 2;

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
