// SPDX-License-Identifier: MIT
// The GPU that the model stands for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cookbook::simt {

/// The devices that COOKBOOK_SIMT_DEVICE and set_device() take, by compute capability: "t4" ...
std::vector<std::string> device_names();

/// Makes device_info() that of a device of the table, in capitals or not, or for "" that of
/// COOKBOOK_SIMT_DEVICE. The other COOKBOOK_SIMT_* variables override single values. References to
/// device_info() stay valid. Not while a launch runs. Throws std::runtime_error with one line that
/// lists the devices.
void set_device(const std::string& name);

/// The compute capability of the model that set_device("") gives where COOKBOOK_SIMT_DEVICE names
/// none, such as 100; 0: 90 again. Makes device_info() that of set_device("").
void set_model_capability(int cc);

/// Throws the error of a wrong COOKBOOK_SIMT_* variable of the device.
void check_device_environment();

/// The number of SMs in device_info(), from the next launch on; 0: as it was at first. Not during a
/// launch.
void set_sm_count(int count);

// ---- for the runtime and the units ----

// What an SM has for the blocks that are resident at once.
struct SmLimits {
  unsigned threads = 0, blocks = 0;
  size_t reserved_shared_bytes = 0;  // of every block, besides what it asks for
};
const SmLimits& sm_limits();
// Blocks that are resident at once on an SM of the model device; 0 where not even one fits.
unsigned resident_blocks_per_sm(size_t shared_bytes, unsigned block_threads);

// Fails unless the model device can execute `what`: an instruction of sm_`needed`, or one of the
// architecture-specific targets sm_90a and sm_100a, which later devices do not have.
void require_capability(int needed, const char* what, void* pc);
void require_sm_90a(const char* what, void* pc);
void require_sm_100a(const char* what, void* pc);
// Whether it is an sm_100a or sm_103a.
bool has_tensor_memory();

}  // namespace cookbook::simt
