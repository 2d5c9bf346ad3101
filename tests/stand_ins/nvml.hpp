// SPDX-License-Identifier: MIT
#pragma once

/// What the stand-in for libnvidia-ml.so.1 answers; it exports one, called `fake_nvml`.
struct FakeNvml {
  unsigned sm_mhz = 1980, max_sm_mhz = 1980, memory_mhz = 2619, max_memory_mhz = 3201;
  unsigned celsius = 40, milliwatts = 350500;
  unsigned long long millijoules = 2500;
  int samples = 0;        ///< how often the SM clock was asked for
  bool fails = false;     ///< the SM clock cannot be read
  char bus[32] = {};      ///< what the device was looked up by
  unsigned slow_for = 0;  ///< this number of samples still see `slow_mhz`
  unsigned slow_mhz = 0;
};
