// SPDX-License-Identifier: MIT
// The host side: checks a launch as a GPU would, assigns its groups to worker threads, reports
// errors.
#include "common/backend/simt/runtime/launch.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/backend/backend.hpp"
#include "common/backend/device_bytes.hpp"
#include "common/backend/observe.hpp"
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch_tracer.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/settings.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/watchdog.hpp"
#include "common/backend/simt/runtime/worker.hpp"
#include "common/backend/whole_number.hpp"

namespace cookbook {

void synchronize(Stream) {}  // launches are synchronous

namespace simt {
namespace {

// ---- settings ----

constexpr int kMaxWorkers = 256;

struct Settings {
  AsyncSchedule schedule = AsyncSchedule::late;
  uint64_t seed = 1;
  int workers = 1;
  RunBlocks blocks = RunBlocks::all;

  StartOrder order = StartOrder::forward;
  uint64_t order_seed = 1;

  Settings() {
    const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
    workers = static_cast<int>(
        environment_number("COOKBOOK_SIMT_WORKERS", std::min<uint64_t>(2, cores), 1, kMaxWorkers));
    schedule = static_cast<AsyncSchedule>(
        choice_from_environment("COOKBOOK_SIMT_ASYNC", {"late", "early", "random"}, &seed));
    order = static_cast<StartOrder>(choice_from_environment(
        "COOKBOOK_SIMT_ORDER", {"forward", "reverse", "random"}, &order_seed));
  }

 private:
  // The index of the variable's value among `names`; 0 if it is unset. The last one may have a
  // seed.
  static size_t choice_from_environment(const char* variable,
                                        const std::array<std::string_view, 3>& names,
                                        uint64_t* seed) {
    const char* text = std::getenv(variable);
    if (!text || !*text) return 0;
    const std::string_view value = text;
    const size_t colon = value.find(':');
    const auto found = std::find(names.begin(), names.end(), value.substr(0, colon));
    bool right = found != names.end();
    if (colon != std::string_view::npos) {
      const auto number = whole_number<uint64_t>(value.substr(colon + 1));
      right = found + 1 == names.end() && number.has_value();
      *seed = number.value_or(1);
    }
    if (!right) {
      throw std::runtime_error(fmt::format("{} takes {}, {} or {}[:seed]; got '{}'", variable,
                                           names[0], names[1], names[2], value));
    }
    return static_cast<size_t>(found - names.begin());
  }
};

Settings& settings() {
  static Settings values;
  return values;
}

// ---- worker threads ----

// Threads that stay alive between launches. The launching thread is a worker too.
class WorkerPool {
 public:
  // Runs `body` on `count` threads at once, this one included, and waits for all.
  void run(int count, const std::function<void()>& body) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      body_ = &body;
      start(count - 1);
    }
    body();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    body_ = nullptr;
  }

  // More of them, while run() does.
  void add(int count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (body_) start(count);
  }

 private:
  void start(int count) {
    wanted_ += count;
    busy_ += count;
    for (; threads_ < busy_; ++threads_) std::thread([this] { serve(); }).detach();
    wake_.notify_all();
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return wanted_ > 0; });
      --wanted_;
      const std::function<void()>& body = *body_;
      lock.unlock();
      body();
      lock.lock();
      if (--busy_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void()>* body_ = nullptr;
  int threads_ = 0, wanted_ = 0, busy_ = 0;
};

Worker& worker_of_this_thread() {
  // exit() in a kernel destroys thread-local objects first. The worker on whose stack it runs must
  // survive.
  struct Delete {
    void operator()(Worker* worker) const {
      if (worker != current_worker) delete worker;
    }
  };
  static thread_local std::unique_ptr<Worker, Delete> worker;
  if (!worker) worker.reset(new Worker);
  return *worker;
}

// The error of the first group that failed: the same for any number of workers, because groups are
// assigned in order.
class FirstError {
 public:
  void add(uint64_t group, const std::string& message, Fault fault) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool secondary = message == kAbandonedByOther;
    if (message_.empty() || (!secondary && (secondary_ || group < group_))) {
      group_ = group;
      message_ = message;
      fault_ = fault;
      secondary_ = secondary;
    }
  }
  const std::string& message() const { return message_; }
  Fault fault() const { return fault_; }

 private:
  std::mutex mutex_;
  uint64_t group_ = 0;
  bool secondary_ = false;
  std::string message_;
  Fault fault_ = Fault::none;
};

