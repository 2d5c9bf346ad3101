// SPDX-License-Identifier: MIT
// The CUDA side of backend.hpp.
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/observe.hpp"

namespace cookbook {
namespace {

constexpr size_t kDefaultSharedBytes = 48 << 10;  // more must be requested per kernel
constexpr int kPortableCluster = 8;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

std::string version_string(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The driver's own version, e.g. "580.65.06"; the CUDA version that it supports if that cannot be
// read.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ..."
    const bool is_version = word.find_first_not_of("0123456789.") == std::string::npos &&
                            word.find('.') != std::string::npos;
    if (is_version) return word;
  }
  int version = 0;
  check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  return "CUDA " + version_string(version);
}

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "no usable GPU");
  return device;
}

// A copy from pageable memory and a memset may return before the device has done them, and streams
// that do not block do not wait for the default stream: what is launched next could be first.
void wait_for_default_stream() { check(cudaStreamSynchronize(nullptr), "cudaMemset"); }

DeviceInfo facts_of(int device) {
  DeviceInfo facts;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  facts.name = properties.name;
  facts.cc_major = properties.major;
  facts.cc_minor = properties.minor;
  facts.sm_count = properties.multiProcessorCount;
  facts.l2_bytes = static_cast<size_t>(properties.l2CacheSize);
  facts.smem_per_block_bytes = properties.sharedMemPerBlockOptin;
  facts.memory_bytes = properties.totalGlobalMem;
  int clock_khz = 0;
  check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device), "cudaDeviceGetAttribute");
  facts.clock_mhz = clock_khz / 1000;
  facts.driver = driver_version();
  int runtime = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  facts.toolkit = version_string(runtime);
  return facts;
}

// Attributes that a kernel needs before its first launch of this kind. Setting them costs more than
// a launch, so each is set once.
class KernelAttributes {
 public:
  void prepare(const void* kernel, const LaunchConfig& config) {
    const bool large_shared = config.smem_bytes > kDefaultSharedBytes;
    const bool large_cluster = config.cluster > kPortableCluster;
    if (!large_shared && !large_cluster) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    State& state = states_[{current_device(), kernel}];
    if (large_shared && config.smem_bytes > state.shared_bytes) {
      refuse_unless(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(config.smem_bytes)),
                    std::to_string(config.smem_bytes) +
                        " bytes of dynamic shared memory per block; at most " +
                        std::to_string(device_info().smem_per_block_bytes) +
                        ", less the kernel's static shared memory");
      state.shared_bytes = config.smem_bytes;
    }
    if (large_cluster && !state.large_cluster) {
      refuse_unless(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                    "a cluster of " + std::to_string(config.cluster) + " blocks");
      state.large_cluster = true;
    }
  }

 private:
  struct State {
    size_t shared_bytes = 0;
    bool large_cluster = false;
  };

  static void refuse_unless(cudaError_t status, const std::string& what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // clears it
    throw LaunchError("launch refused: " + what + " (" + cudaGetErrorString(status) + ")");
  }

  std::mutex mutex_;
  std::map<std::pair<int, const void*>, State> states_;
};

std::string describe(const LaunchConfig& config) {
  const auto extents = [](const dim3& v) {
    return std::to_string(v.x) + " x " + std::to_string(v.y) + " x " + std::to_string(v.z);
  };
  std::string text = "grid " + extents(config.grid) + ", block " + extents(config.block) + ", " +
                     std::to_string(config.smem_bytes) + " bytes of dynamic shared memory";
  if (config.cluster != 1) text += ", cluster of " + std::to_string(config.cluster);
  if (config.cooperative) text += ", cooperative";
  return text;
}

}  // namespace

