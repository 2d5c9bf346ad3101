// SPDX-License-Identifier: MIT
// Levels on another model device.
#pragma once

#include <sys/mman.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/harness/contract/level.hpp"

namespace cookbook {

/// The model device while it lives, afterwards that of the environment again.
class OnDevice {
 public:
  explicit OnDevice(const std::string& name) { simt::set_device(name); }
  ~OnDevice() { simt::set_device(""); }
  OnDevice(const OnDevice&) = delete;
};

class RunningBlocks {
 public:
  explicit RunningBlocks(simt::RunBlocks blocks) { simt::set_run_blocks(blocks); }
  ~RunningBlocks() { simt::set_run_blocks(simt::RunBlocks::all); }
  RunningBlocks(const RunningBlocks&) = delete;
};

/// Addresses for the tensors of a problem of any size; memory only where something is written.
class SparseTensors {
 public:
  explicit SparseTensors(const AnyProblem& problem) {
    for (const TensorSpec& spec : problem.tensors()) {
      const std::size_t bytes = spec.bytes() + 1;
      void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      mapped_.emplace_back(memory, bytes);
      pointers_.by_name[spec.name] = memory;
    }
  }
  ~SparseTensors() {
    for (const auto& [memory, bytes] : mapped_) munmap(memory, bytes);
  }
  SparseTensors(const SparseTensors&) = delete;
  const DevicePointers& pointers() const { return pointers_; }

 private:
  std::vector<std::pair<void*, std::size_t>> mapped_;
  DevicePointers pointers_;
};

/// What the current model device says to a level that `supports` accepts: nothing, or that it
/// rejects a launch or lacks an instruction. `supported` tells whether the level was accepted.
inline std::string device_complaint(const LevelEntry& level, const AnyProblem& problem,
                                    const DevicePointers& pointers, bool* supported) {
  const Support support = level.supports(problem, device_info());
  *supported = support.ok;
  if (!support) return support.reason.empty() ? "refused without a reason" : "";
  try {
    level.prepare(problem, pointers)(Stream{});
  } catch (const std::invalid_argument&) {  // a rule that supports() cannot see
    *supported = false;
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace cookbook
