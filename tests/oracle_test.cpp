// SPDX-License-Identifier: MIT
// The references themselves: small cases whose answer is written out here, and larger ones against
// a formula that shares no code with the reference. Bounds are pinned to numbers worked out by
// hand: a bound that is twice as wide, or half as wide, fails.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>

#include "chapters/00_roofs/types.hpp"
#include "chapters/01_coalescing/problem.hpp"
#include "chapters/02_tiling/problem.hpp"
#include "chapters/03_bank_conflicts/problem.hpp"
#include "common/problems/gemm.hpp"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/10_flash_attention/sidebar_masks.hpp"
#include "chapters/11_autotuning/attention_problem.hpp"
#include "chapters/11_autotuning/rope_problem.hpp"
#include "chapters/12_fp8/problem.hpp"
#include "chapters/13_attention_backward/problem.hpp"
#include "chapters/14_blackwell/problem.hpp"
#include "tests/references.hpp"
#include "tests/special_values.hpp"

namespace cookbook {
namespace {

// Name, type, rows, columns, pitch and role of every tensor.
using Expected = std::tuple<std::string, DType, std::int64_t, std::int64_t, std::int64_t, Role>;
template <class P>
void expect_tensors(const P& problem, const std::vector<Expected>& expected) {
  std::vector<Expected> found;
  for (const TensorSpec& spec : problem.tensors()) {
    found.push_back({spec.name, spec.dtype, spec.rows, spec.cols, spec.pitch, spec.role});
  }
  EXPECT_EQ(found, expected);
}

// ---- chapter 0: roofs --------------------------------------------------------------------------

TEST(Roofs, ReadSumsRowsOf1024AsOftenAsItPasses) {
  const auto problem = roofs::ReadProblem::make({2, 3}, {});
  EXPECT_EQ(problem.bytes(), 2 * 1024 * 4 * 3);
  EXPECT_EQ(problem.flops(), 0);
  expect_tensors(problem, {{"in", DType::f32, 2, 1024, 1024, Role::input},
                           {"out", DType::f32, 2, 1, 1, Role::output}});
  HostTensors at = zeros(problem);
  for (int c = 0; c < 1024; ++c) at["in"].set(1, c, c % 2 ? 1 : -3);
  const Row row = reference(problem, at, "out", 1);
  EXPECT_EQ(row.value[0], 3 * (512 - 3 * 512));
  // 3 passes; magnitude 512 + 1536 = 2048; 16 (8 + 3) u of it each pass.
  expect_equal(row.bound[0], 3.0 * 2048 * 16 * 11 * kU, "bound");
  EXPECT_EQ(reference(problem, at, "out", 0).value[0], 0);
  const auto once = roofs::ReadProblem::make({2, 1}, {});
  EXPECT_EQ(reference(once, at, "out", 1).value[0], -1024);
  expect_equal(reference(once, at, "out", 1).bound[0], 2048.0 * 16 * 9 * kU, "bound, once");
  const Row none = reference(roofs::ReadProblem::make({2, 0}, {}), at, "out", 1);
  EXPECT_EQ(none.value[0], 0);
  EXPECT_EQ(none.bound[0], 0);
}

TEST(Roofs, SharedReadsTheRingInTurn) {
  for (const int repeats : {1, 3, 8, 19}) {
    const auto problem = roofs::SharedProblem::make({2, repeats}, {});
    EXPECT_EQ(problem.bytes(), 16.0 * 2 * 256 * repeats);
    HostTensors at = drawn(problem);
    const Row row = reference(problem, at, "out", 1);
    for (int thread = 0; thread < 256; ++thread) {
      long double sum = 0, magnitude = 0;
      for (int r = 0; r < repeats; ++r) {
        for (int i = 0; i < 4; ++i) {
          const double x = at["in"].at(0, (thread + 32 * r) % 256 * 4 + i);
          sum += x, magnitude += std::fabs(x);
        }
      }
      ASSERT_NEAR(row.value[thread], static_cast<double>(sum), 1e-12);
      expect_equal(row.bound[thread], static_cast<double>(magnitude) * (repeats + 8) * kU, "bound",
                   1e-9);
    }
  }
  const auto none = roofs::SharedProblem::make({1, 0}, {});
  EXPECT_EQ(reference(none, drawn(none), "out", 0).value[9], 0);
}

TEST(Roofs, SixteenChainsOfMultiplyAdds) {
  const auto problem = roofs::FmaProblem::make({2, 3}, {});
  EXPECT_EQ(problem.flops(), 2.0 * 2 * 256 * 16 * 3);
  EXPECT_EQ(problem.bytes(), 4.0 * 2 * 256);
  HostTensors at = zeros(problem);
  std::set<double> distinct;
  for (int t = 0; t < 256; ++t) {
    const double a = at["a"].at(0, t);
    EXPECT_GE(a, 0.25);
    EXPECT_LT(a, 0.75);
    distinct.insert(a);
  }
  EXPECT_GT(distinct.size(), 100u);
  at["a"].set(0, 7, 0.5);
  // x0 = c; x3 = c/8 + (1/4 + 1/2 + 1) / 2 = c/8 + 7/8; over c = 0 .. 15: 120/8 + 16 * 7/8 = 29.
  const Row row = reference(problem, at, "out", 0);
  EXPECT_EQ(row.value[7], 29);
  expect_equal(row.bound[7], 64.0 * 288 * kU, "bound");  // 64 u, times 16 chains up to 18
}

// `lost`: of a product's magnitude, in each repetition.
template <class Problem>
void expect_repeated_product(DType in, DType out, int k, double lost) {
  const auto problem = Problem::make({2, 5}, {});
  expect_tensors(problem, {{"a", in, 64, k, k, Role::input},
                           {"b", in, 32, k, k, Role::input},
                           {"out", out, 128, 32, 32, Role::output}});
  EXPECT_EQ(problem.flops(), 2.0 * 64 * 32 * k * 2 * 5);
  const HostTensors at = drawn(problem);
  std::set<double> distinct;
  const Row row = reference(problem, at, "out", 64 + 9);
  for (int n = 0; n < 32; ++n) {
    long double sum = 0, magnitude = 0;
    for (int i = 0; i < k; ++i) {
      const long double term = static_cast<long double>(at["a"].at(9, i)) * at["b"].at(n, i);
      sum += 5 * term, magnitude += 5 * std::fabs(term);
      distinct.insert(at["b"].at(n, i));
      EXPECT_EQ(at["b"].at(n, i), rounded(in, at["b"].at(n, i)));
    }
    EXPECT_NEAR(row.value[n], static_cast<double>(sum), 1e-12 * static_cast<double>(magnitude));
    expect_equal(row.bound[n], 2 * 5 * lost * static_cast<double>(magnitude), "bound", 1e-9);
  }
  EXPECT_EQ(reference(Problem::make({1, 0}, {}), at, "out", 0).value[0], 0);
  EXPECT_GT(distinct.size(), 40u);  // bits that change
}

TEST(Roofs, ProductsAreAddedUpAsOftenAsTheyRepeat) {
  expect_repeated_product<roofs::MmaProblem>(DType::bf16, DType::f32, 16, 16 * kU);
  using namespace roofs;
  expect_repeated_product<MmaTypeProblem<Tf32>>(DType::f32, DType::f32, 8, 0x1p-23);
  expect_repeated_product<MmaTypeProblem<Int8>>(DType::i8, DType::i32, 32, 0);
  expect_repeated_product<MmaTypeProblem<E4m3>>(DType::e4m3, DType::f32, 32, 0x1p-13);
  expect_tensors(roofs::WgmmaProblem::make({1, 1}, {}),
                 {{"a", DType::bf16, 128, 64, 64, Role::input},
                  {"b", DType::bf16, 256, 64, 64, Role::input},
                  {"out", DType::f32, 128, 256, 256, Role::output}});
  // What the tensor core ignores of fp32 is zero.
  const HostTensors at = drawn(roofs::WgmmaTypeProblem<roofs::Tf32>::make({1, 1}, {}));
  for (int k = 0; k < 32; ++k) {
    EXPECT_EQ(std::remainder(at["b"].at(200, k), 0x1p-10), 0);
  }
}

TEST(Roofs, EightChainsOfMultiplyAddsInFp64) {
  const auto problem = roofs::Fma64Problem::make({2, 3}, {});
  EXPECT_EQ(problem.flops(), 2.0 * 2 * 256 * 8 * 3);
  EXPECT_EQ(problem.bytes(), 8.0 * 2 * 256);
  HostTensors at = drawn(problem);
  EXPECT_EQ(at["a"].spec.dtype, DType::f64);
  at["a"].set(0, 7, 0.5);
  // As with sixteen chains of fp32: c/8 + 7/8 over c = 0 .. 7: 28/8 + 7.
  const Row row = reference(problem, at, "out", 0);
  EXPECT_EQ(row.value[7], 10.5);
  expect_equal(row.bound[7], 64 * 0x1p-53 * 80, "bound");
}

// ---- chapter 1: copy ---------------------------------------------------------------------------

TEST(Copy, EveryElementAsItIs) {
  const auto problem = coalescing::Problem::make({5}, {});
  expect_tensors(problem, {{"in", DType::f32, 1, 5, 5, Role::input},
                           {"out", DType::f32, 1, 5, 5, Role::output}});
  EXPECT_EQ(problem.bytes(), 40);
  HostTensors at = zeros(problem);
  put(at, "in", {{1, -2, kInf, kNan, 0x1p-149}});
  const Row row = reference(problem, at, "out", 0);
  expect_values(row.value, {1, -2, kInf, kNan, 0x1p-149}, "value", 0);
  expect_values(row.bound, {0, 0, 0, 0, 0}, "bound", 0);

  const auto rows = coalescing::Problem::make({8192}, {});
  expect_tensors(rows, {{"in", DType::f32, 2, 4096, 4096, Role::input},
                        {"out", DType::f32, 2, 4096, 4096, Role::output}});
  HostTensors two = zeros(rows);
  two["in"].data<float>()[4096] = 3;
  two["in"].data<float>()[8191] = 4;
  EXPECT_EQ(reference(rows, two, "out", 1).value[0], 3);
  EXPECT_EQ(reference(rows, two, "out", 1).value[4095], 4);
  EXPECT_EQ(coalescing::Problem::make({0}, {}).tensors()[0].elements(), 0);
}

TEST(Copy, IsCutWhereBothReachABoundary) {
  const auto cut = [](std::uintptr_t in, std::uintptr_t out, std::int64_t n) {
    const auto split = coalescing::split_for_vectors(
        {reinterpret_cast<const float*>(in), reinterpret_cast<float*>(out)}, n);
    return std::pair(split.head, split.vectors);
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(cut(4096, 8192, 10), Pair(0, 2));
  EXPECT_EQ(cut(4096 + 4, 8192 + 4, 10), Pair(3, 1));
  EXPECT_EQ(cut(4096 + 12, 8192 + 12, 10), Pair(1, 2));
  EXPECT_EQ(cut(4096 + 4, 8192 + 4, 2), Pair(2, 0));
  EXPECT_EQ(cut(4096 + 4, 8192, 10), Pair(0, 0));  // no cut suits both
  EXPECT_EQ(cut(4096, 8192, 0), Pair(0, 0));
}

// Sums of the products of A's and B's elements, as they are stored.
template <class P>
void expect_sums(const P& problem, const Size& size, bool a_transposed, bool b_transposed) {
  const HostTensors at = drawn(problem);
  for (int i = 0; i < size[0]; ++i) {
    const Row row = reference(problem, at, "c", i);
    for (int j = 0; j < size[1]; ++j) {
      long double sum = 0;
      for (int p = 0; p < size[2]; ++p) {
        const double a = a_transposed ? at["a"].at(p, i) : at["a"].at(i, p);
        sum += static_cast<long double>(a) * (b_transposed ? at["b"].at(j, p) : at["b"].at(p, j));
      }
      ASSERT_NEAR(row.value[j], static_cast<double>(sum), 1e-13) << i << ", " << j;
    }
  }
}

// Of one row of A, -1 and 1 in turn, and one column of B, all 1 but for the last.
template <class P>
Row alternating_sum(const P& problem, int k, double last) {
  HostTensors at = zeros(problem);
  for (int p = 0; p < k; ++p) at["a"].set(0, p, p % 2 ? 1 : -1), at["b"].set(p, 0, 1);
  at["b"].set(k - 1, 0, last);
  return reference(problem, at, "c", 0);
}

// ---- chapters 2 and 4: GEMM, fp32 --------------------------------------------------------------

TEST(Sgemm, ByHand) {
  const auto problem = sgemm::Problem::make({2, 2, 3}, {.extra_pitch = 3});
  expect_tensors(problem, {{"a", DType::f32, 2, 3, 6, Role::input},
                           {"b", DType::f32, 3, 2, 5, Role::input},
                           {"c", DType::f32, 2, 2, 5, Role::output}});
  EXPECT_EQ(problem.flops(), 2 * 2 * 2 * 3);
  EXPECT_EQ(problem.bytes(), 4 * (6 + 6 + 4));
  HostTensors at = zeros(problem);
  put(at, "a", {{1, 2, 3}, {4, 5, -6}});
  put(at, "b", {{7, 8}, {9, 10}, {11, 12}});
  expect_values(reference(problem, at, "c", 0).value, {58, 64}, "row 0", 0);
  expect_values(reference(problem, at, "c", 1).value, {28 + 45 - 66, 32 + 50 - 72}, "row 1", 0);
  // 4 sqrt(3) u times the magnitudes, 28 + 45 + 66 and 32 + 50 + 72.
  expect_values(reference(problem, at, "c", 1).bound,
                {4 * std::sqrt(3.0) * kU * 139, 4 * std::sqrt(3.0) * kU * 154}, "bound");
}

TEST(Sgemm, TheBoundAtTwoSizes) {
  for (const int k : {4, 64}) {  // 4 sqrt(k) u k: 2^-19 and 2^-13
    const Row row = alternating_sum(sgemm::Problem::make({1, 1, k}, {}), k, 1);
    EXPECT_EQ(row.value[0], 0);
    expect_equal(row.bound[0], k == 4 ? 0x1p-19 : 0x1p-13, "bound");
  }
  // Products that are denormal may lose all: one smallest number for each.
  const auto tiny = sgemm::Problem::make({1, 1, 4}, {});
  expect_equal(reference(tiny, zeros(tiny), "c", 0).bound[0], 4 * 0x1p-149, "bound of zeros");
}

TEST(Sgemm, AgainstTheFormula) {
  for (const Size& size : {Size{3, 5, 7}, Size{1, 9, 33}, Size{4, 1, 2}}) {
    expect_sums(sgemm::Problem::make(size, {.extra_pitch = 2}), size, false, false);
  }
}

TEST(Sgemm, NanAndInfinityArriveAndNothingIsZero) {
  const auto problem = sgemm::Problem::make({3, 2, 2}, {});
  HostTensors at = zeros(problem);
  put(at, "a", {{0, 1}, {1, 1}, {2, 3}});
  put(at, "b", {{kInf, 1}, {1, kNan}});
  expect_values(reference(problem, at, "c", 0).value, {kNan, kNan}, "0 * inf");
  expect_values(reference(problem, at, "c", 1).value, {kInf, kNan}, "inf");
  const auto empty = sgemm::Problem::make({2, 3, 0}, {});
  expect_values(reference(empty, zeros(empty), "c", 1).value, {0, 0, 0}, "k = 0");
}

// ---- chapter 3: transpose ----------------------------------------------------------------------

TEST(Transpose, ByHand) {
  const auto problem = transpose::Problem::make({2, 3}, {.extra_pitch = 4});
  expect_tensors(problem, {{"in", DType::f32, 2, 3, 7, Role::input},
                           {"out", DType::f32, 3, 2, 6, Role::output}});
  EXPECT_EQ(problem.bytes(), 48);
  HostTensors at = zeros(problem);
  put(at, "in", {{1, 2, 3}, {4, kNan, -kInf}});
  expect_values(reference(problem, at, "out", 0).value, {1, 4}, "row 0", 0);
  expect_values(reference(problem, at, "out", 1).value, {2, kNan}, "row 1", 0);
  expect_values(reference(problem, at, "out", 2).value, {3, -kInf}, "row 2", 0);
  expect_values(reference(problem, at, "out", 2).bound, {0, 0}, "bound", 0);
}

TEST(Transpose, ProductsOfTiles) {  // of the sidebar on broadcasts: three GEMMs of 2 x 2
  HostTensor a({"a", DType::f32, 6, 2, 2, Role::input});
  HostTensor b = a;
  const double left[6][2] = {{1, 2}, {3, 4}, {1, 0}, {0, 1}, {2, -2}, {1, 1}};
  const double right[6][2] = {{5, 6}, {7, 8}, {9, 1}, {2, 3}, {1, 1}, {1, 1}};
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 2; ++j) a.set(i, j, left[i][j]), b.set(i, j, right[i][j]);
  }
  const double expected[6][2] = {{19, 22}, {43, 50}, {9, 1}, {2, 3}, {0, 0}, {2, 2}};
  const double magnitude[6][2] = {{19, 22}, {43, 50}, {9, 1}, {2, 3}, {4, 4}, {2, 2}};
  for (int row = 0; row < 6; ++row) {
    double value[2], bound[2];
    transpose::product_row<2>(a, b, row, value, bound);
    for (int col = 0; col < 2; ++col) {
      EXPECT_EQ(value[col], expected[row][col]) << row << ", " << col;
      expect_equal(bound[col], 4 * std::sqrt(2.0) * kU * magnitude[row][col], "bound");
    }
  }
}

// ---- chapters 5 to 8: GEMM, 16 bits ------------------------------------------------------------

// Every pattern, against arithmetic that shares nothing with it.
TEST(Gemm, ElementsOfEitherTypeAreReadRight) {
  HostTensor one_half({"x", DType::f16, 1, 1, 1, Role::input});
  HostTensor one_bf16({"x", DType::bf16, 1, 1, 1, Role::input});
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    half h;
    bf16 b;
    std::memcpy(static_cast<void*>(&h), &narrow, 2);
    std::memcpy(static_cast<void*>(&b), &narrow, 2);
    one_half.data<std::uint16_t>()[0] = one_bf16.data<std::uint16_t>()[0] = narrow;
    expect_equal(gemm::ElementOf<half>::value(h), one_half.at(0, 0), "f16", 0);
    expect_equal(gemm::ElementOf<bf16>::value(b), one_bf16.at(0, 0), "bf16", 0);
    if (HasFailure()) return;
  }
}

