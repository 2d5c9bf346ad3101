// SPDX-License-Identifier: MIT
// Runs a level on poisoned outputs and compares every element with fp64.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/harness/contract/level.hpp"
#include "common/harness/verdict/inputs.hpp"
#include "common/harness/verdict/isolate.hpp"
#include "common/harness/verdict/verdict.hpp"

namespace cookbook {

/// The inputs of one run, as draw() makes them.
struct Draw {
  InputKind kind = InputKind::normal;
  std::uint64_t seed = 1;
  auto operator<=>(const Draw&) const = default;
};

/// One problem with drawn inputs, device buffers and its fp64 reference (computed once, on first
/// use).
class Instance {
 public:
  /// Allocates and draws; throws BadSize for a size the problem cannot have.
  Instance(const Ladder& ladder, const Size& size, InputKind kind, std::uint64_t seed,
           const Variant& variant = {});

  const AnyProblem& problem() const { return *problem_; }
  const DevicePointers& pointers() const { return pointers_; }
  /// The inputs as drawn, on the host; an output has its extents there and no elements.
  const HostTensors& tensors() const { return tensors_; }

  /// Draws other inputs into the same buffers; else as reset(). The references of small problems
  /// are kept, for when the same inputs are drawn again.
  void redraw(const Draw& draw);
  const Draw& drawn() const { return drawn_; }
  /// The inputs as they are drawn now, for `times` runs of check_level().
  std::vector<Draw> drawn(int times) const {
    return std::vector<Draw>(static_cast<std::size_t>(times), drawn_);
  }

  /// Poisons every output on the device, and puts back inputs that a level has changed.
  void reset();

  struct Comparison {
    bool ok = true;
    Fault fault = Fault::none;  ///< the first thing wrong
    std::string message;        ///< the same for people: tensor, index, got, expected
    double max_error = 0;       ///< largest |got - expected| over the rows compared
    double error_bound = 0;     ///< the bound at that element
  };
  /// Reads the outputs back: values against the reference, padding unchanged, and no element left
  /// unwritten anywhere. Also that guard bands are intact and inputs unchanged, by their hashes.
  ///
  /// If the reference of a problem would take too long, only some rows are compared, each over all
  /// its columns: the first, the last, and one in each of at least 14 equal strips. Errors in all
  /// tiles, in a whole strip, or in a first or last column are found; a single wrong element
  /// elsewhere may not be. Another seed samples other rows, and the tests' sizes are compared
  /// whole.
  ///
  /// On InputKind::integers the allowed error is zero, unless AnyProblem::exact_on_integers() says
  /// otherwise: an element must be the result rounded to the output's type. +0 equals -0.
  Comparison compare();

  /// The first input or guard band that a run has changed. The next reset() then restores the
  /// inputs.
  Comparison compare_outside();

  /// Computes what compare() compares with, which it would otherwise do when it is first called:
  /// for processes that are forked from here and share it.
  void compute_references();

  /// A hash of the outputs as they are on the device now: equal runs give equal hashes.
  std::uint64_t output_hash();

 private:
  struct Reference {
    std::vector<std::int64_t> rows;    // those that are compared
    std::vector<double> value, bound;  // (rows.size(), columns)
  };
  const Reference& reference(const TensorSpec& spec);
  void forget_references();                      // where they have become many
  std::uint64_t hash(std::size_t tensor) const;  // of the buffer on the device now
  const HostTensors& read_back();  // the outputs as they are on the device now, normalised

  void note_inputs();  // their hashes as they are on the device now

  std::shared_ptr<AnyProblem> problem_;
  Draw drawn_;
  bool exact_;           // on these inputs the output must be the correctly rounded result
  HostTensors tensors_;  // inputs as drawn; outputs have no storage
  HostTensors read_back_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  DevicePointers pointers_;
  std::vector<std::uint64_t> as_drawn_;  // the hash of each input as it was at first
  std::map<std::pair<Draw, std::string>, Reference> references_;  // by inputs and tensor
  bool inputs_are_as_drawn_ = false;                              // on the device
};

/// The check of a level whose isolated work ended as `outcome`: with a fault, or with what `result`
/// holds.
CheckResult check_of(const Outcome& outcome, const nlohmann::json& result);

/// Runs `level` once on each of `draws`, each time on freshly poisoned outputs, and compares all.
/// There is one plan, and inputs are written into the same buffers: what one run leaves behind must
/// not reach the next. Runs on equal inputs must give equal outputs, unless the level says
/// same_every_run = false: then each must be within its bound.
/// Kernels run as `isolation` says; by default in this process.
CheckResult check_level(const LevelEntry& level, Instance& instance, const std::vector<Draw>& draws,
                        const Isolation& isolation = {.in_process = true});

/// Checks `run` once more after it has run many times: on poisoned outputs. The result must hash to
/// `right_hash`, the hash of outputs that Instance::compare() passed, and guard bands and inputs
/// must be unchanged. This is the only check of the runs in between. Without `same_every_run`
/// another hash is right within the bound.
CheckResult check_again(const std::function<void(Stream)>& run, Instance& instance,
                        std::uint64_t right_hash, bool same_every_run = true);

}  // namespace cookbook