void detail::launch_kernel(const void* kernel, const LaunchConfig& config, Stream stream,
                           void** arguments) {
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return;
  if (config.cluster < 1 || config.grid.x % static_cast<unsigned>(config.cluster) != 0) {
    throw LaunchError("launch refused: grid.x = " + std::to_string(config.grid.x) +
                      " is not a multiple of the cluster's " + std::to_string(config.cluster) +
                      " blocks");
  }
  const ObservedLaunch observed(kernel, config);
  static KernelAttributes attributes;
  attributes.prepare(kernel, config);

  cudaLaunchAttribute list[3];
  cudaLaunchConfig_t launch{};
  launch.gridDim = config.grid;
  launch.blockDim = config.block;
  launch.dynamicSmemBytes = config.smem_bytes;
  launch.stream = stream.handle;
  launch.attrs = list;
  const auto attribute = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
    list[launch.numAttrs].id = id;
    return list[launch.numAttrs++].val;
  };
  if (config.cluster > 1) {
    attribute(cudaLaunchAttributeClusterDimension).clusterDim = {
        static_cast<unsigned>(config.cluster), 1, 1};
  }
  if (config.cooperative) attribute(cudaLaunchAttributeCooperative).cooperative = 1;
  if (config.dependent) {
    attribute(cudaLaunchAttributeProgrammaticStreamSerialization)
        .programmaticStreamSerializationAllowed = 1;
  }
  const cudaError_t status = cudaLaunchKernelExC(&launch, kernel, arguments);
  if (status != cudaSuccess) {
    cudaGetLastError();  // clears it
    const size_t threads = size_t{config.block.x} * config.block.y * config.block.z;
    throw LaunchError("launch refused (" + describe(config) + "): " + cudaGetErrorString(status) +
                      (threads > 1024 ? "; a block has at most 1024 threads" : ""));
  }
}

std::string mangled_name(const void* kernel) {
  const char* name = nullptr;
  check(cudaFuncGetName(&name, kernel), "cudaFuncGetName");
  return name;
}

void synchronize(Stream stream) { check(cudaStreamSynchronize(stream.handle), "a kernel failed"); }

DeviceMemory::DeviceMemory(size_t bytes, std::string name, size_t misalign_bytes)
    : bytes_(bytes), name_(std::move(name)) {
  const size_t used = kGuardBytes + misalign_bytes + bytes + kGuardBytes;
  allocation_bytes_ = (used + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, allocation_bytes_);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears it
    throw std::bad_alloc();
  }
  check(status, "cudaMalloc");
  allocation_ = static_cast<unsigned char*>(memory);
  data_ = allocation_ + kGuardBytes + misalign_bytes;
  const auto guard = [this](unsigned char* begin, unsigned char* end) {
    const std::vector<unsigned char> band = guard_pattern(begin, end);
    check(cudaMemcpy(begin, band.data(), band.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  };
  guard(allocation_, data_);
  guard(data_ + bytes_, allocation_ + allocation_bytes_);
  fill(0xff);
}

DeviceMemory::~DeviceMemory() {
  if (allocation_) cudaFree(allocation_);
}

void DeviceMemory::copy_from_host(const void* source, size_t bytes, size_t offset) {
  check_range(bytes, offset);
  if (bytes == 0) return;
  check(cudaDeviceSynchronize(), "a kernel failed");
  check(cudaMemcpy(data_ + offset, source, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  wait_for_default_stream();
}

void DeviceMemory::copy_to_host(void* destination, size_t bytes, size_t offset) const {
  check_range(bytes, offset);
  if (bytes == 0) return;
  check(cudaDeviceSynchronize(), "a kernel failed");
  check(cudaMemcpy(destination, data_ + offset, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void DeviceMemory::fill(unsigned char byte) {
  if (bytes_ != 0) check(cudaMemset(data_, byte, bytes_), "cudaMemset");
  wait_for_default_stream();
}

bool DeviceMemory::guards_intact() const {
  check(cudaDeviceSynchronize(), "a kernel failed");
  const auto intact = [this](const unsigned char* begin, const unsigned char* end) {
    std::vector<unsigned char> band(static_cast<size_t>(end - begin));
    check(cudaMemcpy(band.data(), begin, band.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return band == guard_pattern(begin, end);
  };
  return intact(allocation_, data_) && intact(data_ + bytes_, allocation_ + allocation_bytes_);
}

const DeviceInfo& device_info() {
  static std::mutex mutex;
  static std::map<int, DeviceInfo> known;  // its elements stay where they are
  const int device = current_device();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(device);
  return found != known.end() ? found->second
                              : known.emplace(device, facts_of(device)).first->second;
}

}  // namespace cookbook