template <class P>
void gemm_by_hand(bool a_transposed, bool b_transposed) {
  constexpr DType kType = gemm::ElementOf<typename P::Element>::dtype;
  const auto problem = P::make_layout({2, 4, 3}, {.extra_pitch = 5}, a_transposed, b_transposed);
  EXPECT_EQ(problem.layout(), std::string(a_transposed ? "T" : "N") + (b_transposed ? "T" : "N"));
  expect_tensors(
      problem,
      {{"a", kType, a_transposed ? 3 : 2, a_transposed ? 2 : 3, a_transposed ? 7 : 8, Role::input},
       {"b", kType, b_transposed ? 4 : 3, b_transposed ? 3 : 4, b_transposed ? 8 : 9, Role::input},
       {"c", kType, 2, 4, 9, Role::output}});
  EXPECT_EQ(problem.flops(), 2 * 2 * 4 * 3);
  EXPECT_EQ(problem.bytes(), 2 * (6 + 12 + 8));
  HostTensors at = zeros(problem);
  put(at, "a",
      a_transposed ? std::vector<std::vector<double>>{{1, 4}, {2, 5}, {3, -6}}
                   : std::vector<std::vector<double>>{{1, 2, 3}, {4, 5, -6}});
  put(at, "b",
      b_transposed ? std::vector<std::vector<double>>{{1, 5, 9}, {2, 6, 10}, {3, 7, 11}, {4, 8, 12}}
                   : std::vector<std::vector<double>>{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}});
  expect_values(reference(problem, at, "c", 0).value, {38, 44, 50, 56}, problem.layout(), 0);
  expect_values(reference(problem, at, "c", 1).value, {-25, -22, -19, -16}, problem.layout(), 0);
  // Magnitudes of row 1: 4 + 25 + 54, ...; 2 k u = 6 u of them, then half an ulp of values in
  // 16 .. 32, where the error does not carry it beyond.
  const double half_ulp_16 = kType == DType::bf16 ? 0x1p-4 : 0x1p-7;
  expect_values(reference(problem, at, "c", 1).bound,
                {6 * kU * 83 + half_ulp_16, 6 * kU * 98 + half_ulp_16, 6 * kU * 113 + half_ulp_16,
                 6 * kU * 128 + half_ulp_16},
                "bound");
}

