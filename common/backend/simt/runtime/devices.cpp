// SPDX-License-Identifier: MIT
// The GPUs that the model can stand for, and the environment variables that change them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/settings.hpp"

namespace cookbook {
namespace simt {
namespace {

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; SMs, L2 and memory
// from NVIDIA's architecture white papers.
struct Device {
  const char* name;
  const char* product;
  int cc;
  int sms;
  int smem_per_block_kb;  // that a block can opt in to
  int smem_per_sm_kb;
  unsigned threads_per_sm;
  unsigned blocks_per_sm;
  int l2_mb;
  int memory_gb;
};

constexpr std::array<Device, 8> kDevices = {{
    {"t4", "T4", 75, 40, 64, 64, 1024, 16, 4, 16},
    {"a100", "A100", 80, 108, 163, 164, 2048, 32, 40, 80},
    {"rtx3090", "RTX 3090", 86, 82, 99, 100, 1536, 16, 6, 24},
    {"rtx4090", "RTX 4090", 89, 128, 99, 100, 1536, 24, 72, 24},
    {"h100", "H100", 90, 132, 227, 228, 2048, 32, 50, 80},
    {"h200", "H200", 90, 132, 227, 228, 2048, 32, 50, 141},
    {"b200", "B200", 100, 148, 227, 228, 2048, 32, 126, 180},
    {"rtx5090", "RTX 5090", 120, 170, 99, 100, 1536, 24, 96, 32},
}};

// The default device: an H100 with four SMs, which small problems fill.
Device small_model = {"", "", 90, 4, 227, 228, 2048, 32, 50, 1 << 20};

const Device& find_device(const std::string& name) {
  if (name.empty()) return small_model;
  std::string wanted = name;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (const Device& device : kDevices) {
    if (wanted == device.name) return device;
  }
  throw std::runtime_error(fmt::format("COOKBOOK_SIMT_DEVICE takes {}; got '{}'",
                                       fmt::join(device_names(), ", "), name));
}

std::string device_from_environment() {
  const char* text = std::getenv("COOKBOOK_SIMT_DEVICE");
  return text ? text : "";
}

size_t host_memory_bytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

struct Model {
  DeviceInfo info;
  SmLimits sm;
};

Model make_model(const std::string& name) {
  const Device& device = find_device(name);
  Model model;
  DeviceInfo& info = model.info;
  const auto cc = static_cast<int>(
      environment_number("COOKBOOK_SIMT_CC", static_cast<uint64_t>(device.cc), 30, 999));
  info.cc_major = cc / 10;
  info.cc_minor = cc % 10;
  info.name = fmt::format("SIMT model of {}{}cc {}.{}{}", device.product, name.empty() ? "" : ", ",
                          info.cc_major, info.cc_minor, cc == 90 ? "a" : "");
  info.sm_count = static_cast<int>(
      environment_number("COOKBOOK_SIMT_SMS", static_cast<uint64_t>(device.sms), 1, 65536));
  info.l2_bytes = environment_number("COOKBOOK_SIMT_L2_BYTES",
                                     static_cast<uint64_t>(device.l2_mb) << 20, 1, 1ull << 40);
  info.smem_per_block_bytes = environment_number(
      "COOKBOOK_SIMT_SMEM_BYTES", static_cast<uint64_t>(device.smem_per_block_kb) << 10, 1,
      kMaxDynamicSharedBytes);
  info.memory_bytes =
      std::min(host_memory_bytes(), static_cast<size_t>(device.memory_gb) * 1'000'000'000);
  info.driver = "none";
  info.toolkit = "g++ " __VERSION__;
  info.is_simt = true;
  model.sm.threads = device.threads_per_sm;
  model.sm.blocks = device.blocks_per_sm;
  model.sm.reserved_shared_bytes =
      static_cast<size_t>(device.smem_per_sm_kb - device.smem_per_block_kb) << 10;
  return model;
}

Model& current_model() {
  static Model model = make_model(device_from_environment());
  return model;
}

}  // namespace

const SmLimits& sm_limits() { return current_model().sm; }

unsigned resident_blocks_per_sm(size_t shared_bytes, unsigned block_threads) {
  const SmLimits& sm = sm_limits();
  const size_t sm_shared = device_info().smem_per_block_bytes + sm.reserved_shared_bytes;
  const unsigned warps = (block_threads + kWarpSize - 1) / kWarpSize;
  const unsigned by_threads = sm.threads / (warps * kWarpSize);
  const size_t block_shared = std::max<size_t>(shared_bytes + sm.reserved_shared_bytes, 1);
  const auto by_shared = static_cast<unsigned>(sm_shared / block_shared);
  return std::min({by_threads, by_shared, sm.blocks});
}

void check_device_environment() { make_model(device_from_environment()); }

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device& device : kDevices) names.emplace_back(device.name);
  return names;
}

void set_device(const std::string& name) {
  if (current_worker) throw std::logic_error("set_device within a launch");
  current_model() = make_model(name.empty() ? device_from_environment() : name);
}

void set_model_capability(int cc) {
  small_model.cc = cc > 0 ? cc : 90;
  set_device("");
}

void set_sm_count(int count) {
  current_model().info.sm_count =
      count > 0 ? count : make_model(device_from_environment()).info.sm_count;
}

// Only in kernels: the host may call the same functions.
void require_capability(int needed, const char* what, void* pc) {
  if (device_info().cc() >= needed || !current_worker) return;
  fail_at(pc, "{} needs sm_{}; this is the {}", what, needed, device_info().name);
}

void require_sm_90a(const char* what, void* pc) {
  if (device_info().cc() == 90) return;
  fail_at(pc, "{} needs sm_90a, which only cc 9.0 has; this is the {}", what, device_info().name);
}

// cc 10.0 and 10.3; what they have in common.
bool has_tensor_memory() { return device_info().cc() / 10 == 10; }

void require_sm_100a(const char* what, void* pc) {
  if (has_tensor_memory()) return;
  fail_at(pc, "{} needs sm_100a or sm_103a; this is the {}", what, device_info().name);
}

}  // namespace simt

const DeviceInfo& device_info() { return simt::current_model().info; }

}  // namespace cookbook
