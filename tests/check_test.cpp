// SPDX-License-Identifier: MIT
// What decides whether a level is right: comparison, sampled rows, narrow types, inputs, claims,
// statistics. No kernels: a "level" here is a few stores by the test.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "common/device/fp8.cuh"
#include "common/harness/contract/claiming.hpp"
#include "common/harness/report/rates.hpp"
#include "common/harness/report/statistics.hpp"
#include "common/harness/run/process.hpp"
#include "common/harness/run/runner.hpp"
#include "common/harness/verdict/acceptance.hpp"
#include "common/harness/verdict/claims_check.hpp"
#include "tests/given.hpp"
#include "tests/special_values.hpp"
#include "tests/ended.hpp"
#include "tests/text.hpp"

namespace cookbook {
namespace {

// A level passes that writes the first of each pair where the second is expected, or fails.
using Pairs = std::vector<std::pair<double, double>>;
void passes(DType dtype, double bound, const Pairs& pairs, bool expected_to = true) {
  for (const auto& [got, expected] : pairs) {
    EXPECT_EQ(given_row(dtype, {got}, {expected}, {bound}).compare().ok, expected_to)
        << dtype_name(dtype) << " " << got << " for " << expected << ", " << bound
        << " off at most";
  }
}
void fails(DType dtype, double bound, const Pairs& pairs) { passes(dtype, bound, pairs, false); }

// ---- one element -------------------------------------------------------------------------------

// The aligned one is what takes a kernel's path of 16-byte accesses over rows that are not
// adjacent.
TEST(Acceptance, LayoutsHaveRowsAndBasesOnAndOffBoundariesOf16Bytes) {
  Ladder ladder = given_row(DType::f32, {1}, {1}, {0}).ladder();
  for (const Judge judge : {Judge::tests, Judge::exercise, Judge::grader}) {
    int odd_rows = 0, aligned_rows = 0, odd_bases = 0, both = 0;
    for (const AcceptanceRun& run :
         acceptance_runs(judge, Axis::layouts, ladder, scope_of(ladder, {1}))) {
      const Variant& variant = run.variant;
      const bool pitch = variant.extra_pitch % 2 != 0, base = variant.misalign_elements % 2 != 0;
      odd_rows += pitch && variant.misalign_elements == 0;
      aligned_rows += variant.extra_pitch > 0 && variant.extra_pitch % 8 == 0 && !base;
      odd_bases += base && variant.extra_pitch == 0;
      both += pitch && base;
      EXPECT_TRUE(variant.tensors.empty());
    }
    EXPECT_EQ((std::vector<int>{odd_rows, aligned_rows, odd_bases, both}),
              (std::vector<int>{1, 1, 1, 1}));
  }
}

TEST(Compare, ABoundIsWhereItSaysAndItselfStillRight) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const double sign : {-1.0, 1.0}) {
      const double half_off = 1 + sign * 0.5;
      passes(dtype, 0, {{1, 1}});
      passes(dtype, 0.5, {{half_off, 1}});
      passes(dtype, 0.5625, {{half_off, 1}});
      fails(dtype, 0.4375, {{half_off, 1}});
      fails(dtype, 0, {{1 + sign * 0.125, 1}});
      fails(dtype, 1.9, {{-1, 1}});
      passes(dtype, 2, {{-1, 1}});
    }
    passes(dtype, 0, {{0.0, -0.0}});
    fails(dtype, 0, {{0x1p-14, 0}});
  }
}

TEST(Compare, NanAndInfinity) {
  for (const double bound : {0.0, 1.0, 1e30}) {
    passes(DType::f32, bound, {{kNan, kNan}, {kInf, kInf}, {-kInf, -kInf}});
    fails(
        DType::f32, bound,
        {{1, kNan}, {kInf, kNan}, {kNan, 1}, {-kInf, kInf}, {1e38, kInf}, {kNan, kInf}, {kInf, 1}});
  }
  passes(DType::f32, kInf, {{0.0, 3}, {-1e30, 3}, {kInf, 3}, {-kInf, 3}, {kNan, 3}});
  fails(DType::f32, kInf, {{1, kNan}, {1, kInf}});
  fails(DType::f32, kNan, {{2, 1}});  // a NaN allows nothing
}

// Infinity is right where the exact result may round to it, and only with its sign.
TEST(Compare, OverflowOfANarrowType) {
  passes(DType::f16, 0, {{kInf, 65600}, {-kInf, -65600}});
  fails(DType::f16, 0, {{-kInf, 65600}, {kInf, -65600}});
  passes(DType::f16, 4, {{kInf, 65500}});  // 65,504 is the largest
  fails(DType::f16, 3, {{kInf, 65500}});
  fails(DType::f16, 100, {{kInf, 60000}});
  fails(DType::bf16, 0.5, {{kInf, 65600}});
  fails(DType::f32, 0.5, {{kInf, 65600}});
  passes(DType::f32, 0, {{kInf, 3.5e38}});
  passes(DType::bf16, 0, {{kInf, 3.4e38}});
  fails(DType::bf16, 0, {{kInf, 3.38e38}});
}

TEST(Compare, SaysWhatIsWrongFirstAndTheLargestErrorOfAll) {
  const auto found =
      given_row(DType::f32, {1, 2.5, 7, 4}, {1, 2, 3, 5}, {0, 0.25, 4.5, 0.75}).compare();
  EXPECT_FALSE(found.ok);
  EXPECT_EQ(found.fault, Fault::wrong_result);
  EXPECT_EQ(found.message, "out[0][1]: got 2.5, expected 2 (error 0.5, allowed 0.25)");
  EXPECT_EQ(found.max_error, 4);
  EXPECT_EQ(found.error_bound, 4.5);
  const auto right = given_row(DType::f32, {1, 2.5}, {1, 2}, {0, 0.5}).compare();
  EXPECT_TRUE(right.ok);
  EXPECT_EQ(right.message, "");
  EXPECT_EQ(right.max_error, 0.5);
  EXPECT_EQ(right.error_bound, 0.5);
}

// ---- small whole numbers -----------------------------------------------------------------------

TEST(Compare, WholeNumbersMustGiveTheRoundedResult) {
  // 257 lies between the bf16 256 and 258: a tie, to even.
  const auto given = [](double got, bool exact, InputKind kind) {
    Given made = given_row(DType::bf16, {got}, {257}, {8});
    made.problem->exact = exact;
    made.kind = kind;
    return made.compare().ok;
  };
  EXPECT_TRUE(given(256, true, InputKind::integers));
  EXPECT_FALSE(given(258, true, InputKind::integers));
  EXPECT_TRUE(given(258, false, InputKind::integers));
  EXPECT_TRUE(given(258, true, InputKind::normal));
  EXPECT_FALSE(given(270, false, InputKind::integers));
  for (const InputKind kind : all_input_kinds()) {
    EXPECT_EQ(given(258, true, kind), kind != InputKind::integers) << input_kind_name(kind);
  }
  Given wide = given_row(DType::f32, {3}, {3}, {1});
  wide.kind = InputKind::integers;
  EXPECT_TRUE(wide.compare().ok);
  wide = given_row(DType::f32, {3 + 0x1p-22}, {3}, {1});
  wide.kind = InputKind::integers;
  EXPECT_EQ(wide.compare().message,
            "out[0][0]: got 3.00000024, expected 3 (error 2.38e-07, allowed 0)");
}

struct Plain {
  std::vector<TensorSpec> tensors() const { return {}; }
  double bytes() const { return 0; }
  double flops() const { return 0; }
  void reference_row(const HostTensors&, const std::string&, std::int64_t, double*, double*) const {
  }
};
struct Inexact : Plain {
  static constexpr bool kExactOnIntegers = false;
};
TEST(Compare, AProblemIsExactUnlessItSaysOtherwise) {
  EXPECT_TRUE(ProblemHolder<Plain>(Plain{}).exact_on_integers());
  EXPECT_FALSE(ProblemHolder<Inexact>(Inexact{}).exact_on_integers());
}

// ---- everything else that must not change ------------------------------------------------------

// in (3 x 4), out (3 x 4) and more (2 x 2), all with two elements of padding between rows.
Given three_tensors() {
  Given given;
  given.problem->specs = {{"in", DType::f32, 3, 4, 6, Role::input},
                          {"out", DType::f16, 3, 4, 6, Role::output},
                          {"more", DType::bf16, 2, 2, 4, Role::output}};
  given.problem->row = [](const HostTensors& tensors, const std::string& output, std::int64_t row,
                          double* value, double* bound) {
    for (std::int64_t col = 0; col < tensors[output].spec.cols; ++col) {
      value[col] = static_cast<double>(10 * row + col) + (output == "more" ? 0.5 : 0);
      bound[col] = 0;
    }
  };
  return given;
}
void write_right(const Given& given, const DevicePointers& at) {
  for (const TensorSpec& spec : given.problem->specs) {
    for (std::int64_t row = 0; row < spec.rows && spec.role == Role::output; ++row) {
      for (std::int64_t col = 0; col < spec.cols; ++col) {
        store(at.get<void>(spec.name), spec, row * spec.pitch + col,
              static_cast<double>(10 * row + col) + (spec.name == "more" ? 0.5 : 0));
      }
    }
  }
}
// What is said when `also` is done after the right outputs were written.
std::string after(std::function<void(const Given&, const DevicePointers&)> also,
                  const Variant& variant = {}) {
  Given given = three_tensors();
  given.variant = variant;
  given.run = [given, also = std::move(also)](const DevicePointers& at, int) {
    write_right(given, at);
    also(given, at);
  };
  const Instance::Comparison found = given.compare();
  EXPECT_EQ(found.ok, found.message.empty());
  return found.message;
}
auto stores(const char* name, int tensor, std::int64_t index, double value) {
  return [=](const Given& given, const DevicePointers& at) {
    store(at.get<void>(name), given.problem->specs[tensor], index, value);
  };
}

