// SPDX-License-Identifier: MIT
// Prints the device and its measured roofs as JSON; with --probe only whether there is a GPU. CUDA
// backend only: part of ./run grade.
#include "common/harness/run/roofs.hpp"

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "common/backend/backend.hpp"

int main(int argc, char** argv) {
  try {
    const std::string device = cookbook::device_info().name;
    if (argc > 1 && std::string(argv[1]) == "--probe") {
      const cookbook::DeviceMemory memory(1 << 20, "probe");
      cookbook::synchronize();
      return memory.guards_intact() ? 0 : 1;
    }
    const cookbook::Roofs roofs = cookbook::measure_roofs();
    nlohmann::json found{{"device", device}};
    // Bytes or floating-point operations per second.
    using cookbook::Roof;
    const auto add = [&](const char* name, Roof roof, double unit) {
      if (const auto value = cookbook::roof_value(roofs, roof)) found[name] = *value * unit;
    };
    add("hbm_copy", Roof::hbm_copy, 1e9);
    add("hbm_read", Roof::hbm_read, 1e9);
    add("fp32", Roof::fp32, 1e12);
    add("mma_bf16", Roof::mma_bf16, 1e12);
    add("wgmma_bf16", Roof::wgmma_bf16, 1e12);
    std::puts(found.dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
