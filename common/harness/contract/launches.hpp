// SPDX-License-Identifier: MIT
// What levels launch, as data: what the host decides is a part of what was measured.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/tensor_map.hpp"

namespace cookbook {

struct Launch {
  std::string kernel;  ///< its mangled name
  LaunchConfig config;
};

/// In the order in which the host made them.
struct Launches {
  std::vector<Launch> launches;
  std::vector<TensorMapSpec> tensor_maps;
};

/// What is launched, and which tensor maps are made, while `work` runs.
Launches launches_of(const std::function<void()>& work);

/// Equal launches one after another are one entry with a count. See docs/json.md.
nlohmann::ordered_json to_json(const Launches& launches);

}  // namespace cookbook