TEST(Compare, OutputsPaddingGuardsAndInputs) {
  const auto nothing = [](const Given&, const DevicePointers&) {};
  for (const Variant& variant : {Variant{}, Variant{.misalign_elements = 3}}) {
    EXPECT_EQ(after(nothing, variant), "");
    EXPECT_EQ(after(stores("out", 1, 4, 0), variant),
              "out[0][4] is padding between rows and was written");
    EXPECT_EQ(after(stores("out", 1, 11, kNan), variant),
              "out[1][5] is padding between rows and was written");
    EXPECT_EQ(after(stores("more", 2, 2, 1), variant),
              "more[0][2] is padding between rows and was written");
    EXPECT_EQ(after(stores("out", 1, 16, 0), variant), "wrote outside `out`: guard band changed");
    EXPECT_EQ(after(stores("out", 1, -1, 0), variant), "wrote outside `out`: guard band changed");
    EXPECT_EQ(after(stores("in", 0, 16, 0), variant), "wrote outside `in`: guard band changed");
    EXPECT_EQ(after(stores("in", 0, 0, 77), variant), "input `in` was changed");
    EXPECT_EQ(after(stores("in", 0, 15, 77), variant), "input `in` was changed");
    EXPECT_EQ(after(stores("in", 0, 5, 0), variant), "input `in` was changed");  // its padding
  }
  EXPECT_EQ(after(stores("out", 1, 15, 0)), "out[2][3]: got 0, expected 23 (error 23, allowed 0)");
  EXPECT_EQ(after(stores("more", 2, 5, 0)),
            "more[1][1]: got 0, expected 11.5 (error 11.5, allowed 0)");
  EXPECT_EQ(after([](const Given& given, const DevicePointers& at) {  // the earlier tensor's
              store(at.get<void>("more"), given.problem->specs[2], 0, 9);
              store(at.get<void>("out"), given.problem->specs[1], 13, 9);
              store(at.get<void>("out"), given.problem->specs[1], 14, 9);
            }),
            "out[2][1]: got 9, expected 21 (error 12, allowed 0)");
}

TEST(Compare, EveryElementMustBeWritten) {
  for (const auto& [index, where] : {std::pair<std::int64_t, const char*>{0, "out[0][0]"},
                                     {3, "out[0][3]"},
                                     {6, "out[1][0]"},
                                     {15, "out[2][3]"}}) {
    const Given right = three_tensors();
    Given given = three_tensors();
    given.run = [&right, index = index](const DevicePointers& at, int) {
      write_right(right, at);
      const TensorSpec& spec = right.problem->specs[1];
      fill_elements(at.get<char>("out") + 2 * index, 1, 2, poison_bits(spec.dtype));
    };
    EXPECT_EQ(given.compare().message, std::string(where) + " was never written");
  }
  Given nothing = three_tensors();
  EXPECT_EQ(nothing.compare().message, "out[0][0] was never written");
}

// In place: the level finds the input in its output. So an element that it does not write is not
// "never written" but wrong, unless the input was already right.
TEST(Compare, InPlace) {
  Given given;
  given.problem->specs = {{"x", DType::f32, 2, 3, 4, Role::in_out}};
  given.problem->row = [](const HostTensors& tensors, const std::string&, std::int64_t row,
                          double* value, double* bound) {
    for (int c = 0; c < 3; ++c) value[c] = -tensors["x"].at(row, c), bound[c] = 0;
  };
  EXPECT_EQ(given.compare().message.rfind("x[0][0]: got ", 0), 0u);
  HostTensor x(given.problem->specs[0]);
  draw(x, given.kind, given.seed);
  given.run = [x](const DevicePointers& at, int) {
    for (int row = 0; row < 2; ++row) {
      for (int col = 0; col < 3; ++col) {
        store(at.get<void>("x"), x.spec, 4 * row + col, -x.at(row, col));
      }
    }
  };
  EXPECT_EQ(given.compare().message, "");
  EXPECT_EQ(given.check().reason, "");  // each run finds the inputs, not the last run's outputs
}

// A list of four places that holds three numbers, in any order.
std::string in_any_order(DType dtype, const std::vector<double>& got) {
  Given given = given_row(dtype, got, {1, 2, 3, 0}, {0, 0, 0, kInf});
  given.problem->normal_form = [](const HostTensors&, HostTensors& outputs) {
    sort_elements(outputs["out"], 0, 0, 3);
    outputs["out"].set(0, 3, 0);
  };
  return given.compare().message;
}
TEST(Compare, ResultsInAnyOrder) {
  for (const DType dtype : {DType::f32, DType::f16, DType::f64, DType::i32, DType::i64}) {
    EXPECT_EQ(in_any_order(dtype, {3, 1, 2}), "") << "the fourth is undefined, and not written";
    EXPECT_EQ(in_any_order(dtype, {2, 3, 1, 7}), "") << "or anything";
    EXPECT_EQ(in_any_order(dtype, {1, 1, 2}), "out[0][1]: got 1, expected 2 (error 1, allowed 0)");
    EXPECT_NE(in_any_order(dtype, {3, 1, 4}), "");
  }
  EXPECT_EQ(in_any_order(DType::f32, {3, 2}), "out[0][2] was never written");
  // Without a normal form order counts, and so does every element.
  EXPECT_NE(given_row(DType::f32, {2, 1}, {1, 2}, {0, 0}).compare().message, "");
  EXPECT_EQ(given_row(DType::f32, {1}, {1, 0}, {0, kInf}).compare().message,
            "out[0][1] was never written");
}

// Two runs that differ are both right where the level says that they may.
TEST(CheckLevel, AnotherOrderIsAnotherRun) {
  Given given = given_row(DType::u32, {}, {1, 2}, {0, 0});
  given.problem->normal_form = [](const HostTensors&, HostTensors& outputs) {
    sort_elements(outputs["out"], 0, 0, 2);
  };
  given.run = [spec = given.problem->specs[0]](const DevicePointers& at, int before) {
    store(at.get<void>("out"), spec, before % 2, 1);
    store(at.get<void>("out"), spec, 1 - before % 2, 2);
  };
  EXPECT_EQ(given.check(3).reason, "two runs on the same inputs differ");
  LevelEntry level = given.level();
  level.same_every_run = false;
  Instance instance(given.ladder(), {}, InputKind::normal, 1);
  EXPECT_EQ(check_level(level, instance, instance.drawn(3)).reason, "");
}

TEST(Tensors, ElementsAreSortedBitForBit) {
  const auto sorted = [](DType dtype, const std::vector<double>& values) {
    HostTensor tensor({"x", dtype, 2, static_cast<std::int64_t>(values.size()),
                       static_cast<std::int64_t>(values.size()) + 1, Role::output});
    std::vector<double> after(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      tensor.set(1, static_cast<std::int64_t>(i), values[i]);
    }
    const auto last = static_cast<std::int64_t>(values.size()) - 1;
    sort_elements(tensor, 1, 1, last);  // neither the first nor the last
    for (std::size_t i = 0; i < values.size(); ++i) {
      after[i] = tensor.at(1, static_cast<std::int64_t>(i));
    }
    return after;
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    const std::vector<double> after =
        sorted(dtype, {9, kNan, 2, -kInf, -0.0, -1.5, kInf, 0.0, -2, 1, -9});
    const std::vector<double> right = {9, -kInf, -2, -1.5, -0.0, 0.0, 1, 2, kInf, kNan, -9};
    for (std::size_t i = 0; i < right.size(); ++i) {
      EXPECT_TRUE(after[i] == right[i] || (std::isnan(after[i]) && std::isnan(right[i]))) << i;
      EXPECT_EQ(std::signbit(after[i]), std::signbit(right[i])) << dtype_name(dtype) << " " << i;
    }
  }
  for (const DType dtype : {DType::i32, DType::i64}) {
    EXPECT_EQ(sorted(dtype, {0, 7, -3, 0, -1000, 0}), (std::vector<double>{0, -1000, -3, 0, 7, 0}));
  }
  EXPECT_EQ(sorted(DType::u32, {0, 4e9, 1, 3e9, 0}), (std::vector<double>{0, 1, 3e9, 4e9, 0}));
  HostTensor wide({"x", DType::i64, 1, 2, 2, Role::output});  // beyond what a double tells apart
  wide.data<std::int64_t>()[0] = (std::int64_t{1} << 60) + 1;
  wide.data<std::int64_t>()[1] = std::int64_t{1} << 60;
  sort_elements(wide, 0, 0, 2);
  EXPECT_EQ(wide.data<std::int64_t>()[0], std::int64_t{1} << 60);
  EXPECT_EQ(wide.data<std::int64_t>()[1], (std::int64_t{1} << 60) + 1);
}

TEST(Compare, ChangedInputsArePutBackForTheNextRun) {
  Given given = three_tensors();
  Instance instance(given.ladder(), {}, InputKind::normal, 1);
  instance.reset();
  const std::uint64_t untouched = hash_bytes(instance.pointers().get<void>("in"), 16 * 4);
  stores("in", 0, 2, 5)(given, instance.pointers());
  EXPECT_EQ(instance.compare_outside().message, "input `in` was changed");
  EXPECT_EQ(instance.compare_outside().fault, Fault::input_changed);
  instance.reset();
  EXPECT_EQ(hash_bytes(instance.pointers().get<void>("in"), 16 * 4), untouched);
  EXPECT_TRUE(instance.compare_outside().ok);
}

