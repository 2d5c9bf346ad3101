// SPDX-License-Identifier: MIT
// Errors planted just inside and just outside the bound of every ladder's outputs, without a
// kernel: the correctly rounded reference passes, and so does what the bound allows, and nothing
// more. And what a ladder says of its problem is true of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "common/harness/run/options.hpp"
#include "common/harness/verdict/check.hpp"
#include "tests/chapters.hpp"
#include "tests/failures.hpp"
#include "tests/given.hpp"

namespace cookbook {
namespace {

// The smallest test size whose outputs have elements, and the first with `least` of them or more.
Size size_with_outputs(const Ladder& ladder, std::int64_t least) {
  for (const Size& size : ladder.test_sizes) {
    std::int64_t elements = 0;
    for (const TensorSpec& spec : ladder.make_problem(size, {})->tensors()) {
      if (spec.role != Role::input) elements += spec.rows * spec.cols;
    }
    if (elements >= least) return size;
  }
  return ladder.test_sizes.front();
}

// The next value of `dtype`, upwards for a `sign` of 1 and downwards for -1.
double neighbour(DType dtype, double value, double sign) {
  return rounded(dtype, value + sign * 2 * half_ulp(dtype, value));
}

class BoundsTest : public testing::Test {
 public:
  explicit BoundsTest(const Ladder& ladder) : ladder_(ladder) {}

  void TestBody() override {
    plant(size_with_outputs(ladder_, 1));
    plant(size_with_outputs(ladder_, 200));
    if (HasFailure()) return;
    describe();
  }

 private:
  void plant(const Size& size) {
    for (const InputKind kind : {InputKind::normal, InputKind::integers}) {
      if (running) {
        note_case(fmt::format("{}, {} inputs, in host code of problem.hpp", size_text(size),
                              input_kind_name(kind)),
                  command_of(ladder_, {}, size, {}, {kind, 1}));
      }
      Instance instance(ladder_, size, kind, 1);
      const auto own = ladder_.make_problem(size, {});
      own->begin_reference(instance.tensors());
      const AnyProblem& problem = *own;
      const std::vector<TensorSpec> specs = problem.tensors();
      const auto place = [&](const TensorSpec& spec, std::int64_t row, std::int64_t col, double x) {
        store(instance.pointers().get<void>(spec.name), spec, row * spec.pitch + col, x);
      };
      std::vector<std::vector<double>> values(specs.size()), bounds(specs.size());
      for (std::size_t i = 0; i < specs.size(); ++i) {
        const TensorSpec& spec = specs[i];
        if (spec.role == Role::input) continue;
        values[i].resize(static_cast<std::size_t>(spec.rows * spec.cols));
        bounds[i].resize(values[i].size());
        for (std::int64_t row = 0; row < spec.rows; ++row) {
          problem.reference_row(instance.tensors(), spec.name, row, &values[i][row * spec.cols],
                                &bounds[i][row * spec.cols]);
          for (std::int64_t col = 0; col < spec.cols; ++col) {
            place(spec, row, col, values[i][row * spec.cols + col]);
          }
        }
      }
      const std::string where =
          fmt::format("{} at {}, {} inputs", ladder_.name, size_text(size), input_kind_name(kind));
      const Instance::Comparison right = instance.compare();
      if (!right.ok) {
        ADD_FAILURE() << where << ": reference_row() or its bound is wrong: " << right.message;
        return;
      }
      for (std::size_t i = 0; i < specs.size(); ++i) {
        const auto last = static_cast<std::int64_t>(values[i].size()) - 1;
        for (const std::int64_t at : {std::int64_t{0}, last / 2, last}) {
          if (last < 0 || !std::isfinite(values[i][at]) || !std::isfinite(bounds[i][at])) continue;
          const TensorSpec& spec = specs[i];
          const bool exact = kind == InputKind::integers && problem.exact_on_integers();
          const double value = exact ? rounded(spec.dtype, values[i][at]) : values[i][at];
          const double bound = exact ? 0 : bounds[i][at];
          for (const double sign : {-1.0, 1.0}) {
            const auto passes = [&](double got) {
              place(spec, at / spec.cols, at % spec.cols, got);
              return instance.compare().ok;
            };
            // What is stored is rounded, so it is the stored number that lies inside or outside.
            double inside = rounded(spec.dtype, value + sign * 0.9 * bound);
            if (std::fabs(inside - value) > bound) inside = rounded(spec.dtype, value);
            if (!passes(inside)) {
              ADD_FAILURE() << where << ": " << spec.name << " " << at << ": " << inside
                            << " is within the bound and fails";
            }
            double outside = rounded(spec.dtype, value + sign * 1.1 * bound);
            // Beyond the largest float is infinity; beyond 0, the least of u32, is nothing.
            for (double before = NAN; std::fabs(outside - value) <= bound && outside != before;) {
              before = outside, outside = neighbour(spec.dtype, outside, sign);
            }
            if (std::isfinite(outside) && std::fabs(outside - value) > bound && passes(outside)) {
              ADD_FAILURE() << where << ": " << spec.name << " " << at << ": " << outside
                            << " passes for " << value << " +- " << bound;
            }
            place(spec, at / spec.cols, at % spec.cols, value);
          }
        }
      }
      ASSERT_TRUE(instance.compare().ok) << where;
    }
  }

  // Type and layout, and of attention the mask.
  void describe() {
    const auto problem = ladder_.make_problem(ladder_.test_sizes.back(), {});
    const std::vector<TensorSpec> specs = problem->tensors();
    // Two elements of four bits are a byte of the tensor.
    const int packed = ladder_.dtype == "e2m1" ? 2 : 1;
    EXPECT_STREQ(dtype_name(specs.at(0).dtype), packed == 2 ? "i8" : ladder_.dtype.c_str())
        << ladder_.name;
    if (ladder_.layout.size() == 2) {  // C = A B
      const auto product = ladder_.make_problem({2, 3, 10}, {})->tensors();
      const auto expect_stored = [](const TensorSpec& spec, char layout, std::int64_t rows,
                                    std::int64_t cols) {
        if (layout == 'T') std::swap(rows, cols);
        EXPECT_EQ(spec.rows, rows) << spec.name;
        EXPECT_EQ(spec.cols, cols) << spec.name;
      };
      expect_stored(product.at(0), ladder_.layout[0], 2, 10 / packed);
      expect_stored(product.at(1), ladder_.layout[1], 10 / packed, 3);
    }
    if (ladder_.dims.size() == 6 && ladder_.dims.back() == "head_dim") {
      const auto attention = ladder_.make_problem({1, 1, 1, 4, 4, 64}, {});
      const bool is_backward = attention->tensors().back().name == "dv";
      const double pairs = attention->flops() / ((is_backward ? 10 : 4) * 64);
      const bool causal = ladder_.title.find("causal") != std::string::npos;
      EXPECT_EQ(pairs, causal ? 10 : 16) << ladder_.name;
    }
  }

  const Ladder& ladder_;
};

const bool kBoundsRegistered = [] {
  for (const Ladder& ladder : tested_chapter().ladders) {
    register_test<BoundsTest>(tested_prefix() + "_bounds", ladder.name, std::cref(ladder));
  }
  return true;
}();

}  // namespace
}  // namespace cookbook
