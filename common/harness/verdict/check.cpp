// SPDX-License-Identifier: MIT
#include "common/harness/verdict/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "common/backend/device_bytes.hpp"
#include "common/harness/verdict/host_code.hpp"
#include "common/harness/verdict/parallel.hpp"

namespace cookbook {
namespace {

// Reference work (multiply-adds), and elements, beyond which only a sample of rows is compared.
constexpr double kReferenceBudget = 1e9;
constexpr std::int64_t kReferenceElements = 1 << 24;
// Elements of references that an instance keeps when other inputs are drawn.
constexpr std::size_t kKeptReferences = 1 << 20;

bool is_output(const TensorSpec& spec) { return spec.role != Role::input; }

std::string format_value(double value) { return fmt::format("{:.9g}", value); }

// Whether `got` is an acceptable result where `expected` is right; *error receives the distance.
bool acceptable(double got, double expected, double bound, DType dtype, double* error) {
  *error = 0;
  // This comes first: where the inputs hold an infinity, a bound made of their magnitudes is
  // infinite, too.
  if (std::isnan(expected)) return dtype == DType::i8 ? got == 0 : std::isnan(got);
  if (std::isinf(expected)) {
    return got == expected || (saturates(dtype) && got == rounded(dtype, expected));
  }
  if (std::isinf(bound)) return true;  // the reference says that any value will do
  // The last number of a type that saturates stands for all beyond it.
  if (saturates(dtype) && rounded(dtype, std::copysign(INFINITY, got)) == got &&
      std::copysign(expected, got) == expected && std::fabs(expected) + bound >= std::fabs(got)) {
    return true;
  }
  // An overflow of the narrow type is right when the exact result is beyond its largest value.
  if (std::isinf(got) && std::fabs(expected) + bound >= largest(dtype)) {
    return std::signbit(got) == std::signbit(expected);
  }
  *error = std::fabs(got - expected);
  return *error <= bound;  // false for NaN
}

struct RowComparison {
  Fault fault = Fault::none;  // of the first element that is wrong
  std::string message;
  double max_error = 0, error_bound = 0;
};

// Adds one row's comparison to that of the rows before it.
void compare_row(const HostTensor& after, std::int64_t row, const double* value,
                 const double* bound, RowComparison& result) {
  const TensorSpec& spec = after.spec;
  for (std::int64_t col = 0; col < spec.cols; ++col) {
    const double got = after.at(row, col);
    double error = 0;
    if (!acceptable(got, value[col], bound[col], spec.dtype, &error) && result.message.empty()) {
      const bool is_blank = spec.dtype == DType::i8 && is_poison(after, row, col);
      result.fault = is_blank ? Fault::unwritten : Fault::wrong_result;
      result.message =
          is_blank ? fmt::format("{}[{}][{}] was never written", spec.name, row, col)
                   : fmt::format("{}[{}][{}]: got {}, expected {} (error {:.3g}, allowed {:.3g})",
                                 spec.name, row, col, format_value(got), format_value(value[col]),
                                 error, bound[col]);
    }
    if (error > result.max_error) result.max_error = error, result.error_bound = bound[col];
  }
}

// All rows of a small problem; of a large one the first, the last, and one out of each of a number
// of equal strips. The position of a row in its strip follows the golden ratio, so that the upper
// rows of a tile are sampled as often as the lower ones, for any tile height. `seed` moves the
// sample.
std::vector<std::int64_t> rows_to_compare(const AnyProblem& problem, const TensorSpec& spec,
                                          std::uint64_t seed) {
  const double cost_per_row =
      problem.flops() / 2 / static_cast<double>(spec.rows) + static_cast<double>(spec.cols);
  const auto affordable = std::max<std::int64_t>(
      16, std::min(static_cast<std::int64_t>(kReferenceBudget / std::max(cost_per_row, 1.0)),
                   kReferenceElements / std::max<std::int64_t>(spec.cols, 1)));
  std::vector<std::int64_t> rows;
  if (spec.rows <= affordable) {
    for (std::int64_t row = 0; row < spec.rows; ++row) rows.push_back(row);
    return rows;
  }
  constexpr double kGolden = 0.6180339887498949, kPhase = 0.7548776662466927;
  rows.push_back(0);
  const std::int64_t strips = affordable - 2;
  for (std::int64_t i = 0; i < strips; ++i) {
    const double at = kGolden * static_cast<double>(i) + kPhase * static_cast<double>(seed % 1024);
    const std::int64_t begin = spec.rows * i / strips, end = spec.rows * (i + 1) / strips;
    rows.push_back(begin + static_cast<std::int64_t>((at - std::floor(at)) *
                                                     static_cast<double>(end - begin)));
  }
  rows.push_back(spec.rows - 1);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// What a level that is right on `first` and wrong on `now` should know of the two.
std::string first_inputs(const Draw& first, const Draw& now) {
  const std::string only = "right on the first inputs only";
  if (first.kind == now.kind) return only;
  return fmt::format("{} ({}: {}), wrong on {} ones ({})", only, input_kind_name(first.kind),
                     input_kind_text(first.kind), input_kind_name(now.kind),
                     input_kind_text(now.kind));
}

// The first fault that is noted stays.
void note(Instance::Comparison& in, Fault fault, std::string message) {
  if (in.ok) in.fault = fault, in.message = std::move(message);
  in.ok = false;
}

}  // namespace

Instance::Instance(const Ladder& ladder, const Size& size, InputKind kind, std::uint64_t seed,
                   const Variant& variant)
    : problem_(in_host_code("make()", [&] { return ladder.make_problem(size, variant); })),
      exact_(false) {
  for (TensorSpec& spec : in_host_code("tensors()", [&] { return problem_->tensors(); })) {
    HostTensor tensor;
    tensor.spec = spec;
    if (spec.role != Role::output) tensor = HostTensor(spec);
    const std::size_t misalign =
        static_cast<std::size_t>(variant.of(spec.name).misalign_elements) * dtype_bytes(spec.dtype);
    memory_.push_back(std::make_unique<DeviceMemory>(spec.bytes(), spec.name, misalign));
    pointers_.by_name[spec.name] = memory_.back()->data();
    tensors_.list.push_back(std::move(tensor));
  }
  redraw({kind, seed});
}

void Instance::redraw(const Draw& inputs) {
  for (HostTensor& tensor : tensors_.list) {
    if (tensor.spec.role == Role::output) continue;
    in_host_code("inputs: " + tensor.spec.name, [&] { draw(tensor, inputs.kind, inputs.seed); });
  }
  in_host_code("complete_inputs()", [&] { problem_->complete_inputs(tensors_); });
  drawn_ = inputs;
  exact_ = inputs.kind == InputKind::integers && problem_->exact_on_integers();
  forget_references();
  inputs_are_as_drawn_ = false;
  reset();
  note_inputs();
}

void Instance::forget_references() {
  std::size_t kept = 0;
  for (const auto& [of, reference] : references_) kept += reference.value.size();
  if (kept > kKeptReferences) references_.clear();
}

void Instance::note_inputs() {
  as_drawn_.assign(memory_.size(), 0);
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (tensors_.list[i].spec.role == Role::input) as_drawn_[i] = hash(i);
  }
}

void Instance::reset() {
  synchronize();  // errors of earlier kernels are not reported as this launch's
  for (std::size_t i = 0; i < tensors_.list.size(); ++i) {
    const TensorSpec& spec = tensors_.list[i].spec;
    if (spec.role == Role::output) {
      fill_elements(memory_[i]->data(), static_cast<std::size_t>(spec.elements()),
                    dtype_bytes(spec.dtype), poison_bits(spec.dtype));
    } else if (spec.role == Role::in_out || !inputs_are_as_drawn_) {
      const auto& storage = tensors_.list[i].storage;
      memory_[i]->copy_from_host(storage.data(), storage.size());
    }
  }
  inputs_are_as_drawn_ = true;
}

const HostTensors& Instance::read_back() {
  // Kept from one comparison to the next: for large tensors fresh pages cost more than the copy.
  if (read_back_.list.empty()) {
    for (const HostTensor& tensor : tensors_.list) {
      if (is_output(tensor.spec)) read_back_.list.emplace_back(tensor.spec);
    }
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < tensors_.list.size(); ++i) {
    if (!is_output(tensors_.list[i].spec)) continue;
    auto& storage = read_back_.list[next++].storage;
    memory_[i]->copy_to_host(storage.data(), storage.size());
  }
  in_host_code("normalise()", [&] { problem_->normalise(tensors_, read_back_); });
  return read_back_;
}

const Instance::Reference& Instance::reference(const TensorSpec& spec) {
  auto [entry, is_new] = references_.try_emplace({drawn_, spec.name});
  Reference& reference = entry->second;
  if (is_new && spec.rows > 0 && spec.cols > 0) {
    reference.rows = rows_to_compare(*problem_, spec, drawn_.seed);
    const auto count = static_cast<std::int64_t>(reference.rows.size());
    reference.value.resize(static_cast<std::size_t>(count * spec.cols));
    reference.bound.resize(reference.value.size());
    try {
      in_host_code("begin_reference()", [&] { problem_->begin_reference(tensors_); });
      in_host_code("reference_row() of " + spec.name, [&] {
        parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            problem_->reference_row(tensors_, spec.name, reference.rows[i],
                                    &reference.value[i * spec.cols],
                                    &reference.bound[i * spec.cols]);
          }
        });
      });
    } catch (...) {
      references_.erase(entry);
      throw;
    }
    if (exact_) {
      for (double& value : reference.value) value = rounded(spec.dtype, value);
      std::fill(reference.bound.begin(), reference.bound.end(), 0.0);
    }
  }
  return reference;
}