TEST(Compare, TheHashIsOfOutputsAndOfAll) {
  const Given given = three_tensors();
  Instance instance(given.ladder(), {}, InputKind::normal, 1);
  std::set<std::uint64_t> hashes;
  write_right(given, instance.pointers());
  hashes.insert(instance.output_hash());
  EXPECT_EQ(*hashes.begin(), instance.output_hash());
  stores("in", 0, 0, 5)(given, instance.pointers());
  EXPECT_EQ(*hashes.begin(), instance.output_hash());
  stores("out", 1, 15, 5)(given, instance.pointers());
  hashes.insert(instance.output_hash());
  stores("more", 2, 0, 5)(given, instance.pointers());
  hashes.insert(instance.output_hash());
  EXPECT_EQ(hashes.size(), 3u);
}

TEST(Compare, AddressesAreShiftedByElements) {
  for (const int shift : {0, 1, 5}) {
    const Given given = three_tensors();
    const Instance instance(given.ladder(), {}, InputKind::normal, 1,
                            Variant{.misalign_elements = shift});
    for (const TensorSpec& spec : given.problem->specs) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(instance.pointers().get<void>(spec.name)) % 256,
                shift * dtype_bytes(spec.dtype))
          << spec.name;
    }
  }
}

TEST(Compare, NothingToCompareIsRight) {
  Given given = given_row(DType::f32, {}, {}, {});
  EXPECT_TRUE(given.compare().ok);
  given.problem->specs = {{"out", DType::f32, 0, 4, 4, Role::output}};
  EXPECT_TRUE(given.compare().ok);
}

// ---- runs --------------------------------------------------------------------------------------

TEST(CheckLevel, StatusAndReason) {
  const Given right = given_row(DType::f32, {1}, {1}, {0});
  EXPECT_EQ(right.check().status, CheckResult::Status::ok);
  EXPECT_EQ(right.check().reason, "");
  EXPECT_STREQ(status_name(CheckResult::Status::ok), "ok");
  EXPECT_STREQ(status_name(CheckResult::Status::mismatch), "mismatch");
  EXPECT_STREQ(status_name(CheckResult::Status::skipped), "skipped");

  Instance instance(right.ladder(), {}, InputKind::normal, 1);
  LevelEntry level = right.level();
  const auto expect = [&](const char* reason, CheckResult::Status status) {
    const CheckResult found = check_level(level, instance, instance.drawn(2));
    EXPECT_EQ(found.status, status) << reason;
    EXPECT_EQ(found.reason, reason);
  };
  level.supports = [](const AnyProblem&, const DeviceInfo&) { return Support::no("not today"); };
  expect("not today", CheckResult::Status::skipped);
  level = right.level();
  level.prepare = [](const AnyProblem&, const DevicePointers&) -> std::function<void(Stream)> {
    throw std::invalid_argument("an odd address");
  };
  expect("an odd address", CheckResult::Status::skipped);
  level.prepare = [](const AnyProblem&, const DevicePointers&) -> std::function<void(Stream)> {
    throw std::runtime_error("no memory");
  };
  expect("prepare() threw: no memory", CheckResult::Status::crashed);
  level.prepare = [](const AnyProblem&, const DevicePointers&) {
    return [](Stream) { throw std::invalid_argument("while it runs"); };
  };
  expect("run() threw: while it runs", CheckResult::Status::mismatch);
}

TEST(CheckLevel, EveryRunCounts) {
  Given given = given_row(DType::f32, {}, {1}, {0.5});
  const TensorSpec spec = given.problem->specs[0];
  int runs = 0;
  std::vector<double> written;  // by run
  given.run = [&](const DevicePointers& at, int before) {
    ++runs;
    store(at.get<void>("out"), spec, 0, written.at(static_cast<std::size_t>(before)));
  };
  written = {1, 1, 1};
  EXPECT_EQ(given.check(3).reason, "");
  EXPECT_EQ(runs, 3);
  written = {1, 1, 1.25};
  EXPECT_EQ(given.check(3).reason, "two runs on the same inputs differ");
  EXPECT_EQ(given.check(2).reason, "");
  written = {1.25, 1};
  EXPECT_EQ(given.check(1).reason, "");
  EXPECT_EQ(given.check(1).max_error, 0.25);
  EXPECT_EQ(given.check(1).error_bound, 0.5);
  written = {1, 2};
  EXPECT_EQ(given.check(2).reason,
            "right on the first run only: out[0][0]: got 2, expected 1 (error 1, allowed 0.5)");
  written = {2, 1};
  EXPECT_EQ(given.check(2).reason, "out[0][0]: got 2, expected 1 (error 1, allowed 0.5)");
}

// ---- which rows are compared -------------------------------------------------------------------

// `rows` x `cols` bf16; a row of the reference takes `cost` multiply-adds.
std::vector<std::int64_t> compared_rows(std::int64_t rows, std::int64_t cols, double cost,
                                        std::uint64_t seed = 1) {
  Given given;
  given.seed = seed;
  given.problem->specs = {{"out", DType::bf16, rows, cols, cols, Role::output}};
  given.problem->operations = 2 * cost * static_cast<double>(rows);
  std::mutex mutex;
  std::vector<std::int64_t> seen;
  given.problem->row = [&](const HostTensors&, const std::string&, std::int64_t row, double* value,
                           double* bound) {
    std::fill(value, value + cols, 0.0);
    std::fill(bound, bound + cols, 0.0);
    const std::lock_guard lock(mutex);
    seen.push_back(row);
  };
  given.compare();
  std::sort(seen.begin(), seen.end());
  return seen;
}

TEST(SampledRows, AllOfThemWhereTheyAreAffordable) {
  for (const std::int64_t rows : {1, 2, 15, 16, 100}) {
    const std::vector<std::int64_t> seen = compared_rows(rows, 3, 0);
    ASSERT_EQ(static_cast<std::int64_t>(seen.size()), rows);
    for (std::int64_t row = 0; row < rows; ++row) EXPECT_EQ(seen[row], row);
  }
  // Of more than that, a few fewer: where a strip is a row or two, its row may be the first or
  // last.
  const auto sampled = [](std::size_t most, const std::vector<std::int64_t>& seen) {
    EXPECT_LE(seen.size(), most);
    EXPECT_GE(seen.size(), most - 2);
  };
  EXPECT_EQ(compared_rows(16, 3, 1e12).size(), 16u);
  sampled(16, compared_rows(17, 3, 1e12));
  // A thousand million multiply-adds in all, and what it takes to write a row.
  EXPECT_EQ(compared_rows(100, 1, 1e7 - 1).size(), 100u);
  sampled(100, compared_rows(101, 1, 1e7 - 1));
  EXPECT_EQ(compared_rows(400, 1000, 1e7 / 4 - 1000).size(), 400u);
  sampled(400, compared_rows(401, 1000, 1e7 / 4 - 1000));
}

TEST(SampledRows, FirstLastAndOneOfEveryStrip) {
  constexpr std::int64_t kRows = 10000, kStrips = 98;
  std::set<std::int64_t> of_any_seed;
  std::vector<int> quarters(4);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const std::vector<std::int64_t> seen = compared_rows(kRows, 1, 1e7 - 1, seed);
    EXPECT_EQ(seen.front(), 0);
    EXPECT_EQ(seen.back(), kRows - 1);
    EXPECT_TRUE(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    for (std::int64_t strip = 0; strip < kStrips; ++strip) {
      const std::int64_t begin = kRows * strip / kStrips, end = kRows * (strip + 1) / kStrips;
      int found = 0;
      for (const std::int64_t row : seen) {
        if (row < begin || row >= end || row == 0 || row == kRows - 1) continue;
        ++found;
        ++quarters[4 * (row - begin) / (end - begin)];
      }
      EXPECT_GE(found, strip == 0 || strip == kStrips - 1 ? 0 : 1) << strip << ", seed " << seed;
      EXPECT_LE(found, 1);
    }
    of_any_seed.insert(seen.begin(), seen.end());
  }
  EXPECT_GT(of_any_seed.size(), 2 * 98u);                              // other seeds, other rows
  for (const int count : quarters) EXPECT_NEAR(count, 3 * 98 / 4, 8);  // in all parts of a strip
}

// ---- a level may err twice as much as the first ------------------------------------------------

Ended gated(double first, double second, bool gate) {
  Chapter chapter;
  chapter.number = 99;
  chapter.title = "gate";
  Given given = given_row(DType::f32, {}, {1}, {0.5});
  Ladder ladder = given.ladder();
  ladder.name = "gate";
  ladder.dims = {"n"};
  ladder.gpu_size = ladder.check_size = ladder.trace_size = {1};
  ladder.test_sizes = {{1}};
  ladder.gate_on_first_level = gate;
  for (const double error : {first, second}) {
    given.run = [error, spec = given.problem->specs[0]](const DevicePointers& at, int) {
      store(at.get<void>("out"), spec, 0, 1 + error);
    };
    LevelEntry level = given.level();
    level.name = ladder.levels.empty() ? "first" : "second";
    level.source = __FILE__;
    ladder.levels.push_back(level);
  }
  chapter.ladders = {ladder};
  return ended_of([&] {
    return called_with({"chapter-99", "--check", "--no-trace"},
                       [&](int argc, char** argv) { return run_chapter(chapter, argc, argv); });
  });
}

TEST(Gate, AtMostTwiceTheFirstLevelsError) {
  EXPECT_EQ(gated(0.125, 0.25, true).status, 0);
  const Ended beyond = gated(0.125, 0.25 + 0x1p-10, true);
  EXPECT_EQ(beyond.status, 1);
  EXPECT_CONTAINS(beyond.out, "error 0.251 is more than twice the first level's 0.125");
  EXPECT_EQ(gated(0.125, 0.5, false).status, 0);
  EXPECT_EQ(gated(0.5, 0.125, true).status, 0);
  EXPECT_EQ(gated(0, 0, true).status, 0);
  EXPECT_EQ(gated(0, 0x1p-20, true).status, 1);
}

