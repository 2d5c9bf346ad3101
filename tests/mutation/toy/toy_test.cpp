// SPDX-License-Identifier: MIT
#include "toy.hpp"

#include <gtest/gtest.h>

TEST(Toy, Sum) {
  const int values[] = {1, 2, 3};
  EXPECT_EQ(sum(values, 2), 3);
  EXPECT_EQ(sum(values, 2), 3) << "the second call";
}

TEST(Toy, PowerOfTwo) { EXPECT_EQ(power_of_two(5), 8); }
