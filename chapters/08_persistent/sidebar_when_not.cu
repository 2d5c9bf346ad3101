// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: when a persistent grid does not pay. Chapter 7's last kernel (one cluster per cluster
// tile) next to this chapter's levels, from less than one wave of tiles to many; then beside a
// kernel that holds some of the SMs for a while. Usage: chapter-8-when-not [M N K]...
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "chapters/05_tensor_cores/sweep.hpp"
#include "chapters/08_persistent/linked_level.hpp"
#include "common/device/cuda.cuh"
#include "common/harness/run/arguments.hpp"

namespace cookbook::gemm {
namespace {

constexpr int kHeldSms = 8;
constexpr int kHeldMicroseconds = 800;

__device__ __forceinline__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Holds an SM per block: nothing that needs much shared memory fits beside one.
__global__ void hold(unsigned long long ns) {
  const unsigned long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) __nanosleep(500);
}

/// `run`, which starts when kHeldSms SMs are held on another stream. Ends when both have ended.
std::function<void(Stream)> beside_another_kernel(std::function<void(Stream)> run) {
  struct Fork {
    Fork() {
      check(cudaStreamCreateWithFlags(&other.handle, cudaStreamNonBlocking));
      for (cudaEvent_t* event : {&begun, &ended})
        check(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    static void check(cudaError_t status) {
      if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
    }
    Stream other;
    cudaEvent_t begun, ended;
  };
  // Never destroyed: the program times what it made until it ends.
  return [fork = std::make_shared<Fork>(), run = std::move(run)](Stream stream) {
    Fork::check(cudaEventRecord(fork->begun, stream.handle));
    Fork::check(cudaStreamWaitEvent(fork->other.handle, fork->begun, 0));
    launch(hold, {dim3(kHeldSms), dim3(32), 200 * 1024}, fork->other, kHeldMicroseconds * 1000ull);
    launch(hold, {dim3(1), dim3(32), 0}, stream, 20'000ull);  // until those blocks have started
    run(stream);
    Fork::check(cudaEventRecord(fork->ended, fork->other.handle));
    Fork::check(cudaStreamWaitEvent(stream.handle, fork->ended, 0));
  };
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  using namespace cookbook::gemm;
  const cookbook::Chapter chapter = cookbook::chapter_8_entry();
  int status = 0;
  // Tiles of 256 x 256 for 66 clusters: a quarter of a wave, one wave, slightly more than one wave,
  // many waves; and many tiles with a very small K, where only the start and the stores matter.
  for (const auto& size : cookbook::product_sizes(argc, argv,
                                                  {{1024, 1024, 1024},
                                                   {2048, 2048, 2048},
                                                   {2304, 2048, 2048},
                                                   {4096, 4096, 4096},
                                                   {8192, 8192, 8192},
                                                   {8192, 8192, 128}})) {
    Sweep sweep(size, false, false);
    for (const char* name : {"multicast", "static", "hidden_epilogue", "stream_k"}) {
      sweep.add(name, [&] { return prepare_level(chapter, name, sweep.problem, sweep.buffers); });
    }
    status |= sweep.report();
  }
  std::printf("\nthe same while another kernel holds %d SMs for %d us:\n", kHeldSms,
              kHeldMicroseconds);
  Sweep sweep({8192, 8192, 8192}, false, false);
  for (const char* name : {"multicast", "static", "dynamic", "stream_k"}) {
    sweep.add(name, [&] {
      return beside_another_kernel(prepare_level(chapter, name, sweep.problem, sweep.buffers));
    });
  }
  return status | sweep.report();
}