// The groups that run, in order: `count` of them, `group(i)` the i-th.
struct ChosenGroups {
  explicit ChosenGroups(const Launch& launch)
      : of(launch.group_count), count(of), order(settings().order) {
    constexpr uint64_t kSample = 4;
    if (settings().blocks == RunBlocks::sample) count = std::min(count, kSample);
    if (of * launch.blocks_per_group <= static_cast<uint64_t>(device_info().sm_count)) {
      order = StartOrder::forward;
    }
    if (order != StartOrder::random || count < 2) return;
    // i * factor + shift modulo count: every group once.
    uint64_t state = settings().order_seed;
    shift = mix_bits(state++) % count;
    do {
      factor = 1 + mix_bits(state++) % (count - 1);
    } while (std::gcd(factor, count) != 1);
  }
  uint64_t group(uint64_t i) const {
    if (order == StartOrder::reverse) i = count - 1 - i;
    if (order == StartOrder::random) {
      i = static_cast<uint64_t>((static_cast<unsigned __int128>(factor) * i + shift) % count);
    }
    if (count == of) return i;
    return static_cast<uint64_t>(static_cast<unsigned __int128>(of - 1) * i / (count - 1));
  }
  uint64_t of, count;
  StartOrder order;
  uint64_t factor = 1, shift = 0;
};

void run_launch(const Launch& launch) {
  const ChosenGroups chosen(launch);
  const int workers =
      static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(settings().workers), chosen.count));
  // Blocks may wait for each other where the device holds all of them at once.
  const uint64_t resident =
      static_cast<uint64_t>(device_info().sm_count) *
      resident_blocks_per_sm(launch.shared_bytes, launch.block.x * launch.block.y * launch.block.z);
  const bool all_resident = launch.group_count * launch.blocks_per_group <= resident;
  const auto most_workers = static_cast<int>(
      all_resident ? std::clamp<uint64_t>(chosen.count, workers, kMaxWorkers) : workers);
  LaunchState state(static_cast<size_t>(most_workers));
  state.launch = &launch;
  state.group_total = chosen.count;
  state.group_at = [&chosen](uint64_t i) { return chosen.group(i); };
  state.schedule = settings().schedule;
  state.seed = settings().seed;
  state.running_workers = workers;
  int started = workers;
  state.add_workers = [&state, &started, most_workers] {
    const int count = std::min(started, most_workers - started);
    if (count <= 0 || state.next_group >= state.group_total) return;
    started += count;
    state.has_more_workers = true;
    state.running_workers += count;
    of_this_process<WorkerPool>().add(count);
  };
  FirstError first_error;
  CrashRecord& record = crash_record();
  ++record.progress;
  record.kernel = launch.kernel;
  record.in_kernel = true;

  std::optional<Watch> watch(state);
  of_this_process<WorkerPool>().run(workers, [&state, &first_error, &chosen] {
    install_crash_handler();
    answer_watchdog();
    refresh_static_shared_ranges();
    Worker& worker = worker_of_this_thread();
    worker.state = &state;
    LaunchState::Slot& slot = state.slots[state.next_slot++];
    slot.os_thread = static_cast<int>(syscall(SYS_gettid));
    slot.worker = &worker;
    current_worker = &worker;
    while (!state.abandoned.load(std::memory_order_relaxed)) {
      uint64_t group;
      if (!state.take_group(group)) break;
      if (!run_group(worker, group)) {
        first_error.add(group, worker.error, worker.fault);
        state.abandoned = true;
      }
    }
    slot.worker = nullptr;
    current_worker = nullptr;
    worker.state = nullptr;
    state.running_workers.fetch_sub(1, std::memory_order_relaxed);
  });
  watch.reset();
  record.in_kernel = false;
  ++record.progress;
  if (launch_tracer) launch_tracer->launch_end(launch);
  if (!first_error.message().empty()) {
    throw KernelError(first_error.fault(), first_error.message());
  }
}

// ---- launches that a GPU rejects ----

constexpr unsigned kMaxGridX = 0x7fffffffu, kMaxGridYZ = 65535, kMaxBlockZ = 64;
constexpr int kMaxCluster = 16;

uint3 cluster_shape(const LaunchConfig& config) {
  const unsigned y = config.cluster_y, z = config.cluster_z;
  return {static_cast<unsigned>(config.cluster) / (y * z), y, z};
}

