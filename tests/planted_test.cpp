// SPDX-License-Identifier: MIT
// Planted bugs that the comparison must catch on either backend, each by its own message.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "common/harness/verdict/check.hpp"
#include "common/harness/verdict/inputs.hpp"
#include "tests/ended_run.hpp"
#include "tests/first_level.hpp"
#include "tests/planted/limits.hpp"
#include "tests/planted/product.hpp"
#include "tests/planted/reverse.hpp"
#include "tests/planted/small_types.hpp"
#include "tests/text.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/launch.hpp"
#endif

namespace cookbook::planted {
namespace {

template <Bug kBug>
CheckResult check(const Size& size = {4, 64}, const Variant& variant = {},
                  InputKind kind = InputKind::normal) {
  return check_first(reverse_ladder<kBug>(), size, 2, kind, variant);
}

TEST(Planted, TheRightKernelPasses) {
  for (const Size& size : reverse_ladder<Bug::none>().test_sizes) {
    EXPECT_EQ(check<Bug::none>(size).status, CheckResult::Status::ok);
    EXPECT_EQ(check<Bug::none>(size, {3, 1}).status, CheckResult::Status::ok);
  }
}

template <small_types::Bug kBug>
CheckResult check_small(const Size& size, InputKind kind = InputKind::normal,
                        const Variant& variant = {}) {
  return check_first(small_types::ladder<kBug>(), size, 2, kind, variant);
}

TEST(SmallTypes, TheRightKernelPassesWithAllInputs) {
  for (const Size& size : small_types::ladder<small_types::Bug::none>().test_sizes) {
    for (const InputKind kind : all_input_kinds()) {
      for (const std::int64_t misalign : {0, 1}) {
        const CheckResult result = check_small<small_types::Bug::none>(size, kind, {0, misalign});
        EXPECT_EQ(result.status, CheckResult::Status::ok)
            << input_kind_name(kind) << ": " << result.reason;
      }
    }
  }
}

TEST(SmallTypes, WrongKernelsAreCaught) {
  using enum small_types::Bug;
  expect_caught(check_small<read_as_unsigned>({1000}), "wide[0][");
  expect_caught(check_small<scale_forgotten>({1000}), "wide[0][");
  expect_caught(check_small<truncates>({1000}), "whole[0][");
  expect_caught(check_small<wraps>({4096}, InputKind::wide), "whole[0][");
  expect_caught(check_small<unwritten_tail>({33}), "wide[0][32] was never written");
}

TEST(Planted, OffByOne) { expect_caught(check<Bug::off_by_one>(), "out[0][0]: got "); }
TEST(Planted, UnwrittenTail) {
  expect_caught(check<Bug::unwritten_tail>({4, 40}), "out[0][32] was never written");
}
TEST(Planted, UnwrittenTailIsRightWhereThereIsNoTail) {
  EXPECT_EQ(check<Bug::unwritten_tail>().status, CheckResult::Status::ok);
}
TEST(Planted, StaleOutput) {
  expect_caught(check<Bug::stale_output>(),
                "right on the first run only: out[0][0] was never written");
}
TEST(Planted, NanProduced) {
  expect_caught(check<Bug::nan_produced>(), "out[0][7]: got ");
  EXPECT_CONTAINS(check<Bug::nan_produced>().reason, "nan");
}
TEST(Planted, ReversedIndexAtOneOddSize) {
  EXPECT_EQ(check<Bug::wrong_at_one_size>({4, 32}).status, CheckResult::Status::ok);
  EXPECT_EQ(check<Bug::wrong_at_one_size>({4, 34}).status, CheckResult::Status::ok);
  expect_caught(check<Bug::wrong_at_one_size>({4, 33}), "out[0][0]: got ");
}
TEST(Planted, PaddingWritten) {
  expect_caught(check<Bug::padding_written>({4, 64}, {2, 0}),
                "out[0][64] is padding between rows and was written");
}
TEST(Planted, InputChanged) {
  expect_caught(check<Bug::input_changed>(), "input `in` was changed");
  expect_caught(check<Bug::two_inputs_negated>(), "input `in` was changed");
}
TEST(Planted, OutOfBoundsStore) {
  expect_caught(check<Bug::out_of_bounds_store>(), "wrote outside `out`: guard band changed");
}
TEST(Planted, DiffersBetweenRuns) {
  expect_caught(check<Bug::differs_between_runs>(), "right on the first run only: out[0][3]: got ");
}
TEST(Planted, TooManyThreads) { expect_caught(check<Bug::too_many_threads>(), "1024"); }

#if COOKBOOK_SIMT
TEST(Planted, BarrierNotReachedByAll) {
  expect_caught(check<Bug::barrier_not_reached_by_all>(), "deadlock in block (0,0,0)");
}
#endif

template <ProductBug kBug>
CheckResult check_product(const Size& size = {32, 16, 192}) {
  return check_first(product_ladder<kBug>(), size, 2);
}

class PlantedProduct : public testing::Test {
  void SetUp() override {
    if (device_info().cc() < 80) GTEST_SKIP() << "needs mma.sync for bf16: sm_80";
  }
};

TEST_F(PlantedProduct, TheRightKernelPasses) {
  for (const Size& size : product_ladder<ProductBug::none>().test_sizes) {
    const CheckResult result = check_product<ProductBug::none>(size);
    EXPECT_EQ(result.status, CheckResult::Status::ok) << result.reason;
  }
}
TEST_F(PlantedProduct, FragmentOfTheWrongLayout) {
  expect_caught(check_product<ProductBug::wrong_fragment_layout>(), "c[0][0]: got ");
}
TEST_F(PlantedProduct, SwizzleOnOneSide) {
  // The swizzle does not move row 0: the first wrong element is in row 1.
  expect_caught(check_product<ProductBug::one_sided_swizzle>(), "c[1][0]: got ");
}
#if COOKBOOK_SIMT  // on a GPU the copies may be there in time all the same
TEST_F(PlantedProduct, MissingWait) {
  expect_caught(check_product<ProductBug::missing_wait>(), "c[0][0]: got ");
}
TEST_F(PlantedProduct, StageUsedTooEarly) {
  expect_caught(check_product<ProductBug::stage_used_too_early>(), "c[0][0]: got ");
}
#endif

// NaN positions must match: a kernel that loses the input's NaN, or spreads it, is wrong.
TEST(Planted, NanMustStayWhereItIs) {
  constexpr int kCols = 64;
  const auto place = [] {  // of the output's only NaN: the mirror of the input's
    HostTensor in({"in", DType::f32, 4, kCols, kCols, Role::input});
    draw(in, InputKind::one_nan, 1);
    for (int i = 0; i < 4 * kCols; ++i) {
      if (std::isnan(in.at(i / kCols, i % kCols))) {
        return std::pair{i / kCols, kCols - 1 - i % kCols};
      }
    }
    return std::pair{-1, -1};
  }();
  EXPECT_EQ(check<Bug::none>({4, kCols}, {}, InputKind::one_nan).status, CheckResult::Status::ok);

  EXPECT_EQ(check<Bug::nan_lost>().status, CheckResult::Status::ok);
  expect_caught(check<Bug::nan_lost>({4, kCols}, {}, InputKind::one_nan),
                fmt::format("out[{}][{}]: got 0, expected nan", place.first, place.second));

  EXPECT_EQ(check<Bug::nan_spread>().status, CheckResult::Status::ok);
  ASSERT_GT(place.second, 0) << "its neighbour is in the row, or another seed is needed";
  const CheckResult spread = check<Bug::nan_spread>({4, kCols}, {}, InputKind::one_nan);
  expect_caught(spread,
                fmt::format("out[{}][{}]: got nan, expected ", place.first, place.second - 1));
  EXPECT_LACKS(spread.reason, "expected nan");
}

// ---- the grader of exercises -------------------------------------------------------------------

#if COOKBOOK_SIMT
// Copies that land at once hide a wait that is missing. With COOKBOOK_SIMT_ASYNC=early, which some
// exercises suggest, all other checks use that schedule.
TEST(PlantedExercise, IsGradedUnderEverySchedule) {
  simt::set_async_schedule(simt::AsyncSchedule::early);
  const EndedRun ended =
      run_with_json(chapter_of({product_ladder<ProductBug::missing_wait>()}), {"--exercise", "1"});
  EXPECT_EQ(ended.status, 1);
  simt::set_async_schedule(simt::AsyncSchedule::late);
  int late = 0;
  for (const auto& check : ended.json.at("checks")) {
    const std::string what = check.at("check");
    if (what.find("elements longer") != std::string::npos) continue;  // it takes no such layout
    if (what.find("asynchronous copies") == std::string::npos) {
      EXPECT_EQ(check.at("passed"), true) << check;
    }
    if (what.find("asynchronous copies late") == std::string::npos) continue;
    ++late;
    EXPECT_EQ(check.at("passed"), false);
    EXPECT_CONTAINS(check.at("reason").get<std::string>(), "c[0][0]: got ");
  }
  EXPECT_EQ(late, 1);
}
#endif

// ---- a large problem, of which 16 rows are compared -------------------------------------------

constexpr int kRows = 4096;

CheckResult check_wrong(const Wrong& wrong, std::uint64_t seed = 1) {
  Ladder ladder = ladder_over<Costly>("costly", "reverse rows", {"rows", "cols"});
  ladder.levels = rows<WrongInPlaces<Costly>>();
  WrongInPlaces<Costly>::wrong = wrong;
  Instance instance(ladder, {kRows, 8}, InputKind::normal, seed);
  return check_level(ladder.levels[0], instance, instance.drawn(1));
}

TEST(PlantedInALargeProblem, ARightOnePasses) {
  EXPECT_EQ(check_wrong({kRows, kRows}).status, CheckResult::Status::ok);
}
TEST(PlantedInALargeProblem, FirstAndLastRow) {
  expect_caught(check_wrong({0, 1}), "out[0][0]: got ");
  expect_caught(check_wrong({kRows - 1, kRows}), "out[4095][0]: got ");
}
TEST(PlantedInALargeProblem, FirstAndLastColumn) {
  expect_caught(check_wrong({0, kRows, 0, 128, 0, 1}), "][0]: got ");
  expect_caught(check_wrong({0, kRows, 0, 128, 7, 8}), "][7]: got ");
}
TEST(PlantedInALargeProblem, TheLastElementOnly) {
  expect_caught(check_wrong({kRows - 1, kRows, 0, 128, 7, 8}), "out[4095][7]: got ");
}
// One warp's rows are wrong in every tile: the sample must not fall on the same rows of each.
TEST(PlantedInALargeProblem, TheSameRowsOfEveryTile) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    for (const int first : {0, 32, 64, 95}) {
      EXPECT_EQ(check_wrong({1, kRows - 1, first, first + 32}, seed).status,
                CheckResult::Status::mismatch)
          << "rows " << first << " and on, seed " << seed;
    }
  }
}
// Wherever two strips' worth of neighbouring rows lie, one row of them is compared.
TEST(PlantedInALargeProblem, ABandOfRowsAnywhere) {
  constexpr int kBand = 2 * (kRows / 14 + 1);
  for (int first = 1; first + kBand < kRows; first += 97) {
    EXPECT_EQ(check_wrong({first, first + kBand}).status, CheckResult::Status::mismatch) << first;
  }
}
// What a sample cannot do. Each row of 128 is made wrong alone: just the compared ones are noticed,
// others with another seed. The sizes of the tests are compared whole, and there each is caught.
TEST(PlantedInALargeProblem, OneWrongRowIsSeenOnlyWhereItIsSampled) {
  auto caught = [](auto problem, std::uint64_t seed) {
    using P = decltype(problem);
    Ladder ladder = ladder_over<P>("reverse", "reverse rows", {"rows", "cols"});
    ladder.levels = rows<WrongInPlaces<P>>();
    Instance instance(ladder, {128, 8}, InputKind::normal, seed);
    std::vector<int> found;
    for (int row = 0; row < 128; ++row) {
      WrongInPlaces<P>::wrong = {row, row + 1};
      if (check_level(ladder.levels[0], instance, instance.drawn(1)).status !=
          CheckResult::Status::ok) {
        found.push_back(row);
      }
    }
    return found;
  };
  const std::vector<int> sampled = caught(Costly{}, 1);
  EXPECT_EQ(sampled.size(), 16u);
  EXPECT_EQ(sampled.front(), 0);
  EXPECT_EQ(sampled.back(), 127);
  EXPECT_NE(sampled, caught(Costly{}, 2));
  EXPECT_EQ(caught(Problem{}, 1).size(), 128u);
}
// Unwritten elements are looked for everywhere, at any size.
TEST(PlantedInALargeProblem, UnwrittenAnywhere) {
  Wrong one;  // row 2,001 is one that the sample lacks: an error there is not seen
  one.first_row = 2001, one.end_row = 2002, one.first_col = 5, one.end_col = 6;
  EXPECT_EQ(check_wrong(one).status, CheckResult::Status::ok);
  one.unwritten = true;
  expect_caught(check_wrong(one), "out[2001][5] was never written");
}

