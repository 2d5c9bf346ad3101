// SPDX-License-Identifier: MIT
// A problem whose reference a test gives, and a level whose output it gives: no kernel.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/backend/device_bytes.hpp"
#include "common/harness/verdict/check.hpp"

namespace cookbook {

struct GivenProblem final : AnyProblem {
  using Reference = std::function<void(const HostTensors&, const std::string& output,
                                       std::int64_t row, double* value, double* bound)>;
  std::vector<TensorSpec> specs;
  Reference row;
  std::function<void(const HostTensors&, HostTensors& outputs)> normal_form = nullptr;
  double operations = 0, moved = 0;  // flops() and bytes()
  bool exact = true;

  std::vector<TensorSpec> tensors() const override { return specs; }
  double bytes() const override { return moved; }
  double flops() const override { return operations; }
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t at,
                     double* value, double* bound) const override {
    row(tensors, output, at, value, bound);
  }
  void normalise(const HostTensors& tensors, HostTensors& outputs) const override {
    if (normal_form) normal_form(tensors, outputs);
  }
  bool exact_on_integers() const override { return exact; }
  const void* get() const override { return this; }
};

/// Stores `value`, rounded to `spec`'s type, at element `index` of the buffer at `data` - or, for
/// an index outside of it, beside it.
inline void store(void* data, const TensorSpec& spec, std::int64_t index, double value) {
  const auto width = static_cast<std::int64_t>(dtype_bytes(spec.dtype));
  HostTensor element({"", spec.dtype, 1, 1, 1, Role::input});
  element.set(0, 0, value);
  char* to = static_cast<char*>(data) + index * width;
  if (width == 1) return fill_elements(to, 1, 1, *element.data<std::uint8_t>());
  if (width == 2) return fill_elements(to, 1, 2, *element.data<std::uint16_t>());
  for (std::int64_t word = 0; word < width / 4; ++word) {
    fill_elements(to + 4 * word, 1, 4, element.data<std::uint32_t>()[word]);
  }
}

/// One problem and one level that does `run(tensors' addresses, how many runs were before)`.
struct Given {
  std::shared_ptr<GivenProblem> problem = std::make_shared<GivenProblem>();
  std::function<void(const DevicePointers&, int)> run = [](const DevicePointers&, int) {};
  InputKind kind = InputKind::normal;
  std::uint64_t seed = 1;
  Variant variant = {};

  Ladder ladder() const {
    Ladder made;
    made.make_problem = [problem = problem](const Size&, const Variant&) { return problem; };
    return made;
  }
  LevelEntry level() const {
    LevelEntry made;
    made.name = "given";
    made.supports = [](const AnyProblem&, const DeviceInfo&) { return Support::yes(); };
    made.prepare = [run = run](const AnyProblem&, const DevicePointers& at) {
      auto before = std::make_shared<int>(0);
      return [run, at, before](Stream) { run(at, (*before)++); };
    };
    made.claims = [](const AnyProblem&) { return Claims{}; };
    return made;
  }
  /// The outputs that `run` leaves, compared.
  Instance::Comparison compare() const {
    Instance instance(ladder(), {}, kind, seed, variant);
    run(instance.pointers(), 0);
    return instance.compare();
  }
  CheckResult check(int repeats = 2) const {
    Instance instance(ladder(), {}, kind, seed, variant);
    return check_level(level(), instance, instance.drawn(repeats));
  }
};

/// One output `out` (1 x values.size()) whose level writes `got`.
inline Given given_row(DType dtype, std::vector<double> got, std::vector<double> expected,
                       std::vector<double> bounds) {
  Given given;
  const auto cols = static_cast<std::int64_t>(expected.size());
  given.problem->specs = {{"out", dtype, 1, cols, cols, Role::output}};
  given.problem->row = [expected = std::move(expected), bounds = std::move(bounds)](
                           const HostTensors&, const std::string&, std::int64_t, double* value,
                           double* bound) {
    std::copy(expected.begin(), expected.end(), value);
    std::copy(bounds.begin(), bounds.end(), bound);
  };
  given.run = [spec = given.problem->specs[0], got = std::move(got)](const DevicePointers& at,
                                                                     int) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      store(at.get<void>("out"), spec, static_cast<std::int64_t>(i), got[i]);
    }
  };
  return given;
}

}  // namespace cookbook