// ---- narrow types ------------------------------------------------------------------------------

// The bits of `value` as a `dtype` of at most four bytes, and the value of such bits.
std::uint32_t bits_of(DType dtype, double value) {
  HostTensor tensor({"x", dtype, 1, 1, 1, Role::input});
  tensor.set(0, 0, value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, tensor.storage.data(), dtype_bytes(dtype));
  return bits;
}
double value_of(DType dtype, std::uint32_t bits) {
  HostTensor tensor({"x", dtype, 1, 1, 1, Role::input});
  std::memcpy(tensor.storage.data(), &bits, dtype_bytes(dtype));
  return tensor.at(0, 0);
}

TEST(Types, NamesBytesAndKinds) {
  struct Type {
    DType dtype;
    std::string name;
    std::size_t bytes;
    bool is_integer, saturates;
  };
  for (const Type& type : {Type{DType::f32, "f32", 4, false, false},
                           {DType::f16, "f16", 2, false, false},
                           {DType::bf16, "bf16", 2, false, false},
                           {DType::i32, "i32", 4, true, false},
                           {DType::f64, "f64", 8, false, false},
                           {DType::u32, "u32", 4, true, false},
                           {DType::i64, "i64", 8, true, false},
                           {DType::i8, "i8", 1, true, true},
                           {DType::e4m3, "e4m3", 1, false, true},
                           {DType::e5m2, "e5m2", 1, false, true}}) {
    EXPECT_EQ(dtype_name(type.dtype), type.name);
    EXPECT_EQ(dtype_bytes(type.dtype), type.bytes) << type.name;
    EXPECT_EQ(is_integer(type.dtype), type.is_integer) << type.name;
    EXPECT_EQ(saturates(type.dtype), type.saturates) << type.name;
  }
}

// A bf16 is the upper half of a float; what an f16 is, the compiler knows too.
TEST(NarrowTypes, EveryPatternIsReadAsTheCompilerDoes) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto same = [&](double got, double expected) {
      return std::isnan(expected) ? std::isnan(got)
                                  : got == expected && std::signbit(got) == std::signbit(expected);
    };
    ASSERT_TRUE(same(value_of(DType::bf16, bits), std::bit_cast<float>(bits << 16))) << bits;
#if defined(__FLT16_MAX__)
    const auto narrow = static_cast<std::uint16_t>(bits);
    _Float16 half;
    std::memcpy(&half, &narrow, 2);
    ASSERT_TRUE(same(value_of(DType::f16, bits), static_cast<double>(half))) << bits;
#endif
  }
}

// Between neighbours: to the nearer, and from the middle to the even one.
TEST(NarrowTypes, EveryGapIsRoundedToNearestEven) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::uint32_t infinity = dtype == DType::f16 ? 0x7c00 : 0x7f80;
    for (std::uint32_t bits = 0; bits < infinity; ++bits) {
      const double low = value_of(dtype, bits);
      const double high =
          bits + 1 < infinity ? value_of(dtype, bits + 1) : low + (low - value_of(dtype, bits - 1));
      const double middle = (low + high) / 2;
      const std::uint32_t even = bits % 2 ? bits + 1 : bits;
      for (const std::uint32_t sign : {0u, 0x8000u}) {
        const double s = sign ? -1 : 1;
        ASSERT_EQ(bits_of(dtype, s * low), bits | sign);
        ASSERT_EQ(bits_of(dtype, s * middle), even | sign);
        ASSERT_EQ(bits_of(dtype, s * std::nextafter(middle, 0)), bits | sign);
        ASSERT_EQ(bits_of(dtype, s * std::nextafter(middle, kInf)), (bits + 1) | sign);
      }
      ASSERT_EQ(rounded(dtype, middle), even < infinity ? value_of(dtype, even) : kInf);
      ASSERT_EQ(half_ulp(dtype, low), (high - low) / 2) << bits;
      ASSERT_EQ(half_ulp(dtype, -low), (high - low) / 2) << bits;
    }
    EXPECT_EQ(bits_of(dtype, kInf), infinity);
    EXPECT_EQ(bits_of(dtype, -kInf), infinity | 0x8000);
    EXPECT_EQ(bits_of(dtype, 1e300), infinity);
    EXPECT_TRUE(std::isnan(rounded(dtype, kNan)));
    EXPECT_EQ(largest(dtype), value_of(dtype, infinity - 1));
    // The relative error of a rounding: half the distance from 1 to its neighbour.
    EXPECT_EQ(unit_roundoff(dtype), half_ulp(dtype, 1));
    EXPECT_EQ(half_ulp(dtype, kInf), 0);
    EXPECT_EQ(half_ulp(dtype, kNan), 0);
  }
}

#if defined(__FLT16_MAX__)
TEST(NarrowTypes, AnyDoubleBecomesTheCompilersHalf) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const double value = std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53,
                                    static_cast<int>(random() % 50) - 30);
    const _Float16 half = static_cast<_Float16>(value);
    std::uint16_t bits;
    std::memcpy(&bits, &half, 2);
    ASSERT_EQ(bits_of(DType::f16, value), bits) << value;
  }
}
#endif

TEST(NarrowTypes, Fp32AndIntegers) {
  for (const float value : {1.0f, 1.5f, 3.0f, 0x1p-126f, 0x1p-130f, 0.0f, 1e30f, 0.1f}) {
    const double gap = double{std::nextafter(value, 1e38f)} - value;
    EXPECT_EQ(half_ulp(DType::f32, value), gap / 2) << value;
    EXPECT_EQ(half_ulp(DType::f32, -value), gap / 2) << value;
  }
  EXPECT_EQ(unit_roundoff(DType::f32), 0x1p-24);
  EXPECT_EQ(unit_roundoff(DType::i32), 0);
  EXPECT_EQ(half_ulp(DType::i32, 5), 0);
  EXPECT_EQ(largest(DType::f32), double{std::numeric_limits<float>::max()});
  EXPECT_EQ(largest(DType::i32), 2147483647);
  EXPECT_EQ(rounded(DType::f32, 1 + 0x1p-24), 1);
  EXPECT_EQ(rounded(DType::f32, 1 + 3 * 0x1p-24), 1 + 0x1p-22);
  EXPECT_EQ(rounded(DType::i32, -7), -7);
}

// ---- types of one byte -------------------------------------------------------------------------

struct Byte {
  unsigned bits;
  double value;
};
// The rows of the tables in "OFP8 Formats for Deep Learning", and neighbours, by hand.
const std::vector<Byte> kE4m3Table = {
    {0x00, 0.0},          {0x01, 0.001953125}, {0x02, 0.00390625}, {0x07, 0.013671875},
    {0x08, 0.015625},     {0x09, 0.017578125}, {0x30, 0.5},        {0x37, 0.9375},
    {0x38, 1.0},          {0x39, 1.125},       {0x3c, 1.5},        {0x3f, 1.875},
    {0x40, 2.0},          {0x44, 3.0},         {0x70, 128.0},      {0x77, 240.0},
    {0x78, 256.0},        {0x7d, 416.0},       {0x7e, 448.0},      {0xb8, -1.0},
    {0x81, -0.001953125}, {0xfe, -448.0}};
const std::vector<Byte> kE5m2Table = {
    {0x00, 0.0},       {0x01, 0x1p-16}, {0x02, 0x1p-15},  {0x03, 0x1.8p-15}, {0x04, 0x1p-14},
    {0x05, 0x1.4p-14}, {0x38, 0.5},     {0x3b, 0.875},    {0x3c, 1.0},       {0x3d, 1.25},
    {0x3e, 1.5},       {0x3f, 1.75},    {0x40, 2.0},      {0x78, 32768.0},   {0x7a, 49152.0},
    {0x7b, 57344.0},   {0xbc, -1.0},    {0x81, -0x1p-16}, {0xfb, -57344.0}};

TEST(ByteTypes, TablesOfBothFormats) {
  for (const auto& [dtype, table] :
       {std::pair{DType::e4m3, kE4m3Table}, {DType::e5m2, kE5m2Table}}) {
    for (const Byte& byte : table) {
      EXPECT_EQ(value_of(dtype, byte.bits), byte.value) << byte.bits;
      EXPECT_EQ(bits_of(dtype, byte.value), byte.bits) << byte.value;
      EXPECT_EQ(rounded(dtype, byte.value), byte.value);
    }
    EXPECT_EQ(bits_of(dtype, -0.0), 0x80u);
    EXPECT_TRUE(std::signbit(value_of(dtype, 0x80)));
    EXPECT_EQ(bits_of(dtype, kNan), 0x7fu);
    EXPECT_TRUE(std::isnan(value_of(dtype, 0x7f)));
    EXPECT_TRUE(std::isnan(value_of(dtype, 0xff)));
    EXPECT_TRUE(std::isnan(rounded(dtype, kNan)));
  }
  EXPECT_EQ(value_of(DType::e5m2, 0x7c), kInf);
  EXPECT_EQ(value_of(DType::e5m2, 0xfc), -kInf);
  for (const unsigned bits : {0x7d, 0x7e, 0xfd, 0xfe}) {
    EXPECT_TRUE(std::isnan(value_of(DType::e5m2, bits)));
  }
}

