// SPDX-License-Identifier: MIT
// What levels launch, as data: what the host decides is a part of what was measured.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/backend/tensor_map.hpp"
#include "common/harness/level.hpp"

namespace cookbook {

struct Options;

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

#if COOKBOOK_SIMT
/// What a level launches for a problem of any size on the device that the model stands for. No
/// kernel runs, and memory that the host does not touch takes no space. Nothing where the level
/// does not support the problem.
std::optional<Launches> dry_launches(const LevelEntry& level, const AnyProblem& problem);
#endif

/// `--launches FILE`: writes that of every level at the size at which a GPU times it, or at the
/// sizes of --size, and returns 0. Throws UsageError on the CUDA backend.
int list_launches(const Chapter& chapter, const Options& options);

}  // namespace cookbook