// ---- under a bound of infinity ----------------------------------------------------------------

CheckResult check_four(float a, float b, float c, float d, int first = 0) {
  Ladder ladder = ladder_over<Unbounded>("unbounded", "four values", {"rows", "cols"});
  ladder.levels = rows<FourValues>();
  const float values[] = {a, b, c, d};
  std::copy(values, values + 4, FourValues::values);
  FourValues::first = first;
  return check_first(ladder, {1, 4}, 2);
}
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The reference gives a number and says that none is wrong: a NaN of a hidden key passes as well.
TEST(PlantedUnderAnInfiniteBound, AnyValueIsRightWhereTheReferenceSaysSo) {
  for (const float value : {0.0f, 1e30f, -kInf, kNan}) {
    EXPECT_EQ(check_four(value, kInf, kNan, 1).status, CheckResult::Status::ok) << value;
  }
}
TEST(PlantedUnderAnInfiniteBound, ButItMustBeWritten) {
  expect_caught(check_four(0, kInf, kNan, 1, 1), "out[0][0] was never written");
}
TEST(PlantedUnderAnInfiniteBound, PoisonWrittenIsPoison) {
  float poison;
  const std::uint32_t bits = poison_bits(DType::f32);
  std::memcpy(&poison, &bits, sizeof poison);
  expect_caught(check_four(poison, kInf, kNan, 1), "out[0][0] was never written");
}
// An infinite input makes the bound infinite too, and its result is known all the same.
TEST(PlantedUnderAnInfiniteBound, InfinityMustBeInfinity) {
  expect_caught(check_four(0, 7, kNan, 1), "out[0][1]: got 7, expected inf");
  expect_caught(check_four(0, -kInf, kNan, 1), "out[0][1]: got -inf, expected inf");
  expect_caught(check_four(0, kNan, kNan, 1), "out[0][1]: got nan, expected inf");
}
TEST(PlantedUnderAnInfiniteBound, NanMustBeNan) {
  expect_caught(check_four(0, kInf, 7, 1), "out[0][2]: got 7, expected nan");
}