TEST(Gemm, ByHandInEveryLayout) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      gemm_by_hand<gemm::ProblemT<bf16>>(a, b);
      gemm_by_hand<gemm::ProblemT<half>>(a, b);
    }
  }
  const auto layout = [](auto problem) { return problem.make({8, 8, 8}, {}).layout(); };
  EXPECT_EQ(layout(gemm::Problem{}), "NN");
  EXPECT_EQ(layout(gemm::LayoutProblem<bf16, false, true>{}), "NT");
  EXPECT_EQ(layout(gemm::LayoutProblem<bf16, true, false>{}), "TN");
  EXPECT_EQ(layout(gemm::LayoutProblem<bf16, true, true>{}), "TT");
}

template <class T>
double gemm_bound(int k, double last) {
  return alternating_sum(gemm::ProblemT<T>::make({1, 1, k}, {}), k, last).bound[0];
}

TEST(Gemm, TheBoundAtTwoSizes) {
  // k = 64, all magnitudes 1, value 0: 2 * 64 u * 64 = 2^-11, and half an ulp there.
  expect_equal(gemm_bound<bf16>(64, 1), 0x1p-11 + 0x1p-19, "bf16, 64");
  expect_equal(gemm_bound<half>(64, 1), 0x1p-11 + 0x1p-22, "f16, 64");
  // k = 2, value -1 + 3 = 2, magnitude 4: 4 u * 4 = 2^-20, and half an ulp of 2.
  expect_equal(gemm_bound<bf16>(2, 3), 0x1p-20 + 0x1p-7, "bf16, 2");
  expect_equal(gemm_bound<half>(2, 3), 0x1p-20 + 0x1p-10, "f16, 2");
}

TEST(Gemm, AgainstTheFormula) {
  const Size size = {5, 7, 41};
  expect_sums(gemm::Problem::make_layout(size, {.extra_pitch = 1}, true, true), size, true, true);
}

TEST(Gemm, NanInfinityAndNoTerms) {
  const auto problem = gemm::Problem::make({2, 2, 2}, {});
  HostTensors at = zeros(problem);
  put(at, "a", {{0, 1}, {1, 1}});
  put(at, "b", {{kInf, 1}, {1, kNan}});
  expect_values(reference(problem, at, "c", 0).value, {kNan, kNan}, "0 * inf");
  expect_values(reference(problem, at, "c", 1).value, {kInf, kNan}, "inf");
  const auto empty = gemm::Problem::make({1, 2, 0}, {});
  const Row row = reference(empty, zeros(empty), "c", 0);
  expect_values(row.value, {0, 0}, "k = 0", 0);
  expect_values(row.bound, {0x1p-134, 0x1p-134}, "k = 0");  // half of the smallest bf16
}

// ---- chapter 9: softmax and RMSNorm ------------------------------------------------------------