void check_launch(const LaunchConfig& config, const std::string& kernel) {
  const auto refuse = [&kernel](const std::string& why, Fault fault = Fault::launch_refused) {
    throw LaunchError(fmt::format("launch of {} refused: {}", kernel, why), fault);
  };
  const dim3 &grid = config.grid, &block = config.block;
  const uint64_t block_threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  if (block_threads == 0 || block_threads > kMaxBlockThreads || block.z > kMaxBlockZ) {
    refuse(fmt::format("a block of {} x {} x {} threads; a block has 1 to {} threads, z at most {}",
                       block.x, block.y, block.z, kMaxBlockThreads, kMaxBlockZ));
  }
  if (grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ) {
    refuse(fmt::format("a grid of {} x {} x {} blocks; at most {} x {} x {}", grid.x, grid.y,
                       grid.z, kMaxGridX, kMaxGridYZ, kMaxGridYZ));
  }
  const DeviceInfo& device = device_info();
  if (config.smem_bytes > device.smem_per_block_bytes) {
    refuse(fmt::format("{} bytes of dynamic shared memory per block; at most {}", config.smem_bytes,
                       device.smem_per_block_bytes),
           Fault::shared_memory_refused);
  }
  if (config.cluster < 1 || config.cluster > kMaxCluster) {
    refuse(fmt::format("a cluster of {} blocks; 1 to {}", config.cluster, kMaxCluster));
  }
  if (config.cluster > 1 && device.cc_major < 9) refuse("clusters need cc 9.0");
  const uint3 shape = cluster_shape(config);
  for (const auto& [extent, of_cluster, axis] :
       {std::tuple{grid.x, shape.x, 'x'}, {grid.y, shape.y, 'y'}, {grid.z, shape.z, 'z'}}) {
    if (extent % of_cluster == 0) continue;
    refuse(fmt::format("grid.{} = {} is not a multiple of the cluster's {} blocks", axis, extent,
                       of_cluster));
  }
  if (config.cooperative) {
    if (config.cluster > 1) {
      refuse("the SIMT backend has no cooperative launches of clusters", Fault::residency_refused);
    }
    const uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
    const uint64_t resident =
        static_cast<uint64_t>(device.sm_count) *
        resident_blocks_per_sm(config.smem_bytes, static_cast<unsigned>(block_threads));
    if (blocks > resident) {
      refuse(fmt::format("a cooperative grid of {} blocks; {} are resident at once on {} SMs",
                         blocks, resident, device.sm_count),
             Fault::residency_refused);
    }
  }
}

}  // namespace

uint64_t environment_number(const char* name, uint64_t otherwise, uint64_t least, uint64_t most) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  const auto value = whole_number<uint64_t>(text);
  if (!value || *value < least || *value > most) {
    throw std::runtime_error(
        fmt::format("{} takes a whole number from {} to {}; got '{}'", name, least, most, text));
  }
  return *value;
}

uint64_t spin_seconds_from_environment() {
  return environment_number("COOKBOOK_SIMT_SPIN_SECONDS", 10, 1, 1000000);
}

uint64_t time_limit_from_environment() {
  return environment_number("COOKBOOK_TIME_LIMIT", 60, 0, 1000000);
}

void check_environment() {
  check_device_environment();
  Settings();
  spin_seconds_from_environment();
  time_limit_from_environment();
}

void set_async_schedule(AsyncSchedule schedule, uint64_t seed) {
  settings().schedule = schedule;
  settings().seed = seed;
}

void set_start_order(StartOrder order, uint64_t seed) {
  settings().order = order;
  settings().order_seed = seed;
}

// Within a launch, that launch's.
AsyncSchedule async_schedule() {
  return current_worker ? current_worker->state->schedule : settings().schedule;
}

void set_run_blocks(RunBlocks blocks) { settings().blocks = blocks; }

bool runs_blocks() { return settings().blocks != RunBlocks::none; }

void set_workers(int count) { settings().workers = std::clamp(count, 1, kMaxWorkers); }

}  // namespace simt

void detail::launch_kernel(void* kernel, const LaunchConfig& config, const simt::KernelCall& call) {
  const dim3 &grid = config.grid, &block = config.block;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (simt::current_worker) throw LaunchError("a kernel cannot launch a kernel here");
  try {
    simt::check_launch(config, "a kernel");
  } catch (const LaunchError&) {
    simt::check_launch(config, simt::kernel_name(kernel));  // finding the name takes a while
  }

  static std::mutex one_launch_at_a_time;
  const std::lock_guard<std::mutex> lock(one_launch_at_a_time);
  const ObservedLaunch observed(kernel, config);
  if (!simt::runs_blocks()) return;

  simt::Launch launch;
  launch.kernel = kernel;
  launch.grid = grid;
  launch.block = block;
  launch.shared_bytes = config.smem_bytes;
  launch.cluster = static_cast<uint32_t>(config.cluster);
  launch.cluster_shape = simt::cluster_shape(config);
  launch.cooperative = config.cooperative;
  launch.dependent = config.dependent;
  const uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
  launch.blocks_per_group = config.cooperative ? static_cast<uint32_t>(blocks) : launch.cluster;
  launch.group_count = blocks / launch.blocks_per_group;
  launch.invoke = call.invoke;
  launch.arguments = call.arguments;
  launch.argument_bytes = call.argument_bytes;

  if (simt::launch_tracer) simt::launch_tracer->launch_begin(launch);
  simt::run_launch(launch);
}

}  // namespace cookbook
