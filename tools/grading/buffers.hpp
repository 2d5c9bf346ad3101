// SPDX-License-Identifier: MIT
// The buffers of a problem's tensors in the process of a submission.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/device_bytes.hpp"
#include "common/harness/contract/level.hpp"
#include "common/harness/verdict/inputs.hpp"

namespace cookbook::grading {

class Buffers {
 public:
  /// Allocates; throws std::bad_alloc.
  Buffers(std::vector<TensorSpec> specs, const Variant& variant) : specs_(std::move(specs)) {
    for (const TensorSpec& spec : specs_) {
      const std::size_t shift =
          static_cast<std::size_t>(variant.misalign_elements) * dtype_bytes(spec.dtype);
      memory_.push_back(std::make_unique<DeviceMemory>(spec.bytes(), spec.name, shift));
      pointers_.by_name[spec.name] = memory_.back()->data();
    }
  }

  const std::vector<TensorSpec>& specs() const { return specs_; }
  const DevicePointers& pointers() const { return pointers_; }
  DeviceMemory& memory(std::size_t tensor) { return *memory_[tensor]; }

  /// Inputs from `bytes_of(tensor)`, which returns their address on the host; outputs are poisoned.
  template <class BytesOf>
  void fill(const BytesOf& bytes_of) {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const TensorSpec& spec = specs_[i];
      if (spec.role == Role::output) {
        fill_elements(memory_[i]->data(), static_cast<std::size_t>(spec.elements()),
                      dtype_bytes(spec.dtype), poison_bits(spec.dtype));
      } else {
        memory_[i]->copy_from_host(bytes_of(i), spec.bytes());
      }
    }
  }

  /// The first tensor whose guard band was written, or nothing.
  std::string written_outside() const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (!memory_[i]->guards_intact()) return specs_[i].name;
    }
    return "";
  }

 private:
  std::vector<TensorSpec> specs_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  DevicePointers pointers_;
};

}  // namespace cookbook::grading