TEST(Softmax, ByHand) {
  const auto problem = softmax::Problem<float>::make({4, 2}, {.extra_pitch = 3});
  expect_tensors(problem, {{"in", DType::f32, 4, 2, 5, Role::input},
                           {"out", DType::f32, 4, 2, 5, Role::output}});
  EXPECT_EQ(problem.bytes(), 2 * 4 * 8);
  EXPECT_EQ((softmax::Problem<bf16>::make({4, 2}, {}).bytes()), 2 * 2 * 8);
  HostTensors at = zeros(problem);
  put(at, "in", {{5, 5}, {1, 2}, {-kInf, 3}, {800, -800}});
  expect_values(reference(problem, at, "out", 0).value, {0.5, 0.5}, "equal");
  const double e = 2.718281828459045;
  expect_values(reference(problem, at, "out", 1).value, {1 / (1 + e), e / (1 + e)}, "1, 2");
  expect_values(reference(problem, at, "out", 2).value, {0, 1}, "-inf, 3");
  expect_values(reference(problem, at, "out", 3).value, {1, 0}, "800, -800");
}

TEST(Softmax, SpecialRows) {
  const auto problem = softmax::Problem<float>::make({5, 3}, {});
  HostTensors at = zeros(problem);
  put(at, "in",
      {{-kInf, -kInf, -kInf}, {kInf, 1, 2}, {1, kNan, 2}, {3e38, -3e38, 3e38}, {-kInf, 7, -kInf}});
  expect_values(reference(problem, at, "out", 0).value, {kNan, kNan, kNan}, "all -inf");
  expect_values(reference(problem, at, "out", 1).value, {kNan, kNan, kNan}, "+inf");
  expect_values(reference(problem, at, "out", 2).value, {kNan, kNan, kNan}, "NaN");
  expect_values(reference(problem, at, "out", 3).value, {0.5, 0, 0.5}, "huge");
  expect_values(reference(problem, at, "out", 4).value, {0, 1, 0}, "one");
  // Zero is right up to the smallest normal number and half the smallest denormal.
  expect_equal(reference(problem, at, "out", 4).bound[0], 0x1p-126 + 0x1p-150, "bound of 0");
}

TEST(Softmax, TheBoundAtTwoSizes) {
  const auto bound = [](auto problem, double first) {
    HostTensors at = zeros(problem);
    at["in"].set(0, 0, first);
    return reference(problem, at, "out", 0).bound;
  };
  using F32 = softmax::Problem<float>;
  using B16 = softmax::Problem<bf16>;
  // Four equal: 32 + 4 sqrt(4) = 40 u of 1/4, and half an ulp of 1/4.
  expect_equal(bound(F32::make({1, 4}, {}), 0)[3], 10 * kU + 0x1p-26 + 0x1p-126, "4");
  expect_equal(bound(B16::make({1, 4}, {}), 0)[3], 10 * kU + 0x1p-10 + 0x1p-126, "4, bf16");
  // 64 equal: 32 + 32 = 64 u of 1/64.
  expect_equal(bound(F32::make({1, 64}, {}), 0)[9], kU + 0x1p-30 + 0x1p-126, "64");
  // {-2, 0}: w = exp(-2); the mean distance is 2 w / (1 + w), element 0 lies 2 below the maximum.
  const double w = std::exp(-2.0), mean = 2 * w / (1 + w), common = 32 + 4 * std::sqrt(2.0);
  const std::vector<double> two = bound(F32::make({1, 2}, {}), -2);
  expect_equal(two[0], w / (1 + w) * kU * (common + 3 * mean + 6) + 0x1p-28 + 0x1p-126, "below");
  expect_equal(two[1], 1 / (1 + w) * kU * (common + 3 * mean) + 0x1p-25 + 0x1p-126, "maximum");
}

TEST(Softmax, AgainstTheFormula) {
  const auto problem = softmax::Problem<bf16>::make({3, 37}, {.extra_pitch = 2});
  const HostTensors at = drawn(problem, InputKind::wide);
  for (int row = 0; row < 3; ++row) {
    const Row found = reference(problem, at, "out", row);
    for (int col = 0; col < 37; ++col) {  // 1 / sum of exp(x[j] - x[i])
      long double inverse = 0;
      for (int j = 0; j < 37; ++j) {
        inverse += std::exp(static_cast<long double>(at["in"].at(row, j)) - at["in"].at(row, col));
      }
      expect_equal(found.value[col], static_cast<double>(1 / inverse), "value", 1e-11);
    }
  }
}

TEST(Softmax, TheSidebarsRowsAreWhatTheirNumbersSay) {
  HostTensor in({"in", DType::f32, 8, 6, 6, Role::input});
  softmax::fill_special_rows(in, 1);
  const auto count = [&](int row, auto&& is) {
    int found = 0;
    for (int col = 0; col < 6; ++col) found += is(in.at(row, col));
    return found;
  };
  const auto finite = [](double x) { return std::isfinite(x); };
  EXPECT_EQ(count(0, [](double x) { return x == -kInf; }), 6);
  EXPECT_EQ(count(1, [](double x) { return x == kInf; }), 1);
  EXPECT_EQ(count(1, finite), 5);
  EXPECT_EQ(count(2, [](double x) { return std::isnan(x); }), 1);
  EXPECT_EQ(count(2, finite), 5);
  EXPECT_EQ(count(3, [](double x) { return x == -kInf; }), 5);
  EXPECT_EQ(count(3, finite), 1);
  EXPECT_EQ(count(4, [](double x) { return x > 2e38; }), 6);
  EXPECT_EQ(count(5, [](double x) { return x > 2e38; }), 3);
  EXPECT_EQ(count(5, [](double x) { return x < -2e38; }), 3);
  EXPECT_EQ(count(6, [](double x) { return x == -std::numeric_limits<float>::max(); }), 6);
  EXPECT_EQ(count(7, [](double x) { return x == -kInf; }), 2);
  EXPECT_EQ(count(7, finite), 4);
}

TEST(RmsNorm, ByHand) {
  const auto problem = softmax::RmsProblem<float>::make({3, 2}, {.extra_pitch = 2});
  expect_tensors(problem, {{"in", DType::f32, 3, 2, 4, Role::input},
                           {"weight", DType::f32, 1, 2, 2, Role::input},
                           {"out", DType::f32, 3, 2, 4, Role::output}});
  EXPECT_EQ(problem.bytes(), 4 * (12 + 2));
  HostTensors at = zeros(problem);
  put(at, "in", {{3, 4}, {0, 0}, {0.0009765625, 0}});
  put(at, "weight", {{1, -2}});
  const double epsilon = 1e-6f;  // in the mean of the squares: 12.5, 0, 2^-21
  const double norm = std::sqrt(12.5 + epsilon);
  expect_values(reference(problem, at, "out", 0).value, {3 / norm, -8 / norm}, "3, 4");
  expect_values(reference(problem, at, "out", 1).value, {0, 0}, "zeros");
  expect_equal(reference(problem, at, "out", 2).value[0], 0x1p-10 / std::sqrt(0x1p-21 + epsilon),
               "no larger than epsilon");
  // (8 + 2 sqrt(2)) u of the value, half an ulp of it (in 0.5 .. 1 and 2 .. 4), and denormals.
  const double relative = (8 + 2 * std::sqrt(2.0)) * kU;
  expect_values(reference(problem, at, "out", 0).bound,
                {relative * 3 / norm + 0x1p-25, relative * 8 / norm + 0x1p-23}, "bound");
  expect_values(reference(problem, at, "out", 1).bound, {6 * 0x1p-150, 7 * 0x1p-150}, "of zeros");
  put(at, "in", {{kNan, 4}, {kInf, 1}, {1, 1}});
  expect_values(reference(problem, at, "out", 0).value, {kNan, kNan}, "NaN");
  expect_values(reference(problem, at, "out", 1).value, {kNan, -0.0}, "inf / inf, 1 / inf");
}

TEST(RmsNorm, TheBoundAtAnotherSize) {
  const auto problem = softmax::RmsProblem<bf16>::make({1, 64}, {});
  HostTensors at = zeros(problem);
  for (int c = 0; c < 64; ++c) at["in"].set(0, c, 2), at["weight"].set(0, c, 1);
  const Row row = reference(problem, at, "out", 0);
  const double value = 2 / std::sqrt(4 + double{1e-6f});  // a little below 1
  expect_equal(row.value[0], value, "value");
  expect_equal(row.bound[0], value * 24 * kU + 0x1p-9, "bound");
}

