// SPDX-License-Identifier: MIT
#include "common/bench/nvml.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace cookbook {
namespace {

// The part of NVML's C interface that is used here (NVML API reference): all functions return 0 for
// success. Loading it at run time keeps the build free of a driver library.
struct Nvml {
  using Device = void*;
  int (*init)() = nullptr;
  int (*by_pci)(const char*, Device*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*max_clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;  // missing before Volta
  Device device = nullptr;
  bool ready = false;

  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) return;
    auto load = [library](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    if (!load(init, "nvmlInit_v2") || !load(by_pci, "nvmlDeviceGetHandleByPciBusId_v2") ||
        !load(clock, "nvmlDeviceGetClockInfo") || !load(max_clock, "nvmlDeviceGetMaxClockInfo") ||
        !load(temperature, "nvmlDeviceGetTemperature") || !load(power, "nvmlDeviceGetPowerUsage")) {
      return;
    }
    load(energy, "nvmlDeviceGetTotalEnergyConsumption");
    int ordinal = 0;
    char bus[32] = {};
    ready = init() == 0 && cudaGetDevice(&ordinal) == cudaSuccess &&
            cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) == cudaSuccess &&
            by_pci(bus, &device) == 0;
  }
};

Nvml& nvml() {
  static Nvml instance;
  return instance;
}

constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;

}  // namespace

std::optional<ClockSample> sample_clocks() {
  Nvml& api = nvml();
  if (!api.ready) return std::nullopt;
  unsigned sm = 0, memory = 0, celsius = 0, milliwatts = 0;
  if (api.clock(api.device, kSmClock, &sm) != 0) return std::nullopt;
  api.clock(api.device, kMemoryClock, &memory);
  api.temperature(api.device, 0, &celsius);
  api.power(api.device, &milliwatts);
  return ClockSample{0, static_cast<int>(sm), static_cast<int>(memory), static_cast<int>(celsius),
                     milliwatts * 1e-3};
}

std::optional<double> total_joules() {
  Nvml& api = nvml();
  unsigned long long millijoules = 0;
  if (!api.ready || !api.energy || api.energy(api.device, &millijoules) != 0) return std::nullopt;
  return 1e-3 * static_cast<double>(millijoules);
}

int max_sm_clock_mhz() {
  unsigned mhz = 0;
  if (nvml().ready) nvml().max_clock(nvml().device, kSmClock, &mhz);
  return static_cast<int>(mhz);
}

}  // namespace cookbook
