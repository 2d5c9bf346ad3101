// SPDX-License-Identifier: MIT
/// @file
/// The host side of both backends: launching kernels, device memory, facts about the device.
/// Compiled with COOKBOOK_CUDA=1 it drives a GPU, with COOKBOOK_SIMT=1 the SIMT runtime on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/backend/fault.hpp"

#if defined(COOKBOOK_CUDA)
#include <cuda_runtime_api.h>
#else
#include "common/backend/simt/language/kernel_call.hpp"
#include "common/backend/simt/language/vector_types.hpp"
#endif

namespace cookbook {

/// An ordered queue of launches. The default one is the legacy default stream; on the SIMT backend
/// every launch is synchronous and a stream has no effect.
struct Stream {
#if defined(COOKBOOK_CUDA)
  cudaStream_t handle = nullptr;
#endif
};

/// Waits until all work in `stream` has finished. Throws std::runtime_error if a kernel failed.
void synchronize(Stream stream = {});

/// Extents of a launch. A grid with a zero extent launches nothing.
struct LaunchConfig {
  dim3 grid;                 ///< blocks
  dim3 block;                ///< threads per block
  size_t smem_bytes = 0;     ///< dynamic shared memory a block
  int cluster = 1;           ///< blocks per cluster, along x; grid.x must be a multiple
  bool cooperative = false;  ///< all blocks resident at once, or the launch fails
  /// Blocks may start before the launch before it in the stream has ended: see
  /// wait_for_previous_launch in common/device/sync.cuh.
  bool dependent = false;
  /// How many of a cluster's blocks are side by side along y and z: of programs that ./run check
  /// runs. The others are along x.
  unsigned cluster_y = 1, cluster_z = 1;
};

/// A launch that the device rejects; the message gives the limit and the number requested.
class LaunchError : public FaultError {
 public:
  explicit LaunchError(const std::string& message, Fault fault = Fault::launch_refused)
      : FaultError(fault, message) {}
};

/// Global memory, with guard bands of at least kGuardBytes on both sides. The bands hold NaNs that
/// differ from buffer to buffer and from place to place. Move-only.
class DeviceMemory {
 public:
  static constexpr size_t kGuardBytes = 4096;

  DeviceMemory() = default;
  /// Allocates `bytes` bytes, all 0xFF at first; on SIMT 4 GiB or more are zeros until written.
  /// `name` is for reports. data() is aligned to 256 bytes + `misalign_bytes`. Throws bad_alloc.
  DeviceMemory(size_t bytes, std::string name, size_t misalign_bytes = 0);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    DeviceMemory(std::move(other)).swap(*this);
    return *this;
  }

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

  /// Copies between host memory and `offset` bytes into this buffer, after all launches so far;
  /// done on return, for launches on any stream. Throws std::out_of_range if the range is not
  /// within the buffer.
  void copy_from_host(const void* source, size_t bytes, size_t offset = 0);
  void copy_to_host(void* destination, size_t bytes, size_t offset = 0) const;
  /// Sets every byte, in the order of the default stream; done on return, for launches on any
  /// stream.
  void fill(unsigned char byte);
  /// False if anything was written outside of [data(), data() + bytes()), within the bands.
  bool guards_intact() const;

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(allocation_, other.allocation_);
    std::swap(allocation_bytes_, other.allocation_bytes_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(name_, other.name_);
  }
  void check_range(size_t bytes, size_t offset) const;
  /// What the guard bands hold in [begin, end).
  std::vector<unsigned char> guard_pattern(const unsigned char* begin,
                                           const unsigned char* end) const;

  unsigned char* allocation_ = nullptr;  // with the guard bands
  size_t allocation_bytes_ = 0;
  unsigned char* data_ = nullptr;
  size_t bytes_ = 0;
  std::string name_;
};

/// What the current device is.
struct DeviceInfo {
  std::string name;
  int cc_major = 0, cc_minor = 0;
  int sm_count = 0;
  size_t l2_bytes = 0;
  size_t smem_per_block_bytes = 0;  ///< dynamic shared memory a block can opt in to
  size_t memory_bytes = 0;
  int clock_mhz = 0;  ///< maximum SM clock; 0 on the SIMT backend
  std::string driver, toolkit;
  bool is_simt = false;
  int cc() const { return 10 * cc_major + cc_minor; }
};

/// Facts about the current device, read once per device. Throws std::runtime_error if there is no
/// GPU. SIMT: COOKBOOK_SIMT_DEVICE names a GPU; the other COOKBOOK_SIMT_* variables override
/// (simt.md).
const DeviceInfo& device_info();

namespace detail {

#if defined(COOKBOOK_CUDA)
void launch_kernel(const void* kernel, const LaunchConfig& config, Stream stream, void** arguments);

template <class... P>
void launch_converted(void (*kernel)(P...), const LaunchConfig& config, Stream stream,
                      P... values) {
  void* arguments[sizeof...(P) + 1] = {const_cast<void*>(static_cast<const void*>(&values))...};
  launch_kernel(reinterpret_cast<const void*>(kernel), config, stream, arguments);
}
#else
void launch_kernel(void* kernel, const LaunchConfig& config, const simt::KernelCall& call);

template <class... P>
void launch_converted(void (*kernel)(P...), const LaunchConfig& config, Stream, P... values) {
  const simt::Arguments<P...> arguments(values...);
  launch_kernel(reinterpret_cast<void*>(kernel), config, simt::KernelCall(kernel, arguments));
}
#endif

}  // namespace detail

/// Launches `kernel`, converting the arguments to its parameter types.
/// Throws LaunchError for a launch that the device rejects; simt::KernelError, on the SIMT backend,
/// for an error that the kernel made.
template <class... P, class... A>
void launch(void (*kernel)(P...), const LaunchConfig& config, Stream stream, A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "the kernel takes another number of arguments");
  detail::launch_converted<P...>(kernel, config, stream,
                                 static_cast<P>(std::forward<A>(arguments))...);
}

}  // namespace cookbook
