// SPDX-License-Identifier: MIT
// How the library chooses: library/choose.hpp.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "library/choose.hpp"

namespace {

using cookbook::library::Recording;
using cookbook::library::Shape;

struct Named {
  const char* name;
  double us_per_k;
};
constexpr Named kNamed[] = {{"slow", 3.0}, {"fast", 1.0}, {"never", HUGE_VAL}};
double by_arithmetic(const Named& candidate, const Shape& shape) {
  return candidate.us_per_k * static_cast<double>(shape.extents[1]);
}

TEST(Choose, ByArithmeticAlone) {
  const auto order = ranked(kNamed, Shape{{4, 8}, "NT"}, by_arithmetic, nullptr, 2);
  ASSERT_EQ(order.size(), 3u);
  EXPECT_STREQ(order[0].candidate->name, "fast");
  EXPECT_EQ(order[0].us, 8.0);
  EXPECT_EQ(order[0].predicted_us, 8.0);
  EXPECT_STREQ(order[1].candidate->name, "slow");
  EXPECT_STREQ(order[2].candidate->name, "never");  // does not support the shape
}

TEST(Choose, DistanceOfShapes) {
  EXPECT_EQ(distance(Shape{{1000, 3}, "NT"}, Shape{{1000, 3}, "NT"}), 0);
  EXPECT_DOUBLE_EQ(distance(Shape{{1000, 3}, "NT"}, Shape{{2000, 3}, "NT"}), std::log(2.0));
  EXPECT_DOUBLE_EQ(distance(Shape{{1000, 8}, "NT"}, Shape{{125, 1}, "NT"}),
                   std::sqrt(2.0) * std::log(8.0));
  EXPECT_DOUBLE_EQ(distance(Shape{{1000, 3}, "NT"}, Shape{{1000, 3}, "NN"}), 1);
  EXPECT_EQ(distance(Shape{{0, 1}, ""}, Shape{{1, 1}, ""}), 0);
}

TEST(Choose, WhatWasMeasuredNearbyOverrules) {
  const Recording recording("# us\n4 16 NT slow 12 fast 64 other 1\n\n", 2);
  // Measured 12 where 48 were predicted, and 64 where 16 were: factors of four.
  const auto order = ranked(kNamed, Shape{{4, 16}, "NT"}, by_arithmetic, &recording, 2);
  EXPECT_DOUBLE_EQ(order[0].us, 16 * 1.0 * std::pow(4, 1 / 3.0));  // one part in three
  EXPECT_DOUBLE_EQ(order[1].us, 16 * 3.0 / std::pow(4, 1 / 3.0));
  EXPECT_EQ(order[0].predicted_us, 16.0);
  const Recording often(
      "4 16 NT slow 12 fast 64\n4 16 NT slow 12 fast 64\n"
      "4 16 NT slow 12 fast 64\n4 16 NT slow 12 fast 64\n",
      2);
  EXPECT_STREQ(ranked(kNamed, Shape{{4, 16}, "NT"}, by_arithmetic, &often, 2)[0].candidate->name,
               "slow");
  // The farther, the less; far away and in another layout only arithmetic is left.
  EXPECT_STREQ(ranked(kNamed, Shape{{4, 64}, "NT"}, by_arithmetic, &often, 2)[0].candidate->name,
               "fast");
  const double weight = std::exp(-1 / 0.4);
  EXPECT_DOUBLE_EQ(ranked(kNamed, Shape{{4, 16}, "NN"}, by_arithmetic, &recording, 2)[0].us,
                   16 * std::pow(4, weight / (2 + weight)));
}

TEST(Choose, TheNearestTwelveCount) {
  std::string lines;
  for (int i = 1; i <= 20; ++i) lines += "4 " + std::to_string(1000 * i) + " NT fast 1\n";
  const Recording recording(lines, 2);
  const auto near = recording.near(Shape{{4, 20000}, "NT"});
  ASSERT_EQ(near.size(), 12u);
  EXPECT_EQ(near[0].second->shape.extents[1], 20000);
  EXPECT_EQ(near[0].first, 1);
  EXPECT_EQ(near[11].second->shape.extents[1], 9000);
}

TEST(Choose, ARecordingMustHaveItsForm) {
  for (const char* wrong : {"4 16 NT", "4 16 NT slow", "4 16 NT slow fast 3", "4 NT slow 3"}) {
    EXPECT_THROW(Recording(wrong, 2), std::invalid_argument) << wrong;
  }
  EXPECT_TRUE(Recording("# nothing\n", 2).entries().empty());
}

}  // namespace