// ---- results that depend on the order of blocks ----

// A level may say so: then another right result is right, and a wrong one is still wrong.
TEST(PlantedOrderDependent, ADifferentResultPassesOnlyWithinItsBound) {
  const auto check_twice = [](Ladder ladder, bool same_every_run, InputKind kind) {
    ladder.levels[0].same_every_run = same_every_run;
    return check_first(ladder, {4, 64}, 2, kind);
  };
  const auto sign = [&](bool same) {
    return check_twice(reverse_ladder<Bug::sign_of_zero_later>(), same, InputKind::signed_zeros);
  };
  expect_caught(sign(true), "two runs on the same inputs differ");
  EXPECT_EQ(sign(false).status, CheckResult::Status::ok);
  for (const bool same : {true, false}) {
    expect_caught(check_twice(reverse_ladder<Bug::differs_between_runs>(), same, InputKind::normal),
                  "right on the first run only: out[0][3]: got ");
  }
}

// ---- after timing -----------------------------------------------------------------------------

// Right when it was checked; then run again and again, and checked once more as after timing.
template <Bug kBug>
std::string check_after_runs(InputKind kind = InputKind::normal, const Variant& variant = {},
                             bool same_every_run = true) {
  const Ladder ladder = reverse_ladder<kBug>();
  Instance instance(ladder, {4, 64}, kind, 1, variant);
  const CheckResult before = check_level(ladder.levels[0], instance, instance.drawn(1));
  EXPECT_EQ(before.status, CheckResult::Status::ok) << before.reason;
  const std::uint64_t hash = instance.output_hash();
  const auto run = ladder.levels[0].prepare(instance.problem(), instance.pointers());
  for (int i = 0; i < 5; ++i) run(Stream{});
  return check_again(run, instance, hash, same_every_run).reason;
}