// ---- chapter 10: attention ---------------------------------------------------------------------

using attention::Problem;

// Queries of zero give every visible key the same weight, and V = 1 in column j of key j shows
// which they are: o[j] = 1 / visible for a key that is seen, 0 for one that is not.
template <class P>
std::string keys_seen(const P& problem, HostTensors& at, std::int64_t o_row, int keys,
                      std::int64_t first_key_row, std::int64_t key_stride) {
  HostTensor& v = at["v"];
  for (std::int64_t row = 0; row < v.spec.rows; ++row) {
    for (std::int64_t col = 0; col < v.spec.cols; ++col) v.set(row, col, 0);
  }
  for (int j = 0; j < keys; ++j) v.set(first_key_row + j * key_stride, j, 1);
  const Row row = reference(problem, at, "o", o_row);
  std::string seen;
  double weight = 0;
  for (int j = 0; j < keys; ++j) {
    if (row.value[j] != 0) seen += std::to_string(j) + " ", weight = row.value[j];
  }
  if (seen.empty()) return "none";
  seen.pop_back();
  const auto count = 1 + std::count(seen.begin(), seen.end(), ' ');
  expect_equal(weight, 1.0 / static_cast<double>(count), "weight");
  return seen;
}

std::vector<std::string> seen_by_each(std::int64_t seq_q, std::int64_t seq_k, bool causal) {
  const Problem problem = Problem::make({1, 1, 1, seq_q, seq_k, 64}, {}, DType::bf16, causal);
  HostTensors at = zeros(problem);
  std::vector<std::string> seen;
  for (std::int64_t i = 0; i < seq_q; ++i) {
    seen.push_back(keys_seen(problem, at, i, static_cast<int>(seq_k), 0, 1));
  }
  return seen;
}

TEST(Attention, WhichKeysAQuerySees) {
  using Seen = std::vector<std::string>;
  EXPECT_EQ(seen_by_each(3, 3, false), (Seen{"0 1 2", "0 1 2", "0 1 2"}));
  EXPECT_EQ(seen_by_each(3, 2, false), (Seen{"0 1", "0 1", "0 1"}));
  EXPECT_EQ(seen_by_each(3, 3, true), (Seen{"0", "0 1", "0 1 2"}));
  // Aligned to the bottom right: the last query sees every key.
  EXPECT_EQ(seen_by_each(3, 5, true), (Seen{"0 1 2", "0 1 2 3", "0 1 2 3 4"}));
  EXPECT_EQ(seen_by_each(5, 3, true), (Seen{"none", "none", "0", "0 1", "0 1 2"}));
  EXPECT_EQ(seen_by_each(1, 4, true), (Seen{"0 1 2 3"}));  // decode: one query
  EXPECT_EQ(seen_by_each(2, 4, true), (Seen{"0 1 2", "0 1 2 3"}));
  EXPECT_EQ(seen_by_each(4, 1, true), (Seen{"none", "none", "none", "0"}));
  EXPECT_EQ(seen_by_each(2, 0, false), (Seen{"none", "none"}));
}

TEST(Attention, VisiblePairsBytesAndFlops) {
  const auto pairs = [](std::int64_t q, std::int64_t k, bool causal) {
    return Problem::make({2, 4, 2, q, k, 64}, {}, DType::bf16, causal).visible_pairs();
  };
  EXPECT_EQ(pairs(3, 5, false), 15);
  EXPECT_EQ(pairs(3, 5, true), 3 + 4 + 5);
  EXPECT_EQ(pairs(5, 3, true), 1 + 2 + 3);
  const Problem p = Problem::make({2, 4, 2, 3, 5, 64}, {.extra_pitch = 8}, DType::f16, true);
  EXPECT_EQ(p.flops(), 4.0 * 64 * 12 * 2 * 4);
  // q and o: 24 rows, k and v: 20 rows, of 64 elements of 2 bytes; 24 values of lse.
  EXPECT_EQ(p.bytes(), 2.0 * 64 * (2 * 24 + 2 * 20) + 4 * 24);
  expect_tensors(p, {{"q", DType::f16, 24, 64, 72, Role::input},
                     {"k", DType::f16, 20, 64, 72, Role::input},
                     {"v", DType::f16, 20, 64, 72, Role::input},
                     {"o", DType::f16, 24, 64, 72, Role::output},
                     {"lse", DType::f32, 24, 1, 1, Role::output}});
  EXPECT_NEAR(p.shape.scale_log2, std::log2(std::exp(1.0)) / 8, 1e-7);
  EXPECT_NEAR(Problem::make({1, 1, 1, 1, 1, 128}, {}).shape.scale_log2,
              std::log2(std::exp(1.0)) / std::sqrt(128.0), 1e-7);
}

// Bytes of K for tiles of 4 queries and 2 keys: whole tiles as far as keys exist.
TEST(Attention, BytesOfKeyTiles) {
  const auto bytes = [](std::int64_t q, std::int64_t k, bool causal) {
    return Problem::make({1, 1, 1, q, k, 64}, {}, DType::bf16, causal).key_tile_bytes(4, 2) / 128;
  };
  EXPECT_EQ(bytes(8, 8, false), 8 + 8);
  EXPECT_EQ(bytes(8, 8, true), 4 + 8);
  EXPECT_EQ(bytes(6, 5, false), 5 + 5);
  EXPECT_EQ(bytes(6, 5, true), 4 + 5);  // queries 0 .. 3 see 3 keys: two tiles
  EXPECT_EQ(bytes(8, 4, true), 0 + 4);
}

// Batches, heads and groups of heads: each (batch, query, head) finds its own keys.
TEST(Attention, AgainstTheFormula) {
  struct Case {
    Size size;
    bool causal;
    DType dtype;
  };
  for (const Case& c :
       {Case{{2, 6, 2, 3, 5, 64}, false, DType::bf16}, Case{{2, 6, 2, 3, 5, 64}, true, DType::f16},
        Case{{1, 4, 4, 5, 3, 64}, true, DType::bf16}, Case{{2, 8, 1, 1, 4, 128}, true, DType::bf16},
        Case{{3, 3, 3, 2, 1, 128}, false, DType::f16}}) {
    const Problem problem = Problem::make(c.size, {.extra_pitch = 8}, c.dtype, c.causal);
    const HostTensors at = drawn(problem);
    const std::int64_t batches = c.size[0], heads = c.size[1], kv_heads = c.size[2];
    const std::int64_t seq_q = c.size[3], seq_k = c.size[4], dim = c.size[5];
    for (std::int64_t b = 0; b < batches; ++b) {
      for (std::int64_t i = 0; i < seq_q; ++i) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t q_row = (b * seq_q + i) * heads + h;
          std::vector<long double> o(static_cast<std::size_t>(dim), 0);
          long double sum = 0;
          for (std::int64_t j = 0; j < seq_k; ++j) {
            if (c.causal && j > i + (seq_k - seq_q)) continue;
            const std::int64_t k_row = (b * seq_k + j) * kv_heads + h * kv_heads / heads;
            long double score = 0;
            for (std::int64_t x = 0; x < dim; ++x) {
              score += static_cast<long double>(at["q"].at(q_row, x)) * at["k"].at(k_row, x);
            }
            const long double weight = std::exp(score / std::sqrt(static_cast<long double>(dim)));
            sum += weight;
            for (std::int64_t x = 0; x < dim; ++x) {
              o[static_cast<std::size_t>(x)] += weight * at["v"].at(k_row, x);
            }
          }
          const Row row = reference(problem, at, "o", q_row);
          const Row lse = reference(problem, at, "lse", (b * heads + h) * seq_q + i);
          for (std::int64_t x = 0; x < dim; ++x) {
            const auto at_x = static_cast<std::size_t>(x);
            const double expected = sum == 0 ? 0 : static_cast<double>(o[at_x] / sum);
            ASSERT_NEAR(row.value[at_x], expected, 1e-12) << b << ", " << i << ", " << h;
          }
          if (sum == 0) {
            EXPECT_EQ(lse.value[0], -kInf);
            EXPECT_EQ(lse.bound[0], 0);
            EXPECT_EQ(row.bound[0], 0);
          } else {
            ASSERT_NEAR(lse.value[0], static_cast<double>(std::log(sum)), 1e-12);
          }
        }
      }
    }
  }
}