void Instance::compute_references() {
  for (const HostTensor& tensor : tensors_.list) {
    const TensorSpec& spec = tensor.spec;
    if (is_output(spec) && spec.rows > 0 && spec.cols > 0) reference(spec);
  }
}

std::uint64_t Instance::hash(std::size_t tensor) const {
  return hash_bytes(memory_[tensor]->data(), memory_[tensor]->bytes());
}

Instance::Comparison Instance::compare_outside() {
  Comparison result;
  for (std::size_t i = 0; i < tensors_.list.size(); ++i) {
    const TensorSpec& spec = tensors_.list[i].spec;
    if (!memory_[i]->guards_intact()) {
      note(result, Fault::outside_written, "wrote outside `" + spec.name + "`: guard band changed");
    }
    if (spec.role == Role::input && hash(i) != as_drawn_[i]) {
      note(result, Fault::input_changed, "input `" + spec.name + "` was changed");
      inputs_are_as_drawn_ = false;
    }
  }
  return result;
}

Instance::Comparison Instance::compare() {
  Comparison result = compare_outside();
  for (const HostTensor& after : read_back().list) {
    const TensorSpec& spec = after.spec;
    if (spec.rows == 0 || spec.cols == 0) continue;
    // Unwritten elements and touched padding, everywhere.
    std::mutex mutex;
    std::int64_t unwritten = -1, touched = -1;
    parallel_for(after.spec.elements(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t col = begin % spec.pitch;  // counted: a division per element takes too long
      for (std::int64_t at = begin; at < end; ++at, col = col + 1 == spec.pitch ? 0 : col + 1) {
        const bool padding = col >= spec.cols;
        const bool blank = is_poison(after, 0, at);
        // An i8 may be right and look blank: compare_row() decides.
        const bool may_be_blank = spec.role == Role::in_out || spec.dtype == DType::i8;
        if (padding == blank || (!padding && may_be_blank)) continue;
        const std::lock_guard lock(mutex);
        std::int64_t& first = padding ? touched : unwritten;
        if (first < 0 || at < first) first = at;
        if (!padding) return;
      }
    });
    auto index = [&](std::int64_t at) {
      return fmt::format("{}[{}][{}]", spec.name, at / spec.pitch, at % spec.pitch);
    };
    if (unwritten >= 0) note(result, Fault::unwritten, index(unwritten) + " was never written");
    if (touched >= 0) {
      note(result, Fault::padding_written,
           index(touched) + " is padding between rows and was written");
    }

    const Reference& expected = reference(spec);
    const auto rows = static_cast<std::int64_t>(expected.rows.size());
    std::int64_t first_wrong = rows;
    const bool right_so_far = result.ok;  // else something that comes first is already reported
    parallel_for(rows, 1 + (1 << 16) / spec.cols, [&](std::int64_t begin, std::int64_t end) {
      RowComparison part;
      std::int64_t wrong_at = rows;
      for (std::int64_t i = begin; i < end; ++i) {
        compare_row(after, expected.rows[i], &expected.value[i * spec.cols],
                    &expected.bound[i * spec.cols], part);
        if (!part.message.empty() && wrong_at == rows) wrong_at = i;
      }
      const std::lock_guard lock(mutex);
      if (part.max_error > result.max_error) {
        result.max_error = part.max_error;
        result.error_bound = part.error_bound;
      }
      if (wrong_at < first_wrong) {
        first_wrong = wrong_at;
        if (right_so_far) result.fault = part.fault, result.message = part.message;
        result.ok = false;
      }
    });
  }
  return result;
}

