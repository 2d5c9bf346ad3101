// SPDX-License-Identifier: MIT
// The CUDA side of device_bytes.hpp.
#include "common/backend/device_bytes.hpp"

#include <cuda_profiler_api.h>

#include "common/backend/backend.hpp"
#include "common/device/cuda.cuh"

namespace cookbook {
namespace {

constexpr int kThreads = 512;

template <class Word>
__global__ void __launch_bounds__(kThreads) fill_words(Word* data, std::size_t count, Word value) {
  const std::size_t stride = std::size_t{gridDim.x} * kThreads;
  for (std::size_t i = blockIdx.x * std::size_t{kThreads} + threadIdx.x; i < count; i += stride) {
    data[i] = value;
  }
}

template <class Word>
__global__ void __launch_bounds__(kThreads)
    hash_words(const Word* data, std::size_t count, unsigned long long* sum) {
  unsigned long long part = 0;
  const std::size_t stride = std::size_t{gridDim.x} * kThreads;
  for (std::size_t i = blockIdx.x * std::size_t{kThreads} + threadIdx.x; i < count; i += stride) {
    part += detail::hash_term(data[i], i);
  }
  atomicAdd(sum, part);
}

// Enough blocks to fill the GPU, and no more than the work has.
LaunchConfig config(std::size_t count) {
  const std::size_t blocks = (count + kThreads - 1) / kThreads;
  const std::size_t resident = 4 * static_cast<std::size_t>(device_info().sm_count);
  return {dim3(static_cast<unsigned>(blocks < resident ? blocks : resident)), dim3(kThreads)};
}

}  // namespace

void fill_elements(void* data, std::size_t count, std::size_t width, std::uint32_t bits) {
  const auto fill = [data](std::size_t words, auto value) {
    launch(fill_words<decltype(value)>, config(words), Stream{},
           static_cast<decltype(value)*>(data), words, value);
  };
  if (width == 1) {
    fill(count, static_cast<std::uint8_t>(bits));
  } else if (width == 2) {
    fill(count, static_cast<std::uint16_t>(bits));
  } else {
    fill(count * (width / 4), bits);
  }
}

std::uint64_t hash_bytes(const void* data, std::size_t bytes) {
  static DeviceMemory result(sizeof(std::uint64_t), "hash");
  result.fill(0);
  auto* sum = result.as<unsigned long long>();
  if (bytes % 4 == 0 && reinterpret_cast<std::uintptr_t>(data) % 4 == 0) {
    launch(hash_words<std::uint32_t>, config(bytes / 4), Stream{},
           static_cast<const std::uint32_t*>(data), bytes / 4, sum);
  } else {
    launch(hash_words<unsigned char>, config(bytes), Stream{},
           static_cast<const unsigned char*>(data), bytes, sum);
  }
  std::uint64_t hash = 0;
  result.copy_to_host(&hash, sizeof hash);
  return hash;
}

// Without a profiler these do nothing, and their return value has no meaning.
ProfilerRange::ProfilerRange() { static_cast<void>(cudaProfilerStart()); }
ProfilerRange::~ProfilerRange() { static_cast<void>(cudaProfilerStop()); }

}  // namespace cookbook