// Both outputs of one query that sees `keys` keys; q and k hold `x` everywhere, v holds 1.
std::pair<double, double> attention_bounds(int keys, int dim, double x, DType dtype) {
  const Problem problem = Problem::make({1, 1, 1, 1, keys, dim}, {}, dtype, false);
  HostTensors at = zeros(problem);
  for (int c = 0; c < dim; ++c) {
    at["q"].set(0, c, x);
    for (int j = 0; j < keys; ++j) at["k"].set(j, c, x), at["v"].set(j, c, 1);
  }
  const Row o = reference(problem, at, "o", 0), lse = reference(problem, at, "lse", 0);
  EXPECT_EQ(o.value[dim - 1], 1);
  expect_equal(lse.value[0], x * x * std::sqrt(double(dim)) + std::log(double(keys)), "lse");
  return {o.bound[0], lse.bound[0]};
}

TEST(Attention, TheBoundsAtTwoSizes) {
  // Scores of 0: s is off by 2^-20 = 16 u at most, which o may feel twice. 16-bit weights, 2 n u
  // for n keys, 8 u; the weight of a key may be flushed; half an ulp of the output, just above 1.
  const double s = std::expm1(0x1p-20);
  for (const int keys : {1, 4}) {
    const auto [bf16_o, lse] = attention_bounds(keys, 64, 0, DType::bf16);
    expect_equal(bf16_o, 2 * s + 0x1p-8 + (2 * keys + 8) * kU + 0x1p-126 + 0x1p-8, "bf16");
    const auto [f16_o, same] = attention_bounds(keys, 64, 0, DType::f16);
    expect_equal(f16_o, 2 * s + 0x1p-11 + (2 * keys + 8) * kU + 0x1p-25 + 0x1p-11, "f16");
    // 16 u of s, 2 n u, 8 u of the value, 2^-21 = 8 u.
    expect_equal(lse, (16 + 2 * keys + 8 * std::log(double(keys)) + 8) * kU, "lse");
    EXPECT_EQ(same, lse);
  }
  // A score of 8 at d = 64: 2 (2 d u 8 + 4 u 8) = 2,112 u more.
  const auto [o, lse] = attention_bounds(1, 64, 1, DType::bf16);
  expect_equal(lse, (2112 + 16 + 2 + 64 + 8) * kU, "lse of a score of 8");
  expect_equal(o, 2 * std::expm1(2128 * kU) + 0x1p-8 + 10 * kU + 0x1p-126 + 0x1p-8, "o");
  // d = 128: a score of sqrt(128).
  const double score = std::sqrt(128.0);
  expect_equal(attention_bounds(1, 128, 1, DType::bf16).second,
               (2 * (256 + 4) * score + 16 + 2 + 8 * score + 8) * kU, "lse, d = 128");
}

// However wrong the scores may be, o is a mean of the values that the query sees.
TEST(Attention, TheBoundEndsWithTheSpreadOfV) {
  const Problem problem = Problem::make({1, 1, 1, 1, 2, 64}, {}, DType::bf16, false);
  HostTensors at = zeros(problem);
  for (int c = 0; c < 64; ++c) {
    at["q"].set(0, c, 256), at["k"].set(0, c, 256), at["k"].set(1, c, 256);
    at["v"].set(0, c, 1), at["v"].set(1, c, -1);
  }
  const Row row = reference(problem, at, "o", 0);
  EXPECT_EQ(row.value[0], 0);
  // deviation: 2 * 132 u * 524288, more than 8; (expm1 of it) * 1 > 2 largest = 2.
  expect_equal(row.bound[0], 2 + 0x1p-8 + 12 * kU + 0x1p-126 + 0x1p-7, "bound", 1e-6);
}

TEST(Attention, NanAndInfinity) {
  const Problem problem = Problem::make({1, 1, 1, 2, 2, 64}, {}, DType::bf16, true);
  HostTensors at = zeros(problem);
  at["v"].set(1, 0, kNan);  // a key that query 0 does not see, and query 1 does
  at["v"].set(1, 1, kInf);
  const Row hidden = reference(problem, at, "o", 0), seen = reference(problem, at, "o", 1);
  EXPECT_EQ(hidden.bound[0], kInf);  // any value will do: a tile multiplies it by zero or skips it
  EXPECT_EQ(hidden.bound[1], kInf);
  EXPECT_LT(hidden.bound[2], 1);
  EXPECT_TRUE(std::isnan(seen.value[0]));
  EXPECT_EQ(seen.value[1], kInf);
  EXPECT_EQ(seen.value[2], 0);
  at = zeros(problem);
  at["q"].set(1, 5, kNan);
  EXPECT_TRUE(std::isnan(reference(problem, at, "o", 1).value[63]));
  EXPECT_EQ(reference(problem, at, "o", 0).value[63], 0);
  at = zeros(problem);
  at["q"].set(1, 5, 1);
  at["k"].set(1, 5, -kInf);  // weight 0: query 1 sees key 0 only
  at["v"].set(0, 3, 7);
  EXPECT_EQ(reference(problem, at, "o", 1).value[3], 7);
  expect_equal(reference(problem, at, "lse", 1).value[0], 0, "lse of one key");
}

// An infinity is lost only with a weight that 16 bits do not hold: 16 times the smallest of a half
// is 2^-21, between exp(-15) and exp(-14).
TEST(Attention, AnInfinityIsSeenThroughASmallWeight) {
  const Problem problem = Problem::make({1, 1, 1, 1, 2, 64}, {}, DType::f16, false);
  for (const int below : {1, 14, 15}) {
    HostTensors at = zeros(problem);
    at["q"].set(0, 0, 8);
    at["k"].set(1, 0, -below);  // a score of -below
    at["v"].set(1, 3, kInf);
    const Row row = reference(problem, at, "o", 0);
    EXPECT_EQ(row.value[3], below == 15 ? 0 : kInf) << below;
    EXPECT_EQ(row.bound[3], kInf) << below;
    EXPECT_LT(row.bound[4], 1) << below;
  }
}

TEST(Attention, Chapter11SpellsTheMaskAsAnExtent) {
  using Tuned = attention::tuned::Problem;
  EXPECT_TRUE(Tuned::make({1, 2, 1, 3, 5, 64, 1}, {}).shape.causal);
  EXPECT_FALSE(Tuned::make({1, 2, 1, 3, 5, 64, 2}, {}).shape.causal);
  EXPECT_EQ(Tuned::make({1, 2, 1, 3, 5, 64, 1}, {}).size(), (Size{1, 2, 1, 3, 5, 64, 1}));
  EXPECT_EQ(Tuned::make({1, 2, 1, 3, 5, 64, 2}, {}).size(), (Size{1, 2, 1, 3, 5, 64, 2}));
}

using attention::MaskedProblem;
using attention::MaskKind;

TEST(Masks, PackedSequencesSeeThemselves) {
  MaskedProblem problem = MaskedProblem::make({3, 2, 1, 4, 64}, {}, MaskKind::variable_lengths);
  problem.offsets = {0, 4, 4, 6};  // lengths 4, 0 and 2
  EXPECT_EQ(problem.positions(), 6);
  EXPECT_EQ(problem.visible_pairs(), 16 + 0 + 4);
  EXPECT_EQ(problem.flops(), 4.0 * 64 * 20 * 2);
  EXPECT_EQ(problem.bytes(), 4.0 * 64 * 6 * 3);
  HostTensors at = zeros(problem);
  for (const int head : {0, 1}) {
    EXPECT_EQ(keys_seen(problem, at, 3 * 2 + head, 6, 0, 1), "0 1 2 3");
    EXPECT_EQ(keys_seen(problem, at, 4 * 2 + head, 6, 0, 1), "4 5");
    EXPECT_EQ(keys_seen(problem, at, 5 * 2 + head, 6, 0, 1), "4 5");
  }
  expect_equal(reference(problem, at, "lse", 0).value[0], std::log(4.0), "lse");
  expect_equal(reference(problem, at, "lse", 11).value[0], std::log(2.0), "lse");
}

