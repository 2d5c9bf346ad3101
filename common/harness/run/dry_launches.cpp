// SPDX-License-Identifier: MIT
#include "common/harness/run/dry_launches.hpp"

#include <nlohmann/json.hpp>

#include "common/harness/contract/tokens.hpp"
#include "common/harness/run/commands.hpp"
#include "common/harness/run/plan.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/launch.hpp"
#endif

namespace cookbook {

#if COOKBOOK_SIMT
std::optional<Launches> dry_launches(const LevelEntry& level, const AnyProblem& problem) {
  if (!level.supports(problem, device_info())) return std::nullopt;
  struct RunsNone {
    RunsNone() { simt::set_run_blocks(simt::RunBlocks::none); }
    ~RunsNone() { simt::set_run_blocks(simt::RunBlocks::all); }
  } const runs_none;
  std::vector<DeviceMemory> memory;
  DevicePointers pointers;
  for (const TensorSpec& spec : problem.tensors()) {
    memory.emplace_back(spec.bytes(), spec.name);
    pointers.by_name[spec.name] = memory.back().data();
  }
  try {
    return launches_of([&] { level.prepare(problem, pointers)(Stream{}); });
  } catch (const std::invalid_argument&) {  // a rule that supports() cannot see
    return std::nullopt;
  }
}

int list_launches(const Chapter& chapter, const Options& options) {
  require_writable(options.launches);
  using Json = nlohmann::ordered_json;
  Json runs = Json::array();
  for (const LadderRun& run : make_plan(chapter, options, Purpose::time).runs) {
    const auto problem = run.ladder->make_problem(run.size, {});
    Json levels = Json::array();
    for (const int index : run.levels) {
      const LevelEntry& level = run.ladder->levels[index];
      const auto found = dry_launches(level, *problem);
      levels.push_back({{"name", level.name},
                        {"tokens", token_hash(level.source)},
                        {"launches", found ? to_json(*found) : Json()}});
    }
    runs.push_back({{"ladder", run.ladder->name},
                    {"title", run.ladder->title},
                    {"size", run.size},
                    {"levels", levels}});
  }
  const Json document{{"program", chapter.program()},
                      {"device", device_info().name},
                      {"sm_count", device_info().sm_count},
                      {"runs", runs}};
  write_file(options.launches, document.dump(1) + "\n");
  return 0;
}
#else
int list_launches(const Chapter&, const Options&) {
  throw UsageError("--launches needs the SIMT backend: a run with --json lists them here");
}
#endif

}  // namespace cookbook
