// SPDX-License-Identifier: MIT
// Planted bugs where the comparison has to choose: rows of a large problem, bounds of infinity.
#pragma once

#include <cmath>
#include <limits>

#include "tests/planted/reverse.hpp"

namespace cookbook::planted {

/// The same problem, pretending that a row of its reference takes so long that 16 are computed.
struct Costly : Problem {
  static Costly make(const Size& size, const Variant& variant) {
    return {Problem::make(size, variant)};
  }
  double flops() const { return 2e8 * static_cast<double>(rows); }
};

/// Elements that are wrong: rows [first_row, end_row), of them those whose position within a tile
/// of 128 rows is in [first_of_tile, end_of_tile), in columns [first_col, end_col).
struct Wrong {
  int first_row = 0, end_row = 1 << 30;
  int first_of_tile = 0, end_of_tile = 128;
  int first_col = 0, end_col = 1 << 30;
  bool unwritten = false;  ///< not written instead of wrong
};

template <class P>
struct WrongInPlaces : LevelOf<P, Buffers> {
  using Plan = typename LevelOf<P, Buffers>::Plan;
  static constexpr LevelText text{.name = "wrong_in_places", .changed = "some elements"};
  static inline Wrong wrong;
  static void run(const Plan& plan, Stream stream);  // limits.cu
};

/// One row of four elements under bounds of infinity: what may be anything (the reference is a
/// number), what must be +inf, what must be NaN, and an ordinary element.
struct Unbounded : Problem {
  static Unbounded make(const Size& size, const Variant& variant) {
    return {Problem::make(size, variant)};
  }
  void reference_row(const HostTensors&, const std::string&, std::int64_t, double* value,
                     double* bound) const {
    const double infinity = std::numeric_limits<double>::infinity();
    value[0] = 0, bound[0] = infinity;
    value[1] = infinity, bound[1] = infinity;
    value[2] = std::nan(""), bound[2] = infinity;
    value[3] = 1, bound[3] = 0;
  }
};

struct FourValues : LevelOf<Unbounded, Buffers> {
  static constexpr LevelText text{.name = "four_values", .changed = "what is written"};
  static inline float values[4];
  static inline int first = 0;                       ///< elements before this one are not written
  static void run(const Plan& plan, Stream stream);  // limits.cu
};

}  // namespace cookbook::planted