TEST(Masks, ListedKeysAndTiles) {
  MaskedProblem list = MaskedProblem::make({2, 2, 2, 70, 64}, {}, MaskKind::index_list);
  list.offsets = {0, 3, 3};  // queries 0 .. 63 see three keys, queries 64 .. 69 none
  list.indices = {7, 0, 69};
  EXPECT_EQ(list.visible_pairs(), 2 * 64 * 3);
  HostTensors at = zeros(list);
  for (const int batch : {0, 1}) {
    for (const int head : {0, 1}) {
      const int first = batch * 70 * 2 + head;  // row of position 0, in q and in k
      at["v"] = zeros(list)["v"];
      for (const int key : {0, 7, 69}) at["v"].set(first + 2 * key, key % 64, key + 1);
      at["v"].set(first + 2, 1, 1000);  // key 1 is not listed
      const Row row = reference(list, at, "o", first + 2 * 63);
      expect_equal(row.value[0], 1.0 / 3, "key 0");
      expect_equal(row.value[7], 8.0 / 3, "key 7");
      expect_equal(row.value[5], 70.0 / 3, "key 69");
      EXPECT_EQ(row.value[1], 0);
      expect_equal(reference(list, at, "lse", first + 2 * 63).value[0], std::log(3.0), "lse");
      EXPECT_EQ(reference(list, at, "lse", first + 2 * 64).value[0], -kInf);
    }
  }
  MaskedProblem sparse = MaskedProblem::make({1, 1, 1, 130, 64}, {}, MaskKind::block_sparse);
  sparse.offsets = {0, 1, 3, 3};  // tile 0 sees tile 2 (keys 128, 129), tile 1 sees 0 and 1
  sparse.indices = {2, 0, 1};
  at = zeros(sparse);
  expect_equal(reference(sparse, at, "lse", 63).value[0], std::log(2.0), "lse of tile 0");
  expect_equal(reference(sparse, at, "lse", 64).value[0], std::log(128.0), "lse of tile 1");
  EXPECT_EQ(reference(sparse, at, "lse", 128).value[0], -kInf);
  at["v"].set(129, 3, 4);
  EXPECT_EQ(reference(sparse, at, "o", 0).value[3], 2);
  EXPECT_EQ(reference(sparse, at, "o", 64).value[3], 0);
  EXPECT_EQ(sparse.visible_pairs(), 64 * 2 + 64 * 128);
}

TEST(Masks, TablesAsMadeAreWhatTheLaddersNeed) {
  const auto lengths = MaskedProblem::make({4, 1, 1, 129, 64}, {}, MaskKind::variable_lengths);
  ASSERT_EQ(lengths.offsets.size(), 5u);
  EXPECT_EQ(lengths.length(0), 129);
  std::set<int> distinct;
  for (int b = 0; b < 4; ++b) {
    EXPECT_GE(lengths.length(b), 0);
    EXPECT_LE(lengths.length(b), 129);
    distinct.insert(lengths.length(b));
  }
  EXPECT_GT(distinct.size(), 2u);
  for (const MaskKind kind : {MaskKind::block_sparse, MaskKind::index_list}) {
    const auto masked = MaskedProblem::make({1, 1, 1, 641, 64}, {}, kind);
    ASSERT_EQ(masked.offsets.size(), 12u);
    EXPECT_EQ(masked.offsets.front(), 0);
    EXPECT_EQ(masked.offsets.back(), static_cast<int>(masked.indices.size()));
    for (int m = 0; m < 11; ++m) {
      if (m % 5 == 4) {
        EXPECT_EQ(masked.listed(m).size(), 0u);  // every fifth tile sees nothing
      } else {
        EXPECT_GT(masked.listed(m).size(), 0u);
        EXPECT_LT(masked.listed(m).size(), 641u);
      }
      std::set<std::int64_t> keys;
      for (const std::int64_t key : masked.listed(m)) {
        EXPECT_GE(key, 0);
        EXPECT_LT(key, 641);
        keys.insert(key);
      }
      EXPECT_EQ(keys.size(), masked.listed(m).size());  // none twice
    }
  }
}

// ---- chapter 11: RoPE --------------------------------------------------------------------------

template <bool kSplit>
void rope_by_hand() {
  const auto problem = rope::ProblemT<kSplit>::make({2, 3, 4}, {.extra_pitch = 2});
  const char* const in = kSplit ? "in" : "x";
  const char* const out = kSplit ? "out" : "x";
  std::vector<Expected> tensors = {{in, DType::bf16, 6, 4, 6, kSplit ? Role::input : Role::in_out}};
  if (kSplit) tensors.push_back({out, DType::bf16, 6, 4, 6, Role::output});
  tensors.push_back({"cos", DType::f32, 2, 2, 4, Role::input});
  tensors.push_back({"sin", DType::f32, 2, 2, 4, Role::input});
  expect_tensors(problem, tensors);
  EXPECT_EQ(problem.bytes(), 8 * 12 + 8 * 4);
  HostTensors at = zeros(problem);
  // Position 1 and 2 turn pair 0 by 1 and 2, pair 1 by a hundredth of that: 10000^(-1/2).
  EXPECT_EQ(at["cos"].at(0, 0), double(float(std::cos(1.0))));
  EXPECT_EQ(at["sin"].at(0, 1), double(float(std::sin(0.01))));
  EXPECT_EQ(at["cos"].at(1, 1), double(float(std::cos(0.02))));
  EXPECT_EQ(at["sin"].at(1, 0), double(float(std::sin(2.0))));
  put(at, "cos", {{0, 1}, {0.5, 0.25}});
  put(at, "sin", {{1, 0}, {0.75, -2}});
  put(at, in, {{1, 2, 3, 4}, {1, 0, 0, 0}, {0, 0, 1, 0}, {1, 2, 3, 4}, {8, 0, 0, 0}, {0, 0, 0, 1}});
  // A quarter turn of (1, 3) gives (-3, 1); (2, 4) stays.
  expect_values(reference(problem, at, out, 0).value, {-3, 2, 1, 4}, "row 0", 0);
  expect_values(reference(problem, at, out, 1).value, {0, 0, 1, 0}, "row 1", 0);
  expect_values(reference(problem, at, out, 2).value, {-1, 0, 0, 0}, "row 2", 0);
  // The second token, from row 3 on.
  expect_values(reference(problem, at, out, 3).value, {0.5 - 2.25, 0.5 + 8, 1.5 + 0.75, 1 - 4},
                "row 3", 0);
  expect_values(reference(problem, at, out, 4).value, {4, 0, 6, 0}, "row 4", 0);
  expect_values(reference(problem, at, out, 5).value, {0, 2, 0, 0.25}, "row 5", 0);
  // 2 u of both terms, and half an ulp of a bf16: of 1.75, 8.5, 2.25 and 3.
  expect_values(
      reference(problem, at, out, 3).bound,
      {2 * kU * 2.75 + 0x1p-8, 2 * kU * 8.5 + 0x1p-5, 2 * kU * 2.25 + 0x1p-7, 2 * kU * 5 + 0x1p-7},
      "bound");
}
TEST(Rope, ByHand) {
  rope_by_hand<false>();
  rope_by_hand<true>();
}

// ---- chapter 13: its gradients -----------------------------------------------------------------

using Gradients = attention::backward::Problem;

