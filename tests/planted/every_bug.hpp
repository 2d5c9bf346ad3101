// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

namespace cookbook::planted {

/// The addresses of `Planted<bug>::run` for every bug of an enumeration, of which `kLast` is the
/// last. So each bug has its instance.
template <class Bug, Bug kLast, template <Bug> class Planted>
auto every_bug() {
  return []<int... kBugs>(std::integer_sequence<int, kBugs...>) {
    return std::tuple(&Planted<static_cast<Bug>(kBugs)>::run...);
  }
  (std::make_integer_sequence<int, static_cast<int>(kLast) + 1>());
}

}  // namespace cookbook::planted