std::uint64_t Instance::output_hash() {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < tensors_.list.size(); ++i) {
    if (!is_output(tensors_.list[i].spec)) continue;
    all = mix_bits(all ^ hash(i));
  }
  return all;
}

CheckResult check_of(const Outcome& outcome, const nlohmann::json& result) {
  if (outcome.fault != Fault::none) return {outcome.fault, outcome.reason};
  return result;
}

CheckResult check_level(const LevelEntry& level, Instance& instance, const std::vector<Draw>& draws,
                        const Isolation& isolation) {
  const Support support =
      in_host_code("supports()", [&] { return level.supports(instance.problem(), device_info()); });
  if (!support) return {Fault::unsupported, support.reason};
  if (!isolation.in_process) instance.compute_references();  // once, for every child
  const auto work = [&]() -> nlohmann::json {
    CheckResult result;
    const auto end = [&result](Fault fault, std::string why) {
      result.set(fault, std::move(why));
      return result;
    };
    try {
      const auto [run, unsupported] = prepared(level, instance.problem(), instance.pointers());
      if (!run) return end(Fault::unsupported, unsupported);
      std::vector<std::uint64_t> hashes;  // of each run's outputs
      for (const Draw& draw : draws) {
        if (draw == instance.drawn()) {
          instance.reset();
        } else {
          instance.redraw(draw);
        }
        {
          const ProfilerRange range;
          run(Stream{});
          synchronize();
        }
        const auto run_number = static_cast<std::ptrdiff_t>(hashes.size());
        const auto same = std::find(draws.begin(), draws.begin() + run_number, draw);
        const bool is_repeat = same != draws.begin() + run_number;
        const std::uint64_t hash = draws.size() > 1 ? instance.output_hash() : 0;
        const bool is_equal = is_repeat && hash == hashes[same - draws.begin()];
        hashes.push_back(hash);
        // Outputs that were right once are right again, byte for byte.
        if (is_equal && instance.compare_outside().ok) continue;
        const Instance::Comparison comparison = instance.compare();
        result.max_error = std::max(result.max_error, comparison.max_error);
        result.error_bound = comparison.error_bound;
        if (!comparison.ok) {
          std::string before;
          if (run_number > 0)
            before = is_repeat ? "right on the first run only" : first_inputs(draws[0], draw);
          return end(comparison.fault, before + (before.empty() ? "" : ": ") + comparison.message);
        }
        if (is_repeat && level.same_every_run) {
          return end(Fault::runs_differ, "two runs on the same inputs differ");
        }
      }
    } catch (const std::exception& error) {
      return end(fault_of(error), text_of_run(error));
    } catch (...) {
      return end(Fault::host_crash, thrown_text("run()", std::current_exception()));
    }
    return result;
  };
  nlohmann::json found;
  const Outcome outcome = run_isolated(isolation, work, found);
  return check_of(outcome, found);
}

CheckResult check_again(const std::function<void(Stream)>& run, Instance& instance,
                        std::uint64_t right_hash, bool same_every_run) {
  instance.reset();
  run(Stream{});
  synchronize();
  const Instance::Comparison outside = instance.compare_outside();
  if (!outside.ok) return {outside.fault, outside.message};
  if (instance.output_hash() == right_hash) return {};  // the outputs that compare() passed
  const Instance::Comparison now = instance.compare();
  if (!now.ok) return {now.fault, now.message};
  if (!same_every_run) return {};
  return {Fault::runs_differ, "the output differs from before"};
}

}  // namespace cookbook
