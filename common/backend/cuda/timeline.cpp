// SPDX-License-Identifier: MIT
#include "common/backend/marks.hpp"

#include <vector>

namespace cookbook::timeline {
namespace {

std::vector<void (*)(const Rings&)>& setters() {
  static std::vector<void (*)(const Rings&)> all;
  return all;
}

}  // namespace

bool register_rings(void (*set)(const Rings&)) {
  setters().push_back(set);
  return true;
}

bool set_all_rings(const Rings& rings) {
  for (const auto set : setters()) set(rings);
  return !setters().empty();
}

}  // namespace cookbook::timeline

std::vector<cookbook::timeline::Event> cookbook::marks_of(const std::function<void()>&) {
  return {};
}
