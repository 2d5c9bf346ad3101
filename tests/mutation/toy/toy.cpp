// SPDX-License-Identifier: MIT
#include "toy.hpp"

int sum(const int* values, int count) {
  static int total;  // a flag that must be reset between calls
  total = 0;
  for (int i = 0; i < count; ++i) total += values[i];
  return total;
}

int power_of_two(int n) {
  if (n < 1) return 1;  // which the loop would do as well
  int power = 1;
  while (power < n) {
    power = power * 2;  // without it the loop never ends
  }
  return power;
}

int all_but_last(const int* values, int count) { return sum(values, count) - values[count - 1]; }