TEST(PlantedAfterTiming, TheRightKernelPasses) { EXPECT_EQ(check_after_runs<Bug::none>(), ""); }
TEST(PlantedAfterTiming, StaleOutput) {
  EXPECT_EQ(check_after_runs<Bug::stale_output>(), "out[0][0] was never written");
}
TEST(PlantedAfterTiming, AnotherResultInALaterRun) {
  EXPECT_EQ(check_after_runs<Bug::differs_between_runs>().rfind("out[0][3]: got ", 0), 0u);
  EXPECT_EQ(check_after_runs<Bug::differs_between_runs>(InputKind::normal, {}, false)
                .rfind("out[0][3]: got ", 0),
            0u);
}
// Within its bound, but not as before: the hash shows it.
TEST(PlantedAfterTiming, AnotherRightResultInALaterRun) {
  EXPECT_EQ(check_after_runs<Bug::sign_of_zero_later>(InputKind::signed_zeros),
            "the output differs from before");
  EXPECT_EQ(check_after_runs<Bug::sign_of_zero_later>(InputKind::signed_zeros, {}, false), "");
}
TEST(PlantedAfterTiming, OutOfBoundsInALaterRun) {
  EXPECT_EQ(check_after_runs<Bug::out_of_bounds_later>(), "wrote outside `in`: guard band changed");
}
TEST(PlantedAfterTiming, InputChangedInALaterRun) {
  EXPECT_EQ(check_after_runs<Bug::input_padding_changed_later>(InputKind::normal, {2, 0}),
            "input `in` was changed");
}

}  // namespace
}  // namespace cookbook::planted
