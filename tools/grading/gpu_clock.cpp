// SPDX-License-Identifier: MIT
// CUDA backend only.
#include "tools/grading/gpu_clock.hpp"

#include <cuda_runtime_api.h>

#include <stdexcept>

#include "common/bench/flush.hpp"
#include "common/bench/nvml.hpp"

namespace cookbook::grading {
namespace {

void require(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

struct Events {
  cudaEvent_t begin{}, end{}, whole{};
  Events() {
    require(cudaEventCreate(&begin));
    require(cudaEventCreate(&end));
    require(cudaEventCreate(&whole));
  }
  ~Events() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaEventDestroy(whole);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
};

double microseconds(cudaEvent_t from, cudaEvent_t to) {
  float ms = 0;
  require(cudaEventElapsedTime(&ms, from, to));
  return 1e3 * static_cast<double>(ms);
}

}  // namespace

void forget_persisting_lines() {
  // Not every GPU has them.
  if (cudaCtxResetPersistingL2Cache() != cudaSuccess) cudaGetLastError();
}

Bracket time_cold(const std::function<void()>& work) {
  const Events events;
  flush_l2(Stream{});  // also hides the latency of the launches behind it
  require(cudaEventRecord(events.begin));
  work();
  require(cudaEventRecord(events.end));
  // Other streams as well: what runs there has not ended at `end`.
  require(cudaDeviceSynchronize());
  require(cudaEventRecord(events.whole));
  require(cudaEventSynchronize(events.whole));
  require(cudaGetLastError());
  return {microseconds(events.begin, events.end), microseconds(events.begin, events.whole)};
}

SmClock sm_clock() {
  const auto now = sample_clocks();
  return {now ? now->sm_mhz : 0, max_sm_clock_mhz()};
}

}  // namespace cookbook::grading