TEST(ByteTypes, TiesAndWhatIsBeyondTheLargest) {
  const DType e4m3 = DType::e4m3, e5m2 = DType::e5m2;
  const std::vector<std::pair<double, double>> of_e4m3 = {
      {1.0625, 1.0},      {1.0626, 1.125},    {1.1875, 1.25},       {-1.0625, -1.0},
      {17, 16},           {19, 20},           {448.1, 448},         {464, 448},
      {465, 448},         {1e300, 448},       {kInf, 448},          {-kInf, -448},
      {0x1p-10, 0},       {0x1.8p-9, 0x1p-8}, {0x1.01p-10, 0x1p-9}, {0x1.dp-7, 0x1.cp-7},
      {0x1.fp-7, 0x1p-6}, {-0x1p-10, -0.0}};
  for (const auto& [value, expected] : of_e4m3) {
    EXPECT_EQ(rounded(e4m3, value), expected) << value;
  }
  const std::vector<std::pair<double, double>> of_e5m2 = {{1.125, 1.0},
                                                          {1.126, 1.25},
                                                          {1.375, 1.5},
                                                          {9, 8},
                                                          {11, 12},
                                                          {57345, 57344},
                                                          {61440, 57344},
                                                          {65536, 57344},
                                                          {kInf, 57344},
                                                          {-kInf, -57344},
                                                          {0x1p-17, 0},
                                                          {0x1.8p-16, 0x1p-15},
                                                          {0x1.cp-15, 0x1p-14},
                                                          {0x1.01p-17, 0x1p-16}};
  for (const auto& [value, expected] : of_e5m2) {
    EXPECT_EQ(rounded(e5m2, value), expected) << value;
  }
}

// Every value and every gap, against what the device's type does.
TEST(ByteTypes, EveryGapIsRoundedToNearestEvenAsOnTheDevice) {
  const auto device = [](DType dtype, float value) {
    if (dtype == DType::e4m3) {
      const fp8_e4m3 narrow(value);
      return std::pair<unsigned, double>{narrow.__x, static_cast<float>(narrow)};
    }
    const fp8_e5m2 narrow(value);
    return std::pair<unsigned, double>{narrow.__x, static_cast<float>(narrow)};
  };
  for (const auto& [dtype, last] : {std::pair{DType::e4m3, 0x7eu}, {DType::e5m2, 0x7bu}}) {
    for (unsigned bits = 0; bits < last; ++bits) {
      const double low = value_of(dtype, bits), high = value_of(dtype, bits + 1);
      const double middle = (low + high) / 2;
      ASSERT_LT(low, high);
      const unsigned even = bits % 2 != 0 ? bits + 1 : bits;
      for (const double s : {1.0, -1.0}) {
        const unsigned sign = s < 0 ? 0x80 : 0;
        for (const auto& [value, nearest] : {std::pair{low, bits},
                                             {middle, even},
                                             {(low + middle) / 2, bits},
                                             {std::nextafter(middle, 0), bits},
                                             {std::nextafter(middle, kInf), bits + 1}}) {
          ASSERT_EQ(bits_of(dtype, s * value), nearest | sign) << s * value;
          const auto narrow = static_cast<float>(s * value);
          if (narrow != s * value) continue;  // the device converts from fp32
          ASSERT_EQ(device(dtype, narrow).first, nearest | sign) << narrow;
        }
        ASSERT_EQ(device(dtype, static_cast<float>(s * low)).second, s * low);
      }
      ASSERT_EQ(half_ulp(dtype, low), (high - low) / 2) << bits;
      ASSERT_EQ(half_ulp(dtype, -low), (high - low) / 2) << bits;
    }
    EXPECT_EQ(largest(dtype), value_of(dtype, last));
    EXPECT_EQ(unit_roundoff(dtype), half_ulp(dtype, 1));
    for (const double value : {1e6, 1e38, kInf}) {
      EXPECT_EQ(device(dtype, static_cast<float>(value)).first, last);
      EXPECT_EQ(bits_of(dtype, -value), last | 0x80);
    }
    EXPECT_EQ(device(dtype, static_cast<float>(kNan)).first, 0x7fu);
  }
}

TEST(ByteTypes, WholeNumbersSaturate) {
  const std::vector<std::pair<double, double>> table = {
      {0, 0},       {-7, -7},     {2.5, 2},      {3.5, 4},     {-2.5, -2},
      {126.6, 127}, {127.6, 127}, {300, 127},    {-128, -128}, {-128.6, -128},
      {-1e9, -128}, {kInf, 127},  {-kInf, -128}, {kNan, 0}};
  for (const auto& [value, expected] : table) {
    EXPECT_EQ(rounded(DType::i8, value), expected) << value;
    EXPECT_EQ(value_of(DType::i8, bits_of(DType::i8, value)), expected) << value;
  }
  EXPECT_EQ(half_ulp(DType::i8, 5), 0);
  EXPECT_EQ(unit_roundoff(DType::i8), 0);
  EXPECT_EQ(largest(DType::i8), 127);
}

TEST(ByteTypes, TheLargestStandsForAllBeyondIt) {
  passes(DType::e4m3, 0, {{448, 1000}, {-448, -kInf}});
  fails(DType::e4m3, 0, {{448, -1000}, {416, 1000}, {kNan, 1000}});
  fails(DType::e4m3, 16, {{448, 400}});
  passes(DType::e4m3, 8, {{448, 440}});
  passes(DType::e5m2, 0, {{57344, 1e6}});
  passes(DType::i8, 0.5, {{127, 300}, {-128, -300}, {0, kNan}});
  fails(DType::i8, 0.5, {{-127, -300}, {44, 300}, {127, 100}, {1, kNan}});
}

TEST(WideTypes, HalfUlpsAndRounding) {
  for (const double value : {1.0, 1.5, 3.0, 0x1p-1022, 1e300, 0.1}) {
    const double gap = std::nextafter(value, 1e308) - value;
    EXPECT_EQ(half_ulp(DType::f64, value), std::max(gap / 2, 0x1p-1074)) << value;
    EXPECT_EQ(half_ulp(DType::f64, -value), std::max(gap / 2, 0x1p-1074)) << value;
  }
  EXPECT_EQ(half_ulp(DType::f64, 0), 0x1p-1074);
  EXPECT_EQ(unit_roundoff(DType::f64), 0x1p-53);
  EXPECT_EQ(rounded(DType::f64, 0.1), 0.1);
  EXPECT_EQ(rounded(DType::u32, 4294967295.0), 4294967295.0);
  EXPECT_EQ(rounded(DType::i64, -0x1p62), -0x1p62);
  EXPECT_EQ(largest(DType::u32), 4294967295.0);
  EXPECT_EQ(largest(DType::i64), 0x1p63);
}

// Element i of a 3 x 4 output is `first` + i.
TEST(Types, AreStoredDrawnPoisonedAndCompared) {
  struct Type {
    DType dtype;
    double first, bound;
    std::string wrong_by_one;  // what is said of element 5
  };
  const std::string small = "out[1][1]: got 6, expected 5",
                    large = "out[1][1]: got 3.00000001e+09, expected 3e+09";
  for (const Type& type : {Type{DType::f32, 0, 0, small},
                           {DType::f16, 0, 0, small},
                           {DType::bf16, 0, 0, small},
                           {DType::i32, 0, 0, small},
                           {DType::i8, 0, 0.5, small},
                           {DType::e4m3, 0, 0.5, small},
                           {DType::e5m2, 0, 0.5, ""},  // has no 9 and no 11
                           {DType::f64, 3e9, 0, large},
                           {DType::u32, 3e9, 0, large},
                           {DType::i64, 3e9, 0, large}}) {
    const DType dtype = type.dtype;
    SCOPED_TRACE(dtype_name(dtype));
    HostTensor tensor({"x", dtype, 3, 4, 7, Role::output});
    poison(tensor);
    for (int at = 0; at < 18; ++at) EXPECT_TRUE(is_poison(tensor, 0, at));
    tensor.set(2, 3, type.first + 3);
    EXPECT_EQ(tensor.at(2, 3), type.first + 3);
    EXPECT_FALSE(is_poison(tensor, 2, 3));
    EXPECT_TRUE(is_poison(tensor, 2, 2));
    if (!is_integer(dtype)) {
      EXPECT_TRUE(std::isnan(tensor.at(0, 0)));
      tensor.set(0, 1, kNan);  // a computed NaN is another
      EXPECT_FALSE(is_poison(tensor, 0, 1));
    }
    // Padding of an input is never the mark of an output's.
    HostTensor input({"x", dtype, 3, 4, 7, Role::input});
    draw(input, InputKind::normal, 1);
    for (int col = 4; col < 7; ++col) {
      EXPECT_FALSE(is_poison(input, 0, col));
      EXPECT_TRUE(is_integer(dtype) || std::isnan(input.at(0, col)));
      EXPECT_TRUE(dtype != DType::i8 || input.at(0, col) >= 112);
    }

    Given given;
    given.problem->specs = {{"out", dtype, 3, 4, 7, Role::output}};
    given.problem->row = [&](const HostTensors&, const std::string&, std::int64_t row,
                             double* value, double* bound) {
      for (int col = 0; col < 4; ++col) {
        value[col] = type.first + static_cast<double>(row * 4 + col), bound[col] = type.bound;
      }
    };
    const auto write = [&](std::int64_t skipped, double wrong, bool pads) {
      given.run = [&, skipped, wrong, pads](const DevicePointers& at, int) {
        for (std::int64_t i = 0; i < 12; ++i) {
          if (i == skipped) continue;
          store(at.get<void>("out"), given.problem->specs[0], i / 4 * 7 + i % 4,
                type.first + static_cast<double>(i) + (i == 5 ? wrong : 0));
        }
        if (pads) store(at.get<void>("out"), given.problem->specs[0], 5, 0);
      };
      return given.compare().message;
    };
    EXPECT_EQ(write(7, 0, false), "out[1][3] was never written");
    if (type.wrong_by_one.empty()) continue;
    EXPECT_EQ(write(-1, 0, false), "");
    EXPECT_EQ(write(-1, 0, true), "out[0][5] is padding between rows and was written");
    EXPECT_CONTAINS(write(-1, 1, false), type.wrong_by_one);
  }
}

