// SPDX-License-Identifier: MIT
// The recording of a trace: what begins and ends it, each launch and each group.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "common/backend/simt/runtime/launch_tracer.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/tracer/host_overflows.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt::tracing {
namespace {

std::vector<std::unique_ptr<WorkerTracer>> all_tracers;
size_t tracers_in_use = 0;

class Recording final : public LaunchTracer {
 public:
  void start(const TraceBudget& budget) { budget_ = budget; }

  void launch_begin(const Launch& launch) override {
    Shared& state = shared();
    tracers_in_use = 0;
    ++state.launch_number;
    state.images = loaded_images();
    state.shadows.clear();
    state.places.assign(1, {});
    state.flags.clear();
    state.assumed_flags.clear();
    state.assumes = false;
    if (state.kernels.find(launch.kernel) == state.kernels.end()) {
      state.kernel_order.push_back(launch.kernel);
    }
    const uint64_t number = ++state.kernels[launch.kernel].launches;
    launch_ = &launch;
    const bool late = budget_.launches != 0 && number > budget_.launches;
    const uint64_t per_group =
        uint64_t{launch.block.x} * launch.block.y * launch.block.z * launch.blocks_per_group;
    traced_groups_ = late                   ? 0
                     : budget_.threads == 0 ? launch.group_count
                                            : std::max<uint64_t>(budget_.threads / per_group, 4);
    if (traced_groups_ < launch.group_count) mark_all_written();  // by whom, nobody sees
    if (launch.group_count > kComparedGroups) {
      fmt::print(stderr,
                 "note: {} runs {} blocks; races between them are looked for among the first {}\n",
                 kernel_name(launch.kernel), launch.group_count * launch.blocks_per_group,
                 kComparedGroups * launch.blocks_per_group);
    }
  }

  void launch_end(const Launch& launch) override {
    Shared& state = shared();
    std::map<uint64_t, std::vector<uint64_t>> touched;
    for (size_t i = 0; i < tracers_in_use; ++i) {
      all_tracers[i]->merge_into(state);
      all_tracers[i]->merge_sectors(touched);
    }
    uint64_t sectors = 0;
    for (const auto& [serial, words] : touched) {
      for (const uint64_t word : words) sectors += static_cast<uint64_t>(std::popcount(word));
    }
    state.kernels[launch.kernel].distinct_bytes += sectors * kSectorBytes;
    for (const auto& [serial, shadow] : state.shadows) {
      if (observe_range != nullptr && shadow->words()) shadow->tell_ranges(touched[serial]);
    }
    state.shadows.clear();
    state.flags.clear();
    state.assumed_flags.clear();
    tracers_in_use = 0;
  }

  void group_begin(Group& group) override {
    static thread_local WorkerTracer* tracer = nullptr;
    static thread_local uint64_t of_launch = 0;
    Shared& state = shared();
    if (tracer == nullptr || of_launch != state.launch_number) {
      const std::lock_guard<std::mutex> lock(state.mutex);
      if (tracers_in_use == all_tracers.size()) {
        all_tracers.push_back(std::make_unique<WorkerTracer>());
      }
      tracer = all_tracers[tracers_in_use++].get();
      of_launch = state.launch_number;
      tracer->begin_launch(*launch_);
    }
    group.traced = is_traced(group.id);
    tracer->begin_group(group);
  }
  void group_end(bool abandoned) override {
    if (worker_tracer != nullptr) worker_tracer->end_group(abandoned);
  }
  void block_end(Block& block) override { worker_tracer->end_block(block); }

 private:
  /// Half of the traced groups come first, since neighbours are the likeliest to meet.
  bool is_traced(uint64_t group) const {
    const uint64_t all = launch_->group_count;
    if (traced_groups_ >= all) return true;
    if (traced_groups_ == 0) return false;
    return group < traced_groups_ / 2 || group + 1 == all ||
           group % (all / (traced_groups_ / 2) + 1) == 0;
  }

  TraceBudget budget_;
  const Launch* launch_ = nullptr;
  uint64_t traced_groups_ = 0;
};

Recording recording;

void start(const TraceBudget& budget) {
  Shared& state = shared();
  state.sites.clear();
  state.worst.clear();
  state.buffer_names.clear();
  state.kernels.clear();
  state.kernel_order.clear();
  state.findings.clear();
  state.flag_places.clear();
  find_library_code();
  recording.start(budget);
  launch_tracer = &recording;
}

Trace stop() {
  launch_tracer = nullptr;
  return make_trace(shared());
}

constexpr TracerBackend kBackend{start, stop, take_host_overflows};
[[maybe_unused]] const bool registered = [] {
  tracer_backend = &kBackend;
  return true;
}();

}  // namespace
}  // namespace cookbook::simt::tracing
