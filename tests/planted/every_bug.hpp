// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

namespace cookbook::planted {

/// `of<bug>()` for every bug of an enumeration, of which `kLast` is the last. If it returns the
/// address of a function template's instance, each bug has one.
template <auto kLast, class Of>
auto every_bug(const Of& of) {
  return [&]<int... kBugs>(std::integer_sequence<int, kBugs...>) {
    return std::tuple(of.template operator()<static_cast<decltype(kLast)>(kBugs)>()...);
  }
  (std::make_integer_sequence<int, static_cast<int>(kLast) + 1>());
}

}  // namespace cookbook::planted
