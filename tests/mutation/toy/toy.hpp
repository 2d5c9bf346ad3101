// SPDX-License-Identifier: MIT
#pragma once

/// Sum of the first `count` of `values`.
int sum(const int* values, int count);
/// The smallest power of two that is `n` or more.
int power_of_two(int n);
/// Sum of all but the last of `count` values; not tested.
int all_but_last(const int* values, int count);
