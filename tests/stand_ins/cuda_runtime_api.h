// SPDX-License-Identifier: MIT
// A CUDA runtime for tests/bench_test.cpp: streams and events of a GPU that exists on paper only.
// Declares what common/bench calls; the test defines it.
#pragma once

enum cudaError_t { cudaSuccess = 0, cudaErrorNotReady = 600, cudaErrorLaunchFailure = 719 };

struct FakeStream;
struct FakeEvent;
using cudaStream_t = FakeStream*;
using cudaEvent_t = FakeEvent*;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device);