TEST(Tensors, ElementsLieAPitchApart) {
  const TensorSpec spec{"x", DType::i32, 3, 4, 7, Role::input};
  EXPECT_EQ(spec.elements(), 18);  // the last row has no padding
  EXPECT_EQ(spec.bytes(), 72u);
  EXPECT_EQ((TensorSpec{"x", DType::f16, 0, 4, 7}.elements()), 0);
  HostTensor tensor(spec);
  tensor.set(2, 3, -9);
  EXPECT_EQ(tensor.data<std::int32_t>()[17], -9);
  tensor.set(1, 0, 5);
  EXPECT_EQ(tensor.data<std::int32_t>()[7], 5);
  EXPECT_EQ(tensor.at(1, 0), 5);
  HostTensors all;
  all.list = {tensor};
  EXPECT_EQ(all["x"].at(2, 3), -9);
  EXPECT_THROW(all["y"], std::out_of_range);
}

// ---- inputs ------------------------------------------------------------------------------------

HostTensor drawn(InputKind kind, DType dtype = DType::f32, const char* name = "in",
                 std::uint64_t seed = 3, std::int64_t pitch = 100) {
  HostTensor tensor({name, dtype, 200, 100, pitch, Role::input});
  draw(tensor, kind, seed);
  return tensor;
}
template <class Is>
int count(const HostTensor& tensor, Is is) {
  int found = 0;
  for (std::int64_t row = 0; row < tensor.spec.rows; ++row) {
    for (std::int64_t col = 0; col < tensor.spec.cols; ++col) found += is(tensor.at(row, col));
  }
  return found;
}

TEST(InputKinds, OfAnEmptyTensorAreNothing) {
  for (const InputKind kind : {InputKind::normal, InputKind::one_nan, InputKind::one_hot}) {
    HostTensor no_rows({"in", DType::f32, 0, 4, 4, Role::input});
    HostTensor no_columns({"in", DType::f32, 4, 0, 4, Role::input});
    EXPECT_NO_THROW(draw(no_rows, kind, 3));
    EXPECT_NO_THROW(draw(no_columns, kind, 3));
  }
}

TEST(InputKinds, EachHoldsWhatItsNameSays) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const HostTensor normal = drawn(InputKind::normal, dtype);
    double sum = 0, squares = 0;
    count(normal, [&](double x) { return sum += x, squares += x * x, 0; });
    EXPECT_NEAR(sum / 20000, 0, 0.03);
    EXPECT_NEAR(squares / 20000, 1, 0.03);
    EXPECT_EQ(count(normal, [](double x) { return x == 0; }), 0);

    const HostTensor integers = drawn(InputKind::integers, dtype);
    for (int n = -3; n <= 3; ++n) {
      EXPECT_NEAR(count(integers, [n](double x) { return x == n; }), 20000 / 7, 300) << n;
    }

    const HostTensor wide = drawn(InputKind::wide, dtype);
    const int range = dtype == DType::f16 ? 6 : 12;
    const auto above = [&](int exponent) {
      return count(wide, [exponent](double x) { return std::fabs(x) > std::ldexp(1, exponent); });
    };
    EXPECT_GT(above(range - 1), 200);
    EXPECT_EQ(above(range + 2), 0);
    EXPECT_LT(above(1 - range), 20000 - 200);
    EXPECT_NEAR(above(0), 10000, 1500);
    EXPECT_EQ(count(wide, [](double x) { return !std::isfinite(x); }), 0);

    const double smallest_normal = dtype == DType::f16 ? 0x1p-14 : 0x1p-126;
    const HostTensor denormals = drawn(InputKind::denormals, dtype);
    EXPECT_NEAR(count(denormals, [=](double x) { return std::fabs(x) < smallest_normal; }), 15000,
                500);
    EXPECT_GT(count(denormals, [=](double x) { return x != 0 && std::fabs(x) < smallest_normal; }),
              14000);

    const HostTensor zeros = drawn(InputKind::signed_zeros, dtype);
    EXPECT_NEAR(count(zeros, [](double x) { return x == 0 && !std::signbit(x); }), 5000, 300);
    EXPECT_NEAR(count(zeros, [](double x) { return x == 0 && std::signbit(x); }), 5000, 300);

    const auto finite = [](double x) { return std::isfinite(x); };
    const HostTensor one_nan = drawn(InputKind::one_nan, dtype);
    EXPECT_EQ(count(one_nan, [](double x) { return std::isnan(x); }), 1);
    EXPECT_EQ(count(one_nan, finite), 19999);
    const HostTensor one_inf = drawn(InputKind::one_inf, dtype);
    EXPECT_EQ(count(one_inf, [](double x) { return x == kInf; }), 1);
    EXPECT_EQ(count(one_inf, finite), 19999);
    const HostTensor one_hot = drawn(InputKind::one_hot, dtype);
    EXPECT_EQ(count(one_hot, [](double x) { return x == 1; }), 1);
    EXPECT_EQ(count(one_hot, [](double x) { return x == 0; }), 19999);

    const HostTensor pairs = drawn(InputKind::cancellation, dtype);
    EXPECT_EQ(count(pairs, [](double x) { return x >= 1; }), 10000);
    EXPECT_EQ(count(pairs, [](double x) { return x <= -1; }), 10000);
  }
}

TEST(InputKinds, BytesAreWhatTheirKindSays) {
  for (const DType dtype : {DType::e4m3, DType::e5m2}) {
    const double normal = dtype == DType::e4m3 ? 0x1p-6 : 0x1p-14;
    const HostTensor denormals = drawn(InputKind::denormals, dtype);
    EXPECT_NEAR(count(denormals, [=](double x) { return std::fabs(x) < normal; }), 15000, 500);
    EXPECT_GT(count(denormals, [=](double x) { return x != 0 && std::fabs(x) < normal; }), 9000);
    const HostTensor wide = drawn(InputKind::wide, dtype);
    EXPECT_EQ(count(wide, [=](double x) { return std::fabs(x) >= largest(dtype); }), 0);
    EXPECT_GT(count(wide, [=](double x) { return std::fabs(x) > 8; }), 200);
    EXPECT_EQ(count(drawn(InputKind::one_nan, dtype), [](double x) { return std::isnan(x); }), 1);
    const HostTensor one_inf = drawn(InputKind::one_inf, dtype);
    EXPECT_EQ(count(one_inf, [=](double x) { return x == largest(dtype); }), 1);
  }
  const HostTensor whole = drawn(InputKind::wide, DType::i8);
  for (int n = -3; n <= 3; ++n) {
    EXPECT_NEAR(count(whole, [n](double x) { return x == n; }), 20000 / 7, 300) << n;
  }
}

TEST(InputKinds, DependOnSeedAndNameAndNotOnThePitch) {
  std::set<std::string> names;
  for (const InputKind kind : all_input_kinds()) {
    names.insert(input_kind_name(kind));
    std::set<std::uint32_t> padding;  // that differs from place to place
    const HostTensor a = drawn(kind), b = drawn(kind, DType::f32, "in", 3, 104);
    for (int row = 0; row < 200; ++row) {
      EXPECT_EQ(std::memcmp(a.data<float>() + row * 100, b.data<float>() + row * 104, 400), 0);
      for (int col = 100; col < 104 && row < 199; ++col) {  // NaNs, and not those of an output
        EXPECT_TRUE(std::isnan(b.at(row, col)) && !is_poison(b, row, col)) << row << ", " << col;
        padding.insert(b.data<std::uint32_t>()[row * 104 + col]);
      }
    }
    EXPECT_GT(padding.size(), 60u) << input_kind_name(kind);  // of 64
    EXPECT_NE(a.storage, drawn(kind, DType::f32, "other").storage) << input_kind_name(kind);
    EXPECT_NE(a.storage, drawn(kind, DType::f32, "in", 4).storage) << input_kind_name(kind);
  }
  EXPECT_EQ(names.size(), 9u);
  EXPECT_EQ(all_input_kinds().size(), 9u);
}

TEST(InputKinds, AFillComesFirst) {
  TensorSpec spec{"x", DType::i32, 1, 2, 2, Role::input};
  spec.fill = [](HostTensor& tensor, std::uint64_t seed) {
    tensor.set(0, 0, static_cast<double>(seed));
  };
  HostTensor tensor(spec);
  draw(tensor, InputKind::one_nan, 41);
  EXPECT_EQ(tensor.at(0, 0), 41);
  EXPECT_EQ(tensor.at(0, 1), 0);
}

TEST(InputKinds, IntegersAreSmallWholeNumbersWhateverTheKind) {
  for (const DType dtype : {DType::i32, DType::u32, DType::i64}) {
    HostTensor tensor(TensorSpec{"x", dtype, 5, 40, 40, Role::input});
    for (const InputKind kind : all_input_kinds()) {
      draw(tensor, kind, 3);
      int others = 0;  // than zero
      for (std::int64_t i = 0; i < 200; ++i) {
        const double x = tensor.at(i / 40, i % 40);
        EXPECT_LE(std::fabs(x), dtype == DType::u32 ? 6 : 3) << input_kind_name(kind);
        others += x != 0;
      }
      if (kind == InputKind::one_hot) {
        EXPECT_EQ(others, 1);
      } else {
        EXPECT_GT(others, 100) << input_kind_name(kind);
      }
    }
  }
}

// ---- claims ------------------------------------------------------------------------------------