// The sum of do * o in fp64, where `moved` is shifted by h times `direction`.
double weighted_output(const Gradients& problem, const HostTensors& at, const std::string& moved,
                       const HostTensor& direction, double h) {
  const attention::Shape& s = problem.shape();
  const int dim = problem.head_dim();
  const auto value = [&](const char* name, std::int64_t row, int x) {
    return at[name].at(row, x) + (moved == name ? h * direction.at(row, x) : 0);
  };
  double total = 0;
  for (int b = 0; b < s.batch; ++b) {
    for (int head = 0; head < s.heads_q; ++head) {
      for (int i = 0; i < s.seq_q; ++i) {
        double weights = 0, sum = 0;
        for (int j = 0; j < s.visible_keys(i); ++j) {
          double score = 0, gain = 0;
          for (int x = 0; x < dim; ++x) {
            score += value("q", s.q_row(b, i, head), x) * value("k", s.k_row(b, j, head), x);
            gain += at["do"].at(s.q_row(b, i, head), x) * value("v", s.k_row(b, j, head), x);
          }
          const double weight = std::exp(score / std::sqrt(static_cast<double>(dim)));
          weights += weight;
          sum += weight * gain;
        }
        if (weights > 0) total += sum / weights;
      }
    }
  }
  return total;
}

// Forward pass, backward pass, finite differences: along a direction, the change of the sum of
// do * o is that of the gradient. o is bf16, which puts 2^-9 of itself into delta.
TEST(AttentionBackward, GradientsAreDirectionalDerivatives) {
  for (const auto& [size, causal] :
       {std::pair{Size{2, 4, 2, 5, 7, 64}, true}, std::pair{Size{1, 2, 1, 6, 3, 128}, true},
        std::pair{Size{1, 3, 3, 4, 5, 64}, false}}) {
    Gradients problem = Gradients::make(size, {}, causal);
    HostTensors at = drawn(problem);
    problem.complete_inputs(at);
    problem.begin_reference(at);
    for (const char* name : {"q", "k", "v"}) {
      HostTensor direction(at[name].spec);
      draw(direction, InputKind::normal, 11);
      double slope = 0, size_of_terms = 0;
      for (std::int64_t row = 0; row < direction.spec.rows; ++row) {
        const Row gradient = reference(problem, at, std::string("d") + name, row);
        for (std::int64_t x = 0; x < direction.spec.cols; ++x) {
          const double term = gradient.value[static_cast<std::size_t>(x)] * direction.at(row, x);
          slope += term;
          size_of_terms += term * term;
        }
      }
      constexpr double kStep = 1e-4;
      const double difference = (weighted_output(problem, at, name, direction, kStep) -
                                 weighted_output(problem, at, name, direction, -kStep)) /
                                (2 * kStep);
      EXPECT_NEAR(slope, difference, 0.02 * std::sqrt(size_of_terms)) << name << ", " << causal;
    }
  }
}

// q, o and k so that every weight is 1; do and v hold 1, and so dp = d and ds = d.
TEST(AttentionBackward, TheBoundsAtTwoSizes) {
  const double p_error = std::expm1(0x1p-20) + 0x1p-126;
  for (const int queries : {1, 2}) {
    Gradients problem = Gradients::make({1, 1, 1, queries, 1, 64}, {}, false);
    HostTensors at = zeros(problem);
    for (int x = 0; x < 64; ++x) {
      for (int i = 0; i < queries; ++i) at["q"].set(i, x, 1), at["do"].set(i, x, 1);
      at["v"].set(0, x, 1);
    }
    problem.begin_reference(at);
    // Of each query 2^-8 for rounding p, and 2 n + 8 u; half an ulp of 1 or 2.
    const Row dv = reference(problem, at, "dv", 0);
    EXPECT_EQ(dv.value[63], queries);
    const double ulps = (2 * queries + 8) * kU;
    expect_equal(dv.bound[63],
                 queries * (p_error + 0x1p-8 + ulps * (1 + p_error)) + queries * 0x1p-8, "dv");
    // dp is off by 2 d u d, and by 4 u of itself; ds = 64 is rounded by 2^-2, dk = 8 n by 2^-5 n.
    const double ds_error =
        (1 + p_error) * ((128 + 4) * 64 * kU + 64 * 0x1p-149) + 64 * p_error + 0x1p-149;
    const Row dk = reference(problem, at, "dk", 0);
    EXPECT_EQ(dk.value[63], 8 * queries);
    expect_equal(dk.bound[63],
                 queries * (ds_error + 0x1p-2 + ulps * (64 + ds_error)) / 8 + queries * 0x1p-5,
                 "dk");
  }
}

// ---- products with scales -----------------------------------------------------------------------

// C[0][0] of rows of ones and of 1, -1, 1 ..., with these scales of A's blocks.
Row alternating_blocks(std::int64_t k, const std::vector<float>& scales) {
  const auto problem = fp8::Problem::make({1, 1, k}, {});
  HostTensors at = zeros(problem);
  for (std::int64_t i = 0; i < k; ++i) at["a"].set(0, i, 1), at["b"].set(0, i, i % 2 ? -1 : 1);
  for (std::size_t block = 0; block < scales.size(); ++block) {
    at["scale_a"].set(static_cast<std::int64_t>(block), 0, scales[block]);
    at["scale_b"].set(0, static_cast<std::int64_t>(block), 1);
  }
  return reference(problem, at, "c", 0);
}

TEST(ScaledFp8, TheBoundAtTwoSizes) {
  // 32 terms of 1 and their sum lose a unit of 2^-13 each; of 128 additions and a block 2^-24.
  const Row one = alternating_blocks(32, {1});
  EXPECT_EQ(one.value[0], 0);
  expect_equal(one.bound[0], 33 * 0x1p-13 + 129 * 32 * kU + 0x1p-16, "one step");
  expect_equal(alternating_blocks(32, {-4}).bound[0], 4 * (33 * 0x1p-13 + 129 * 32 * kU) + 0x1p-14,
               "a scale of -4");
  // Four steps, each of which may lose 2^-13 of what the ones before it have lost; and one.
  const double lost = 33 * (std::pow(1 + 0x1p-13, 4) - 1) + 33 * 0x1p-13;
  expect_equal(alternating_blocks(160, {1, 1}).bound[0], lost + 130 * 160 * kU + 0x1p-14,
               "two blocks");
}

// C[0][0] of rows of ones and of `right`, which repeats, all scales 1. `one`: the bits of a scale.
template <class F>
Row scaled_ones(std::int64_t k, std::uint8_t left, std::vector<std::uint8_t> right,
                std::uint8_t one) {
  const auto problem = microscaling::Problem<F>::make({1, 1, k}, {});
  HostTensors at = zeros(problem);
  for (std::int64_t i = 0; i < problem.row_bytes(); ++i) {
    at["a"].template data<std::uint8_t>()[i] = left;
    at["b"].template data<std::uint8_t>()[i] = right[static_cast<std::size_t>(i) % right.size()];
  }
  for (const char* name : {"scale_a", "scale_b"}) {
    std::fill_n(at[name].template data<std::uint8_t>(), at[name].spec.cols, one);
  }
  return reference(problem, at, "c", 0);
}

TEST(Microscaling, TheBoundAtTwoSizes) {
  using microscaling::Mxfp8, microscaling::Nvfp4;
  // Terms of 1, which cancel: each loses 2^-24, the sum and the result as much.
  const std::vector<std::uint8_t> alternating{0x38, 0xb8};
  EXPECT_EQ(scaled_ones<Mxfp8>(32, 0x38, alternating, 127).value[0], 0);
  expect_equal(scaled_ones<Mxfp8>(32, 0x38, alternating, 127).bound[0], 34 * kU + 0x1p-27, "32");
  expect_equal(scaled_ones<Mxfp8>(64, 0x38, alternating, 127).bound[0], 68 * kU + 0x1p-26, "64");
  // e2m1: 2 is 1, 10 is -1; an instruction adds 64 terms.
  EXPECT_EQ(scaled_ones<Nvfp4>(64, 0x22, {0xa2}, 0x38).value[0], 0);
  expect_equal(scaled_ones<Nvfp4>(64, 0x22, {0xa2}, 0x38).bound[0], 66 * kU + 0x1p-26, "NVFP4");
  // A sum that grows: 32 after the first instruction, which has lost 66 u by then.
  const Row sum = scaled_ones<Mxfp8>(64, 0x38, {0x38}, 127);
  EXPECT_EQ(sum.value[0], 64);
  expect_equal(sum.bound[0], 66 * kU + 34 * (32 + 66 * kU) * kU + 64 * kU + 0x1p-2, "a sum of 64");
}

}  // namespace
}  // namespace cookbook
