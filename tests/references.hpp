// SPDX-License-Identifier: MIT
// Shared by the tests of the references: a problem's tensors on the host, and its reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/harness/contract/tensor.hpp"
#include "common/harness/verdict/inputs.hpp"

namespace cookbook {

/// u of fp32: half the distance from 1 to its neighbour.
constexpr double kU = 0x1p-24;

/// Zeros in every tensor of `problem`, or what its `fill` says.
template <class P>
HostTensors zeros(const P& problem) {
  HostTensors tensors;
  for (const TensorSpec& spec : problem.tensors()) {
    HostTensor tensor(spec);
    if (spec.fill) spec.fill(tensor, 1);
    tensors.list.push_back(std::move(tensor));
  }
  return tensors;
}

/// As the harness draws them.
template <class P>
HostTensors drawn(const P& problem, InputKind kind = InputKind::normal) {
  HostTensors tensors = zeros(problem);
  for (HostTensor& tensor : tensors.list) {
    if (tensor.spec.role != Role::output) draw(tensor, kind, 5);
  }
  return tensors;
}

/// Sets the elements of tensor `name`, row by row.
inline void put(HostTensors& tensors, const std::string& name,
                const std::vector<std::vector<double>>& rows) {
  HostTensor& tensor = tensors[name];
  ASSERT_EQ(tensor.spec.rows, static_cast<std::int64_t>(rows.size()));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    ASSERT_EQ(tensor.spec.cols, static_cast<std::int64_t>(rows[row].size()));
    for (std::size_t col = 0; col < rows[row].size(); ++col) {
      tensor.set(static_cast<std::int64_t>(row), static_cast<std::int64_t>(col), rows[row][col]);
    }
  }
}

struct Row {
  std::vector<double> value, bound;
};

/// Row `row` of the reference of `output`.
template <class P>
Row reference(const P& problem, const HostTensors& tensors, const std::string& output,
              std::int64_t row) {
  const auto cols = static_cast<std::size_t>(tensors[output].spec.cols);
  // One more element on either side: a reference must not write there.
  Row found{std::vector<double>(cols + 2, -77), std::vector<double>(cols + 2, -77)};
  problem.reference_row(tensors, output, row, &found.value[1], &found.bound[1]);
  for (std::vector<double>* list : {&found.value, &found.bound}) {
    EXPECT_EQ(list->front(), -77);
    EXPECT_EQ(list->back(), -77);
    list->pop_back();
    list->erase(list->begin());
  }
  return found;
}

/// Equal up to fp64's own errors; NaN and infinity where they are expected.
inline void expect_equal(double got, double expected, const std::string& what,
                         double relative = 1e-12) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << what << ": " << got;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(got, expected) << what;
  } else {
    EXPECT_LE(std::fabs(got - expected), relative * std::fabs(expected))
        << what << ": " << got << " instead of " << expected;
  }
}

inline void expect_values(const std::vector<double>& got, const std::vector<double>& expected,
                          const std::string& what, double relative = 1e-12) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    expect_equal(got[i], expected[i], what + "[" + std::to_string(i) + "]", relative);
  }
}

}  // namespace cookbook