TEST(Claims, Relations) {
  struct Row {
    Relation relation;
    double value, tolerance;
    std::vector<double> hold, fail;
  };
  using R = Relation;
  for (const Row& row :
       std::vector<Row>{{R::equal, 4, 0, {4}, {4.001, 3.999}},
                        {R::at_least, 4, 0, {4, 5}, {3.999}},
                        {R::at_most, 4, 0, {4, 3}, {4.001}},
                        // A tolerance of 1 % of 4, on the side that the relation leaves open.
                        {R::equal, 4, 0.01, {4.03, 3.97}, {4.05, 3.95, kNan}},
                        {R::at_least, 4, 0.01, {3.97}, {3.95, kNan}},
                        {R::at_most, 4, 0.01, {4.03}, {4.05, kNan}},
                        {R::equal, -4, 0.01, {-4.03}, {}}}) {
    Claim claim;
    claim.relation = row.relation, claim.value = row.value, claim.tolerance = row.tolerance;
    for (const double measured : row.hold) EXPECT_TRUE(satisfies(claim, measured)) << measured;
    for (const double measured : row.fail) EXPECT_FALSE(satisfies(claim, measured)) << measured;
  }
}

void expect_claim(const Claim& claim, const std::string& text, Metric metric, Relation relation,
                  double value, double tolerance = 1e-9) {
  EXPECT_EQ(claim.text, text);
  EXPECT_EQ(claim.metric, metric) << text;
  EXPECT_EQ(claim.relation, relation) << text;
  EXPECT_EQ(claim.value, value) << text;
  EXPECT_EQ(claim.tolerance, tolerance) << text;
}

TEST(Claims, NumbersAreWrittenInGroupsOfThreeDigits) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(999), "999");
  EXPECT_EQ(number_text(1000), "1,000");
  EXPECT_EQ(number_text(123456), "123,456");
  EXPECT_EQ(number_text(-999), "-999");
  EXPECT_EQ(number_text(-123456), "-123,456");
  EXPECT_EQ(number_text(999999999999999), "999,999,999,999,999");
  EXPECT_EQ(number_text(1e15), "1e+15");
  EXPECT_EQ(number_text(-1e15), "-1e+15");
  EXPECT_EQ(number_text(1234567.5), "1.23457e+06");
  EXPECT_EQ(number_text(-0.5), "-0.5");
}

TEST(Claims, WhatEachFunctionMakes) {
  const Accesses in = global_loads("in");
  using M = Metric;
  using R = Relation;
  expect_claim(in.sectors_per_request(4), "global loads of `in`: sectors per request = 4",
               M::sectors_per_request, R::equal, 4);
  expect_claim(in.sectors_per_request(4, R::at_most),
               "global loads of `in`: sectors per request at most 4", M::sectors_per_request,
               R::at_most, 4);
  expect_claim(in.coalesced(), "global loads of `in`: sectors = ideal", M::sectors_over_ideal,
               R::equal, 1);
  expect_claim(in.sectors_over_ideal(8, R::at_least),
               "global loads of `in`: sectors / ideal at least 8", M::sectors_over_ideal,
               R::at_least, 8);
  expect_claim(in.sectors_over_ideal(8), "global loads of `in`: sectors / ideal = 8",
               M::sectors_over_ideal, R::equal, 8);
  expect_claim(shared_loads().conflict_free(), "shared loads: wavefronts = ideal",
               M::wavefronts_over_ideal, R::equal, 1);
  expect_claim(shared_loads().wavefronts_over_ideal(2), "shared loads: wavefronts / ideal = 2",
               M::wavefronts_over_ideal, R::equal, 2);
  expect_claim(shared_stores().wavefronts_per_request(3, R::at_least),
               "shared stores: wavefronts per request at least 3", M::wavefronts_per_request,
               R::at_least, 3);
  expect_claim(in.requests(7), "global loads of `in`: requests = 7", M::requests, R::equal, 7);
  expect_claim(in.bytes(9, R::at_most), "global loads of `in`: bytes at most 9", M::bytes,
               R::at_most, 9);

  const auto filters = [](const Claim& claim) {
    return claim.space + "|" + claim.op + "|" + claim.buffer + "|" + claim.tag + "|" + claim.kernel;
  };
  EXPECT_EQ(filters(in.bytes(1)), "global|load|in||");
  EXPECT_EQ(filters(global_stores("out").bytes(1)), "global|store|out||");
  EXPECT_EQ(filters(global_loads().bytes(1)), "global|load|||");
  EXPECT_EQ(filters(shared_loads().on("a").bytes(1)), "shared|load||a|");
  EXPECT_EQ(filters(shared_stores().in_kernel("k").bytes(1)), "shared|store|||k");
  EXPECT_EQ(filters(global_atomics("sums").bytes(1)), "global|atomic|sums||");
  EXPECT_EQ(filters(shared_atomics().on("a").requests(1)), "shared|atomic||a|");
  EXPECT_EQ(filters(tma_loads("x").bytes(1)), "global|async_load|x||");
  EXPECT_EQ(filters(tensor_core_reads().bytes(1)), "shared|async_load|||");
  EXPECT_EQ(filters(tma_stores("x").bytes(1)), "global|async_store|x||");
  EXPECT_EQ(tma_loads("x").bytes(1).text, "asynchronous loads of `x`: bytes = 1");
  EXPECT_EQ(Accesses("shared", "async_store", "").on("t").in_kernel("k").bytes(1).text,
            "shared writes on line [t] in k: bytes = 1");

  expect_claim(faster_than_previous(1.5), "time: at least 1.5x the previous level",
               M::time_ratio_previous, R::at_least, 1.5, 0);
  expect_claim(faster_than_previous(1.5, "when cold"),
               "time: at least 1.5x the previous level when cold", M::time_ratio_previous,
               R::at_least, 1.5, 0);
  expect_claim(at_least_previous(0.9, "it waits"),
               "time: at least 0.9x the previous level: it waits", M::time_ratio_previous,
               R::at_least, 0.9, 0);
  expect_claim(against_library("cuBLAS", 0.97), "time: at least 0.97x cuBLAS",
               M::time_ratio_reference, R::at_least, 0.97, 0);
  // A claim that a level is faster is no bound below 1, and a bound below 1 says why.
  EXPECT_THROW(faster_than_previous(0.99), std::invalid_argument);
  EXPECT_THROW(at_least_previous(1, "it waits"), std::invalid_argument);
  EXPECT_EQ(against_library("cuBLAS", 0.97).name, "cuBLAS");
  expect_claim(fraction_of_roof(0.75), "at least 0.75 of the measured roof", M::roof_fraction,
               R::at_least, 0.75, 0);
  for (const Claim& claim : {in.bytes(1), in.coalesced(), shared_loads().conflict_free()}) {
    EXPECT_TRUE(claim.is_mechanism());
  }
  for (const Claim& claim :
       {faster_than_previous(1), against_library("x", 1), fraction_of_roof(1)}) {
    EXPECT_FALSE(claim.is_mechanism());
  }
}

simt::AccessSite site(simt::Space space, simt::Op op, const char* buffer, const char* kernel) {
  simt::AccessSite made;
  made.space = space, made.op = op, made.buffer = buffer, made.kernel = kernel;
  made.requests = 10, made.sectors = 40, made.ideal_sectors = 20;
  made.wavefronts = 30, made.ideal_wavefronts = 15, made.bytes = 1280;
  made.file = source_path("tests/check_test.cpp"), made.line = __LINE__;  // [a line]
  return made;
}

TEST(Claims, AreCheckedOnTheSitesThatTheyName) {
  using simt::Op;
  using simt::Space;
  simt::Trace trace;
  trace.sites = {site(Space::global, Op::load, "in", "first_kernel"),
                 site(Space::global, Op::load, "in", "second_kernel"),
                 site(Space::global, Op::store, "out", "first_kernel"),
                 site(Space::shared, Op::load, "", "first_kernel"),
                 site(Space::global, Op::async_load, "in", "first_kernel"),
                 site(Space::global, Op::atomic, "sums", "first_kernel"),
                 site(Space::shared, Op::atomic, "", "first_kernel")};
  trace.sites[1].requests = 30, trace.sites[1].sectors = 400;
  trace.sites[1].bytes = 20, trace.sites[1].line = 1;
  trace.sites[5].requests = 7;
  const auto measured = [&](const Claim& claim) {
    const ClaimResult result = check_on_trace(claim, trace);
    EXPECT_EQ(result.checked_by, "simt");
    EXPECT_TRUE(result.holds.has_value());
    return result.measured + (*result.holds ? " holds" : " fails");
  };
  EXPECT_EQ(measured(global_loads("in").requests(40)), "40 requests holds");
  EXPECT_EQ(measured(global_loads("in").requests(41)), "40 requests fails");
  EXPECT_EQ(measured(global_loads("in").bytes(1300)), "1,300 bytes holds");
  EXPECT_EQ(measured(global_loads("in").sectors_per_request(11)), "11 holds");
  EXPECT_EQ(measured(global_loads("in").sectors_over_ideal(11)), "11 holds");
  EXPECT_EQ(measured(global_loads("in").in_kernel("second").requests(30)), "30 requests holds");
  EXPECT_EQ(measured(global_loads("in").in_kernel("first").coalesced()), "2 fails");
  EXPECT_EQ(measured(global_loads("in").on("a line").requests(10)), "10 requests holds");
  EXPECT_EQ(measured(global_stores("out").bytes(1280)), "1,280 bytes holds");
  EXPECT_EQ(measured(shared_loads().conflict_free()), "2 fails");
  EXPECT_EQ(measured(shared_loads().wavefronts_over_ideal(2)), "2 holds");
  EXPECT_EQ(measured(shared_loads().wavefronts_per_request(3)), "3 holds");
  EXPECT_EQ(measured(tma_loads("in").requests(10)), "10 requests holds");
  EXPECT_EQ(measured(global_atomics("sums").requests(7)), "7 requests holds");
  EXPECT_EQ(measured(shared_atomics().wavefronts_per_request(3)), "3 holds");
  // Accesses that did not happen satisfy no claim, except that there are none.
  EXPECT_EQ(measured(global_loads("i").requests(40)), "no such access fails");
  EXPECT_EQ(measured(global_loads("gone").requests(9, Relation::at_most)), "no such access fails");
  EXPECT_EQ(measured(global_loads("gone").coalesced()), "no such access fails");
  EXPECT_EQ(measured(shared_stores().requests(0)), "0 requests holds");
  EXPECT_EQ(measured(global_loads("i").on("another").bytes(1)), "no such access fails");
  // The tag may stand on the line of a call.
  EXPECT_EQ(
      measured(global_loads("in").on("another").bytes(1)),
      fmt::format("no such access on a line tagged [another]; such lines are check_test.cpp:1, "
                  "check_test.cpp:{} fails",
                  trace.sites[0].line));
  // Speed is not what a trace shows.
  EXPECT_FALSE(check_on_trace(faster_than_previous(1), trace).holds.has_value());
}

