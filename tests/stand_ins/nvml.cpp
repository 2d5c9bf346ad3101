// SPDX-License-Identifier: MIT
// Built as libnvidia-ml.so.1 beside tests/bench_test.cpp: NVML's functions, with made-up answers.
#include "tests/stand_ins/nvml.hpp"

#include <cstring>

extern "C" {

FakeNvml fake_nvml;

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  std::strncpy(fake_nvml.bus, bus, sizeof fake_nvml.bus - 1);
  *device = &fake_nvml;
  return 0;
}

// `kind`: 0 graphics, 1 SM, 2 memory (NVML API reference, nvmlClockType_t).
int nvmlDeviceGetClockInfo(void* device, int kind, unsigned* mhz) {
  if (device != &fake_nvml || kind < 1 || kind > 2) return 2;
  if (kind == 2) return *mhz = fake_nvml.memory_mhz, 0;
  ++fake_nvml.samples;
  if (fake_nvml.fails) return 15;
  const bool slow = fake_nvml.slow_for > 0;
  fake_nvml.slow_for -= slow;
  *mhz = slow ? fake_nvml.slow_mhz : fake_nvml.sm_mhz;
  return 0;
}

int nvmlDeviceGetMaxClockInfo(void* device, int kind, unsigned* mhz) {
  if (device != &fake_nvml || kind < 1 || kind > 2) return 2;
  *mhz = kind == 1 ? fake_nvml.max_sm_mhz : fake_nvml.max_memory_mhz;
  return 0;
}

// `sensor`: 0 is the GPU's.
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (device != &fake_nvml || sensor != 0) return 2;
  return *celsius = fake_nvml.celsius, 0;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (device != &fake_nvml) return 2;
  return *milliwatts = fake_nvml.milliwatts, 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (device != &fake_nvml || fake_nvml.fails) return 2;
  return *millijoules = fake_nvml.millijoules, 0;
}
}
