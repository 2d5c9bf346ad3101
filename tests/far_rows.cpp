// SPDX-License-Identifier: MIT
#include "tests/far_rows.hpp"

#include <fmt/format.h>

#include <cmath>

namespace cookbook {
namespace {

/// Copies rows between a tensor and the same one with a very large pitch.
void copy_rows(HostTensor& near, DeviceMemory& far, std::int64_t pitch, bool to_device) {
  const std::size_t width = dtype_bytes(near.spec.dtype);
  const std::size_t bytes = static_cast<std::size_t>(near.spec.cols) * width;
  for (std::int64_t row = 0; row < near.spec.rows; ++row) {
    const std::size_t at = static_cast<std::size_t>(row * pitch) * width;
    std::byte* host = near.storage.data() + static_cast<std::size_t>(row * near.spec.pitch) * width;
    to_device ? far.copy_from_host(host, bytes, at) : far.copy_to_host(host, bytes, at);
  }
}

}  // namespace

CheckResult check_far_rows(const LevelEntry& level, const Ladder& ladder,
                           const LayoutCase& layout) {
  const auto near = ladder.make_problem(layout.size, {});
  const auto far = ladder.make_problem(layout.size, layout.variant);
  if (const Support support = level.supports(*far, device_info()); !support) {
    return {Fault::unsupported, support.reason};
  }
  const auto near_specs = near->tensors(), far_specs = far->tensors();
  HostTensors tensors;
  std::vector<DeviceMemory> memory;
  DevicePointers pointers;
  for (const TensorSpec& spec : near_specs) {
    HostTensor& tensor = tensors.list.emplace_back(spec);
    spec.role == Role::output ? poison(tensor) : draw(tensor, layout.kind, 1);
  }
  near->complete_inputs(tensors);
  for (std::size_t i = 0; i < far_specs.size(); ++i) {
    const TensorSpec& spec = far_specs[i];
    memory.emplace_back(spec.bytes(), spec.name);
    copy_rows(tensors.list[i], memory.back(), spec.pitch, true);
    pointers.by_name[spec.name] = memory.back().data();
  }
  std::function<void(Stream)> run;
  try {
    run = level.prepare(*far, pointers);
  } catch (const std::invalid_argument& rule) {
    return {Fault::unsupported, rule.what()};
  }
  try {
    run(Stream{});
    synchronize();
  } catch (const std::exception& error) {
    return {fault_of(error), error.what()};
  }
  HostTensors outputs;
  for (std::size_t i = 0; i < near_specs.size(); ++i) {
    const TensorSpec& spec = near_specs[i];
    if (!memory[i].guards_intact()) {
      return {Fault::outside_written, "wrote outside `" + spec.name + "`"};
    }
    if (spec.role == Role::input) continue;
    outputs.list.emplace_back(spec);
    copy_rows(outputs.list.back(), memory[i], far_specs[i].pitch, false);
  }
  near->normalise(tensors, outputs);
  near->begin_reference(tensors);
  for (const HostTensor& after : outputs.list) {
    const TensorSpec& spec = after.spec;
    std::vector<double> value(static_cast<std::size_t>(spec.cols)), bound(value.size());
    for (std::int64_t row = 0; row < spec.rows; ++row) {
      near->reference_row(tensors, spec.name, row, value.data(), bound.data());
      for (std::int64_t col = 0; col < spec.cols; ++col) {
        const auto c = static_cast<std::size_t>(col);
        const double got = after.at(row, col);
        if (got == value[c] || std::fabs(got - value[c]) <= bound[c]) continue;
        // An element that was never written is a NaN, too.
        if (std::isnan(got) && std::isnan(value[c]) && !is_poison(after, row, col)) continue;
        return {Fault::wrong_result,
                fmt::format("{}[{}][{}]: got {}, expected {}", spec.name, row, col, got, value[c])};
      }
    }
  }
  return {};
}

}  // namespace cookbook