TEST(Claims, SpeedIsHeldAgainstItsOwnMeasurement) {
  LevelResult level;
  level.vs_previous = Ratio{2, 1.9, 2.1};
  level.vs_reference = Ratio{0.5, 0.4, 0.6};
  level.reference_name = "cuBLAS";
  level.roof_fraction = 0.8;
  const auto holds = [&](const Claim& claim) {
    ClaimResult result;
    result.claim = claim;
    check_speed_claim(result, level, "NVIDIA H200", "");
    return result.holds;
  };
  EXPECT_EQ(holds(faster_than_previous(2)), true);
  EXPECT_EQ(holds(faster_than_previous(2.01)), false);
  EXPECT_EQ(holds(at_least_previous(0.99, "")), true);
  EXPECT_EQ(holds(against_library("cuBLAS", 0.5)), true);
  EXPECT_EQ(holds(against_library("cuBLAS", 0.51)), false);
  EXPECT_EQ(holds(against_library("cuDNN", 0.1)), std::nullopt);
  EXPECT_EQ(holds(fraction_of_roof(0.8)), true);
  EXPECT_EQ(holds(fraction_of_roof(0.81)), false);
  EXPECT_EQ(holds(global_loads().coalesced()), std::nullopt);
}

TEST(Claims, OfAnotherLadderKeepTheMechanism) {
  LevelEntry level;
  level.claims = [](const AnyProblem&) {
    return Claims{global_loads("in").coalesced(), faster_than_previous(3)};
  };
  const Claims claims = claiming(level, {fraction_of_roof(0.5)}).claims(GivenProblem{});
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(claims[0].metric, Metric::roof_fraction);
  EXPECT_EQ(claims[1].metric, Metric::sectors_over_ideal);
}

TEST(Claims, CountersAreTotalsByKindOfAccess) {
  using simt::Op;
  using simt::Space;
  simt::Trace trace;
  trace.sites = {site(Space::global, Op::load, "in", "k"), site(Space::global, Op::load, "b", "k"),
                 site(Space::shared, Op::store, "", "k"),
                 site(Space::global, Op::async_load, "in", "k"),
                 site(Space::shared, Op::async_store, "", "k")};
  trace.kernels = {{.kernel = "k", .launches = 2, .distinct_bytes = 64},
                   {.kernel = "l", .launches = 1, .distinct_bytes = 32}};
  const std::map<std::string, double> expected = {{"global_load_requests", 20},
                                                  {"global_load_bytes", 2560},
                                                  {"global_load_sectors", 80},
                                                  {"global_load_ideal_sectors", 40},
                                                  {"shared_store_requests", 10},
                                                  {"shared_store_bytes", 1280},
                                                  {"shared_store_wavefronts", 30},
                                                  {"shared_store_ideal_wavefronts", 15},
                                                  {"async_load_requests", 10},
                                                  {"async_load_bytes", 1280},
                                                  {"async_load_sectors", 40},
                                                  {"async_load_ideal_sectors", 20},
                                                  {"async_store_shared_requests", 10},
                                                  {"async_store_shared_bytes", 1280},
                                                  {"async_store_shared_wavefronts", 30},
                                                  {"async_store_shared_ideal_wavefronts", 15},
                                                  {"distinct_bytes", 96},
                                                  {"launches", 3}};
  EXPECT_EQ(total_counters(trace), expected);
}

// ---- statistics --------------------------------------------------------------------------------

TEST(Statistics, QuantilesAndMedian) {
  EXPECT_EQ(quantile({7}, 0.3), 7);
  EXPECT_EQ(quantile({1, 2, 3, 4, 5}, 0), 1);
  EXPECT_EQ(quantile({1, 2, 3, 4, 5}, 0.25), 2);
  EXPECT_EQ(quantile({1, 2, 3, 4, 5}, 1), 5);
  EXPECT_EQ(quantile({0, 10}, 0.3), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({3, kNan, 1, 2}), 2);
  EXPECT_EQ(median({kNan, 9, kNan}), 9);
  EXPECT_EQ(median({}), kInf);
  EXPECT_EQ(median({kNan}), kInf);
}

TEST(Statistics, ARatioAboveOneMeansThatTheSecondIsFaster) {
  const Ratio twice = paired_ratio({10, 20, 30}, {5, 10, 15});
  EXPECT_EQ(twice.ratio, 2);
  EXPECT_EQ(twice.low, 2);
  EXPECT_EQ(twice.high, 2);
  EXPECT_STREQ(verdict(twice), "faster");
  // Round by round: a clock that drifts touches both.
  EXPECT_EQ(paired_ratio({1, 100, 10000}, {2, 200, 20000}).ratio, 0.5);
  EXPECT_EQ(paired_ratio({10, kNan, 30}, {5, 10, 15}).ratio, 2);
  EXPECT_EQ(paired_ratio({10, 20, 30}, {kNan, 10}).ratio, 2);
  EXPECT_EQ(paired_ratio({2, 4, kNan, 8, 16}, {1, 2, 1, 4, 8}).high, 2);
  EXPECT_EQ(paired_ratio({10, kNan}, {kNan, 1}).ratio, 0);
  EXPECT_EQ(paired_ratio({}, {1}).high, 0);
  const Ratio noisy = paired_ratio({1, 2, 3, 4, 5}, {1, 1, 1, 1, 1});
  EXPECT_EQ(noisy.ratio, 3);
  EXPECT_LT(noisy.low, 3);
  EXPECT_GT(noisy.high, 3);
}

TEST(Statistics, TheIntervalHoldsTheMedianInNineteenOfTwenty) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(1.1, 0.05);
  const auto ratio_of = [&](int rounds) {
    std::vector<double> base, other;
    for (int i = 0; i < rounds; ++i) base.push_back(noise(random)), other.push_back(1);
    const Ratio ratio = paired_ratio(base, other), again = paired_ratio(base, other);
    EXPECT_EQ(ratio.low, again.low);  // a fixed seed
    EXPECT_LE(ratio.low, ratio.ratio);
    EXPECT_LE(ratio.ratio, ratio.high);
    return ratio;
  };
  int holds = 0;
  double width = 0;
  for (int i = 0; i < 40; ++i) {
    const Ratio ratio = ratio_of(50);
    holds += ratio.low <= 1.1 && 1.1 <= ratio.high;
    width += (ratio.high - ratio.low) / 40;
  }
  EXPECT_GE(holds, 34);
  // The median of 50 normal values has a standard error of 1.25 sigma / sqrt(50) = 0.0089.
  EXPECT_NEAR(width, 2 * 1.96 * 0.0089, 0.007);
}

TEST(Statistics, Verdicts) {
  EXPECT_STREQ(verdict({1.02, 1.001, 1.04}), "faster");
  EXPECT_STREQ(verdict({1.0199, 1.001, 1.04}), "same");
  EXPECT_STREQ(verdict({0.98, 0.97, 0.99}), "slower");
  EXPECT_STREQ(verdict({0.9805, 0.97, 0.99}), "same");
  EXPECT_STREQ(verdict({1.1, 0.999, 1.2}), "same");
  EXPECT_STREQ(verdict({0.9, 0.8, 1.001}), "same");
  EXPECT_STREQ(verdict({1.015, 1.01, 1.02}), "same");
}

// ---- roofs -------------------------------------------------------------------------------------

TEST(RoofOfALadder, IsTheOneThatIsNamed) {
  const std::vector<std::pair<Roof, const char*>> all = {{Roof::hbm_copy, "HBM copy"},
                                                         {Roof::hbm_read, "HBM read"},
                                                         {Roof::l2, "L2"},
                                                         {Roof::shared, "shared memory"},
                                                         {Roof::fp32, "FP32 FMA"},
                                                         {Roof::mma_bf16, "mma.sync bf16"},
                                                         {Roof::wgmma_bf16, "wgmma bf16"},
                                                         {Roof::fp64, "FP64 FMA"},
                                                         {Roof::mma_tf32, "mma.sync tf32"},
                                                         {Roof::mma_int8, "mma.sync int8"},
                                                         {Roof::wgmma_tf32, "wgmma tf32"},
                                                         {Roof::wgmma_fp8, "wgmma fp8"},
                                                         {Roof::wgmma_int8, "wgmma int8"}};
  ASSERT_EQ(all.size(), measured_roofs().size());
  Roofs roofs;
  for (std::size_t i = 0; i < all.size(); ++i) roofs[all[i].first] = static_cast<double>(i + 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(measured_roofs()[i].roof, all[i].first);
    EXPECT_EQ(roof_value(roofs, all[i].first), static_cast<double>(i + 1)) << all[i].second;
    EXPECT_EQ(roof_value({}, all[i].first), std::nullopt);
    EXPECT_STREQ(roof_name(all[i].first), all[i].second);
    EXPECT_EQ(roof_is_bandwidth(all[i].first), i < 4) << all[i].second;
  }
}

}  // namespace
}  // namespace cookbook
