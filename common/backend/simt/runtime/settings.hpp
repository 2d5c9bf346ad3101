// SPDX-License-Identifier: MIT
// The COOKBOOK_SIMT_* environment variables, and the device that the model stands for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cookbook::simt {

/// The variable `name` as a whole number from `least` to `most`; `otherwise` where it is unset or
/// empty. Throws std::runtime_error with one line that says what is accepted.
uint64_t environment_number(const char* name, uint64_t otherwise, uint64_t least, uint64_t most);

/// Reads every variable once and throws the error of the first wrong one. Otherwise each would be
/// read where it is first needed, inside a launch, and a wrong value would look like an error of
/// the kernel.
void check_environment();

/// COOKBOOK_SIMT_SPIN_SECONDS: how long all threads may spin before a launch counts as hanging.
uint64_t spin_seconds_from_environment();

/// COOKBOOK_TIME_LIMIT: after this number of seconds without a finished thread the process ends; 0:
/// never.
uint64_t time_limit_from_environment();

/// The devices that COOKBOOK_SIMT_DEVICE and set_device() take, by compute capability: "t4" ...
std::vector<std::string> device_names();

/// Makes device_info() that of a device of the table, in capitals or not, or for "" that of
/// COOKBOOK_SIMT_DEVICE. The other COOKBOOK_SIMT_* variables override single values. References to
/// device_info() stay valid. Not while a launch runs. Throws std::runtime_error with one line that
/// lists the devices.
void set_device(const std::string& name);

/// False with RunBlocks::none (launch.hpp).
bool runs_blocks();

/// Throws the error of a wrong COOKBOOK_SIMT_* variable of the device.
void check_device_environment();

}  // namespace cookbook::simt
