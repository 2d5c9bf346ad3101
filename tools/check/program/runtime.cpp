// SPDX-License-Identifier: MIT
// The CUDA runtime API of cuda_headers over the SIMT backend: memory, errors, launches. Everything
// is synchronous, and one thread of the host at a time is in here.
#include <cxxabi.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/device_bytes.hpp"
#include "common/backend/simt/runtime/access_tracer.hpp"
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/convergence.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/fiber.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/scheduler.hpp"
#include "tools/check/program/arrays.hpp"
#include "tools/check/program/asking.hpp"
#include "tools/check/program/graphs.hpp"
#include "tools/check/program/host_code.hpp"
#include "tools/check/program/include/cooperative_groups.h"
#include "tools/check/program/include/cuda_runtime.h"
#include "tools/check/program/library_call.hpp"
#include "tools/check/program/order.hpp"
#include "tools/check/program/report.hpp"
#include "common/backend/simt/runtime/settings.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/sync.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/runtime/watchdog.hpp"

struct CUstream_st {
  char unused;
};
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
};

// Of the linked program. A test has no end of its own.
extern "C" char _start, cookbook_program_end __attribute__((weak));

namespace cookbook::simt::program {
namespace {

// In programs with cooperative launches: room for the `__shared__` variables of a block, which then
// follow its dynamic shared memory.
constexpr size_t kCooperativeSharedBytes = 48 << 10;

// Dynamic shared memory that a kernel gets without asking for more by cudaFuncSetAttribute().
constexpr size_t kDefaultSharedBytes = 48 << 10;

enum class Owner { device, managed, pinned };

struct Buffer {
  DeviceMemory memory;
  Owner owner = Owner::device;
  std::string function;
  Place place;
};

struct FreedBuffer {
  uintptr_t begin, end;
  std::string name;
  Place place;
};

struct Variable {
  uintptr_t begin, end;
  std::string name;
  DeviceVariable::Kind kind;
  bool has_address = false;  ///< Of cudaGetSymbolAddress().
};

struct State {
  std::recursive_mutex mutex;
  std::map<uintptr_t, Buffer> buffers;
  std::vector<FreedBuffer> freed;
  std::map<uintptr_t, size_t> registered;  // cudaHostRegister
  std::set<std::string> large_shared;      // kernels that may have more than kDefaultSharedBytes
  int open = 0;                            // who needs the device's memory now
  cudaError_t last = cudaSuccess, fatal = cudaSuccess, of_launch = cudaSuccess;
  std::mutex cooperative_mutex;
  std::map<std::pair<std::string, size_t>, size_t> cooperative_offsets;  // of this launch
  size_t cooperative_end = 0;
  Report report;
  bool failed = false;  // a kernel did, some time
  Order order;
  std::atomic<bool> kernel_prints{false};  // in the launch under way
  std::atomic<size_t> printed_bytes{0};    // ... into the buffer of printf()
  size_t printf_limit = 1 << 20;
  State();
  std::set<std::string> damaged;  // buffers whose guard bands were found written
};

// Never destroyed: static objects of the program may free memory after everything else.
State& state() {
  static State* instance = new State;
  return *instance;
}

std::vector<Variable>& variables() {
  static auto* instance = new std::vector<Variable>;
  return *instance;
}

struct DynamicArray {
  std::string place, name;
  const std::type_info* type;
};
std::vector<DynamicArray>& dynamic_arrays() {
  static auto* instance = new std::vector<DynamicArray>;
  return *instance;
}

using Lock = std::lock_guard<std::recursive_mutex>;

// ---- device memory is closed to the host ----

void set_protection(const Buffer& buffer, int protection) {
  if (buffer.owner != Owner::device || !buffer.memory.data()) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto data = reinterpret_cast<uintptr_t>(buffer.memory.data());
  const uintptr_t begin = data / page * page;  // the guard bands fill the rest of the pages
  const uintptr_t end = (data + buffer.memory.bytes() + page - 1) / page * page;
  mprotect(reinterpret_cast<void*>(begin), end - begin, protection);
}

/// While one lives, device memory can be read and written.
class OpenMemory {
 public:
  OpenMemory() {
    if (state().open++ != 0) return;
    for (const auto& [address, buffer] : state().buffers) {
      set_protection(buffer, PROT_READ | PROT_WRITE);
    }
  }
  ~OpenMemory() {
    if (--state().open != 0) return;
    for (const auto& [address, buffer] : state().buffers) set_protection(buffer, PROT_NONE);
  }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

// ---- errors ----

void add_finding(const std::string& kind, const std::string& message,
                 const std::string& remedy = "", const std::string& cause = "") {
  for (Finding& finding : state().report.findings) {
    if (finding.message == kind + ": " + message) {
      ++finding.count;
      return;
    }
  }
  state().report.findings.push_back(
      {kind, kind + ": " + message, 1, cause.empty() ? kind + ": " + message : cause, "", remedy});
}

}  // namespace

Order& order_of_streams() { return state().order; }
std::recursive_mutex& mutex_of_calls() { return state().mutex; }

cudaError_t fail_call(cudaError_t error, const char* function, Place place,
                      const std::string& message, bool is_launch) {
  state().last = error;
  state().report.failed_calls.push_back({function, message, place, is_launch, false});
  return error;
}

namespace {

/// After a kernel failed, every call does.
#define RETURN_IF_FATAL() \
  if (state().fatal != cudaSuccess) return state().last = state().fatal
/// During a capture some calls do, too. Of one in a stream: if that is the default one.
#define RETURN_IF_FORBIDDEN(CALL, STREAM, FUNCTION) \
  if (const cudaError_t e = forbid_in(CALL, STREAM, FUNCTION, place); e != cudaSuccess) return e

cudaError_t forbid_in(Call call, const void* what, const char* function, Place place) {
  if (call == Call::uses_legacy_stream && what != nullptr) return cudaSuccess;
  return forbid(call, what, function, place);
}

// ---- whose memory it is ----

const Buffer* find_buffer(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto& buffers = state().buffers;
  const auto above = buffers.upper_bound(address);
  if (above == buffers.begin()) return nullptr;
  const Buffer& buffer = std::prev(above)->second;
  return address - std::prev(above)->first < std::max<size_t>(buffer.memory.bytes(), 1) ? &buffer
                                                                                        : nullptr;
}

Variable* find_variable(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (Variable& variable : variables()) {
    if (address >= variable.begin && address < variable.end) return &variable;
  }
  return nullptr;
}

bool is_registered(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (const auto& [begin, bytes] : state().registered) {
    if (address >= begin && address - begin < bytes) return true;
  }
  return false;
}

// ---- order ----

/// What both the host and kernels use.
bool is_host_visible(uintptr_t address) {
  const auto* pointer = reinterpret_cast<const void*>(address);
  const Buffer* buffer = find_buffer(pointer);
  return buffer ? buffer->owner != Owner::device : is_registered(pointer);
}

void report_unordered(const Order::Operation& earlier, const Order::Operation& later,
                      uintptr_t begin, uintptr_t end) {
  const auto* pointer = reinterpret_cast<const void*>(begin);
  const Buffer* buffer = find_buffer(pointer);
  const Variable* variable = find_variable(pointer);
  const std::string name = buffer     ? buffer->memory.name()
                           : variable ? variable->name
                                      : "registered host memory";
  const uintptr_t base = buffer     ? reinterpret_cast<uintptr_t>(buffer->memory.data())
                         : variable ? variable->begin
                                    : begin;
  const bool host = later.stream == "the host";
  add_finding("race",
              "nothing orders " + earlier.what + ", in " + earlier.stream + ", before " +
                  later.what + (host ? "" : ", in " + later.stream) + ": both use bytes " +
                  std::to_string(begin - base) + " to " + std::to_string(end - base) + " of '" +
                  name + "', and one writes",
              host ? "cudaStreamSynchronize() or cudaDeviceSynchronize() before the host goes on"
                   : "cudaEventRecord() and cudaStreamWaitEvent(), or cudaStreamSynchronize()",
              "|order|" + name + "|" + earlier.what + "|" + later.stream);
}

// A loop of the host over memory that is pending is one finding: the first line is reported.
void note_host_access(uintptr_t address, size_t bytes, bool writes, void* pc) {
  if (current_worker) return;
  const Lock lock(state().mutex);
  if (!is_host_visible(address)) return;
  for (const Order::Operation& one : state().order.pending()) {
    const bool meets = std::any_of(one.ranges.begin(), one.ranges.end(), [&](const auto& range) {
      return range.begin < address + bytes && address < range.end &&
             (writes || range.use != Order::Use::read);
    });
    if (!meets) continue;
    observe_host_access = nullptr;  // finding the line runs code of the host
    state().order.host_access(
        address, address + bytes, writes,
        std::string("the host ") + (writes ? "writes" : "reads") + " at " + describe_pc(pc));
    return;
  }
}

/// An operation in a stream. It ends when this does.
class Ordered {
 public:
  Ordered(cudaStream_t stream, const std::string& what) { state().order.begin(own(stream), what); }
  ~Ordered() {
    state().order.end();
    const auto& pending = state().order.pending();
    if (tracing_available() && std::any_of(pending.begin(), pending.end(), [](const auto& one) {
          return std::any_of(one.ranges.begin(), one.ranges.end(),
                             [](const auto& range) { return is_host_visible(range.begin); });
        })) {
      observe_host_access = &note_host_access;
    }
  }
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;
  static void use(const void* begin, size_t bytes, bool writes) {
    const auto at = reinterpret_cast<uintptr_t>(begin);
    if (find_buffer(begin) || find_variable(begin) || is_registered(begin)) {
      state().order.use(at, at + bytes, writes ? Order::Use::write : Order::Use::read);
    }
  }
  static const void* own(cudaStream_t stream) {
    return stream == cudaStreamLegacy ? nullptr : stream;
  }
};

void observe_launch() {
  observe_range = [](uintptr_t begin, uintptr_t end, int use) {
    state().order.use(begin, end, static_cast<Order::Use>(use));
  };
}

State::State() : order(&report_unordered) {}

std::string describe_freed(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto& freed = state().freed;
  for (auto at = freed.rbegin(); at != freed.rend(); ++at) {
    if (address >= at->begin && address < at->end) {
      return "'" + at->name + "', which was freed at " + describe(at->place);
    }
  }
  return "";
}

/// Whether the host can only have got this address by naming the variable, which on a GPU gives the
/// address of its shadow in host memory.
bool is_host_name(const Variable& variable) {
  return variable.kind != DeviceVariable::managed && !variable.has_address;
}

/// What a copy may do with `bytes` bytes at `pointer`; "" or the reason why not.
std::string wrong_side(const void* pointer, size_t bytes, bool on_device) {
  const std::string freed = describe_freed(pointer);
  if (const Buffer* buffer = find_buffer(pointer)) {
    if (!on_device && buffer->owner == Owner::device) {
      return "'" + buffer->memory.name() + "', which is device memory";
    }
    const size_t offset = static_cast<size_t>(static_cast<const char*>(pointer) -
                                              static_cast<const char*>(buffer->memory.data()));
    if (bytes > buffer->memory.bytes() - offset) {
      return std::to_string(bytes) + " bytes at byte offset " + std::to_string(offset) + " of '" +
             buffer->memory.name() + "', which has " + std::to_string(buffer->memory.bytes()) +
             " bytes";
    }
    return "";
  }
  if (pointer == nullptr) return "a null pointer";
  if (!on_device) return "";
  if (const Variable* variable = find_variable(pointer)) {
    if (is_host_name(*variable)) {
      return "'" + variable->name +
             "', a symbol, which is no address on the device: use cudaMemcpyToSymbol(), "
             "cudaMemcpyFromSymbol() or cudaGetSymbolAddress()";
    }
    if (reinterpret_cast<uintptr_t>(pointer) + bytes <= variable->end) return "";
    return "more than '" + variable->name + "' has";
  }
  if (is_registered(pointer)) return "";
  return freed.empty() ? "host memory" : freed;
}

bool is_device_side(const void* pointer) {
  const Buffer* buffer = find_buffer(pointer);
  return (buffer && buffer->owner != Owner::pinned) || find_variable(pointer);
}

/// Memory that only kernels read and write.
bool is_of_device(const void* pointer) {
  if (const Buffer* buffer = find_buffer(pointer)) return buffer->owner == Owner::device;
  const Variable* variable = find_variable(pointer);
  return variable && variable->kind != DeviceVariable::managed;
}

void move_bytes(void* to, const void* from, size_t bytes) {
  const bool to_device = is_of_device(to), from_device = is_of_device(from);
  if (from_device && !to_device) note_device_code(from, bytes);
  std::memmove(to, from, bytes);
  if (to_device && !from_device) hide_host_code(to, bytes, to);
  if (from_device && !to_device) show_host_code(to, bytes, from);
}

cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                       const char* function, Place place) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return fail_call(cudaErrorInvalidMemcpyDirection, function, place, "no such kind of copy");
  }
  const bool any = kind == cudaMemcpyDefault;
  const bool to_device =
      any ? is_device_side(to) : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = any ? is_device_side(from)
                               : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  static const char* const names[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                      "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice",
                                      "cudaMemcpyDefault"};
  std::string wrong = wrong_side(to, bytes, to_device);
  if (!wrong.empty()) wrong = "it writes " + wrong;
  if (wrong.empty()) {
    wrong = wrong_side(from, bytes, from_device);
    if (!wrong.empty()) wrong = "it reads " + wrong;
  }
  if (wrong.empty()) return cudaSuccess;
  return fail_call(cudaErrorInvalidValue, function, place, wrong + " (" + names[kind] + ")");
}

size_t allocated_bytes() {
  size_t bytes = 0;
  for (const auto& [address, buffer] : state().buffers) bytes += buffer.memory.bytes();
  return bytes;
}

// What a load beyond a buffer gives where the tracer reports it: the bytes of memory that nothing
// has written. As an index or a bound these end few kernels. The band's pattern would end most, and
// so hide what else is wrong with them.
void smooth_guards(const DeviceMemory& memory) {
  auto* data = static_cast<unsigned char*>(memory.data());
  std::memset(data - DeviceMemory::kGuardBytes, 0xff, DeviceMemory::kGuardBytes);
  std::memset(data + memory.bytes(), 0xff, DeviceMemory::kGuardBytes);
}

cudaError_t allocate(AnyPointer to, size_t bytes, Owner owner, const char* function, Place place,
                     bool is_async = false) {
  void** const pointer = to.at;
  const Lock lock(state().mutex);
  RETURN_IF_FATAL();
  if (!is_async) RETURN_IF_FORBIDDEN(Call::changes_memory, nullptr, function);
  if (pointer == nullptr) {
    return fail_call(cudaErrorInvalidValue, function, place, "it is given a null pointer");
  }
  if (bytes == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  const size_t used = allocated_bytes(), all = device_info().memory_bytes;
  std::string name = to.name;
  if (name.empty()) name = std::string(function) + " at " + describe(place);
  try {
    if (all != 0 && bytes > all - std::min(all, used)) throw std::bad_alloc();
    Buffer buffer{DeviceMemory(bytes, name), owner, function, place};
    *pointer = buffer.memory.data();
    if (tracing_available()) smooth_guards(buffer.memory);
    const auto address = reinterpret_cast<uintptr_t>(*pointer);
    // What the host writes into the others nobody sees.
    if (tracing_available() && owner == Owner::device) track_writes(*pointer);
    if (state().open == 0) set_protection(buffer, PROT_NONE);
    state().buffers.emplace(address, std::move(buffer));
    if (owner != Owner::device) observe_launch();
  } catch (const std::bad_alloc&) {
    return fail_call(cudaErrorMemoryAllocation, function, place,
                     "no memory for " + std::to_string(bytes) + " bytes ('" + name + "')");
  }
  return cudaSuccess;
}

cudaError_t release(void* pointer, bool pinned, const char* function, Place place,
                    std::optional<cudaStream_t> async = {}) {
  const Lock lock(state().mutex);
  RETURN_IF_FATAL();
  if (pointer == nullptr) return cudaSuccess;
  if (!async) RETURN_IF_FORBIDDEN(Call::changes_memory, nullptr, function);
  const auto at = state().buffers.find(reinterpret_cast<uintptr_t>(pointer));
  if (at == state().buffers.end() || (at->second.owner == Owner::pinned) != pinned) {
    const std::string freed = describe_freed(pointer);
    std::string what = freed.empty() ? "memory that it did not allocate" : freed;
    if (at != state().buffers.end())
      what = "'" + at->second.memory.name() + "' of " + at->second.function;
    return fail_call(cudaErrorInvalidValue, function, place, "it is given " + what);
  }
  const Buffer& buffer = at->second;
  const std::string what = std::string(function) + " at " + describe(place);
  if (async) {
    const Ordered ordered(*async, what);
    Ordered::use(pointer, buffer.memory.bytes(), true);
  } else if (pinned) {
    state().order.host_access(at->first, at->first + buffer.memory.bytes(), true, what);
  } else {
    state().order.wait_for_all();  // cudaFree() does
  }
  set_protection(buffer, PROT_READ | PROT_WRITE);
  state().freed.push_back(
      {at->first, at->first + buffer.memory.bytes(), buffer.memory.name(), place});
  state().buffers.erase(at);
  return cudaSuccess;
}

// ---- the heap of kernels ----

/// Memory is not given twice within a launch: two threads that had the same do not race.
struct KernelHeap {
  static constexpr size_t kReserved = size_t{4} << 30, kGap = 64;
  std::mutex mutex;
  char* begin = nullptr;
  size_t used = 0, live = 0, limit = 8 << 20;
  std::map<void*, size_t> blocks;
};
KernelHeap& kernel_heap() {
  static auto* instance = new KernelHeap;
  return *instance;
}
std::atomic<bool> heap_is_used{false};

bool is_of_heap(const void* pointer) {
  if (!heap_is_used.load(std::memory_order_relaxed)) return false;
  const auto* at = static_cast<const char*>(pointer);
  return at >= kernel_heap().begin && at < kernel_heap().begin + KernelHeap::kReserved;
}

// ---- launches ----

// Before the tracer's own objects are destroyed.
void end_tracing() {
  static bool ended = false;
  if (ended) return;
  ended = true;
  Report& report = state().report;
  report.trace = stop_trace();
  report.findings.insert(report.findings.begin(), report.trace.findings.begin(),
                         report.trace.findings.end());
  report.trace.findings.clear();
  report.explanation = explain(report.trace);
}

cudaError_t error_of(Fault fault) {
  switch (fault) {
    case Fault::assertion: return cudaErrorAssert;
    case Fault::out_of_bounds: return cudaErrorIllegalAddress;
    case Fault::misaligned: return cudaErrorMisalignedAddress;
    case Fault::launch_refused: return cudaErrorInvalidConfiguration;
    case Fault::shared_memory_refused: return cudaErrorInvalidValue;
    case Fault::residency_refused: return cudaErrorCooperativeLaunchTooLarge;
    default: return cudaErrorLaunchFailure;
  }
}

void check_guards(const void* kernel, Place place) {
  for (const auto& [address, buffer] : state().buffers) {
    const std::string& name = buffer.memory.name();
    if (buffer.memory.guards_intact() || !state().damaged.insert(name).second) continue;
    add_finding("out-of-bounds",
                "a kernel launched at " + describe(place) + " wrote next to '" + name +
                    "', which has " + std::to_string(buffer.memory.bytes()) + " bytes (" +
                    buffer.function + " at " + describe(buffer.place) + ")",
                "", kernel_name(kernel) + "|out-of-bounds|'" + name);
  }
}

void refuse_in_capture(const std::string& what) {
  program::state().report.unsupported = what + ": in a stream that is captured it is not supported";
}

/// What is wrong with an argument; "" if it may be a pointer for the device.
std::string wrong_argument(const void* pointer) {
  if (pointer == nullptr || find_buffer(pointer) || is_registered(pointer)) return "";
  if (const Variable* variable = find_variable(pointer)) {
    if (!is_host_name(*variable)) return "";
    return "'" + variable->name +
           "', a symbol, which is no address on the device: use cudaGetSymbolAddress(), or let the "
           "kernel name it";
  }
  // One past the end, or before the beginning, is fine as long as it is not used.
  if (find_nearest_allocation(reinterpret_cast<uintptr_t>(pointer), DeviceMemory::kGuardBytes)) {
    return "";
  }
  const std::string freed = describe_freed(pointer);
  return freed.empty() ? "a pointer to host memory" : freed;
}

/// While one lives, a kernel runs: of its arguments and what the host shares with it, host code is
/// hidden.
class HiddenHostCode {
 public:
  explicit HiddenHostCode(const KernelCall& call) {
    hide(const_cast<void*>(call.arguments), call.argument_bytes);
    for (const auto& [address, buffer] : state().buffers) {
      if (buffer.owner != Owner::device) hide(buffer.memory.data(), buffer.memory.bytes());
    }
    for (const auto& [begin, bytes] : state().registered) {
      hide(reinterpret_cast<void*>(begin), bytes);
    }
  }
  ~HiddenHostCode() {
    for (const auto& [at, bytes] : hidden_) {
      note_device_code(at, bytes);
      show_host_code(at, bytes, at);
    }
  }
  HiddenHostCode(const HiddenHostCode&) = delete;
  HiddenHostCode& operator=(const HiddenHostCode&) = delete;

 private:
  void hide(void* at, size_t bytes) {
    static size_t left = size_t{1} << 30;  // of all launches: it takes time
    if (bytes > left) return;
    left -= bytes;
    hide_host_code(at, bytes, at);
    hidden_.push_back({at, bytes});
  }
  std::vector<std::pair<void*, size_t>> hidden_;
};

/// Measures a launch.
class LaunchClock {
 public:
  LaunchClock(const void* kernel, uint64_t threads) {
    static const uint64_t launches =
        environment_number("COOKBOOK_CHECK_LAUNCHES", 0, 0, ~uint64_t{0});
    static const double traced =
        static_cast<double>(environment_number("COOKBOOK_CHECK_THREADS", 0, 0, ~uint64_t{0}));
    static std::map<const void*, uint64_t> numbers;
    if (launches != 0 && ++numbers[kernel] > launches) return;
    part_ = traced == 0 ? 1 : std::min(1.0, traced / static_cast<double>(threads));
  }
  ~LaunchClock() {
    constexpr size_t kMost = 20000;
    const double seconds = now() - begin_;
    std::vector<LaunchTime>& times = state().report.times;
    if (times.size() < kMost) times.push_back({seconds, part_});
    ++progress().launches;
    (part_ > 0 ? progress().traced_seconds : progress().other_seconds) += seconds;
  }
  LaunchClock(const LaunchClock&) = delete;
  LaunchClock& operator=(const LaunchClock&) = delete;

 private:
  /// CPU time: other programs may run as well, and runs have one worker or several.
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double begin_ = now();
  double part_ = 0;
};

// Set by what rewrite.py puts in front of a program with cooperative launches.
bool uses_cooperative_shared = false;

void run_checked(Place place, const LaunchSizes& sizes, const KernelCall& call,
                 const PointerArgument* pointers, int pointer_count) {
  [[maybe_unused]] static const bool tracing = [] {
    if (!tracing_available()) return false;
    keep_requests = std::getenv("COOKBOOK_CHECK_REQUESTS") != nullptr;
    start_trace({environment_number("COOKBOOK_CHECK_THREADS", 0, 0, ~uint64_t{0}),
                 environment_number("COOKBOOK_CHECK_LAUNCHES", 0, 0, ~uint64_t{0})});
    std::atexit(&end_tracing);
    return true;
  }();
  const auto [kernel, most_threads, cluster] = ask(call);
  if (kernel == nullptr) throw KernelError(Fault::kernel_failed, "what is launched is no kernel");
  if (sizes.grid.x == 0 || sizes.grid.y == 0 || sizes.grid.z == 0) {
    throw LaunchError("launch of " + kernel_name(kernel) + " refused: a grid of 0 blocks");
  }
  const uint64_t threads = uint64_t{sizes.block.x} * sizes.block.y * sizes.block.z;
  if (most_threads != 0 && threads > most_threads) {
    throw LaunchError("launch of " + kernel_name(kernel) + " refused: blocks of " +
                          std::to_string(threads) + " threads, more than its __launch_bounds__(" +
                          std::to_string(most_threads) + ") allows",
                      Fault::launch_refused);
  }
  if (sizes.shared_bytes > kDefaultSharedBytes &&
      !state().large_shared.count(kernel_name(kernel))) {
    throw LaunchError(
        "launch of " + kernel_name(kernel) + " refused: " + std::to_string(sizes.shared_bytes) +
            " bytes of dynamic shared memory; more than " + std::to_string(kDefaultSharedBytes) +
            " need cudaFuncSetAttribute(kernel, "
            "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)",
        Fault::shared_memory_refused);
  }
  for (int i = 0; i < pointer_count; ++i) {
    const std::string wrong = wrong_argument(pointers[i].value);
    if (wrong.empty()) continue;
    throw KernelError(Fault::out_of_bounds, "out of bounds: argument " +
                                                std::to_string(pointers[i].number) + " of " +
                                                kernel_name(kernel) + " is " + wrong);
  }
  if (sizes.polymorphic != 0) {
    add_finding("host code",
                "argument " + std::to_string(sizes.polymorphic) + " of " + kernel_name(kernel) +
                    ", launched at " + describe(place) +
                    ", is an object with virtual functions, which CUDA does not allow",
                "let a kernel construct the object, by new or placement new, and take a pointer");
  }
  const uint3 shape = cluster.x != 0 ? cluster : sizes.cluster;
  LaunchConfig config{sizes.grid, sizes.block, sizes.shared_bytes,
                      static_cast<int>(shape.x * shape.y * shape.z), sizes.cooperative};
  config.cluster_y = shape.y;
  config.cluster_z = shape.z;
  const uint64_t blocks = uint64_t{sizes.grid.x} * sizes.grid.y * sizes.grid.z;
  if (blocks > static_cast<uint64_t>(device_info().sm_count)) state().report.large_grid = true;
  if (kernel_heap().blocks.empty()) kernel_heap().used = 0;
  const OpenMemory open;
  state().cooperative_offsets.clear();
  state().cooperative_end = (config.smem_bytes + 15) / 16 * 16;
  if (uses_cooperative_shared) {
    config.smem_bytes = std::min(state().cooperative_end + kCooperativeSharedBytes,
                                 device_info().smem_per_block_bytes);
  }
  {
    const Ordered ordered(sizes.stream,
                          "the launch of " + kernel_name(kernel) + " at " + describe(place));
    state().kernel_prints = false;
    const HiddenHostCode hidden(call);
    state().printed_bytes = 0;
    const LaunchClock clock(kernel, threads * blocks);
    detail::launch_kernel(kernel, config, call);
    if (state().kernel_prints) state().order.prints();
    if (state().printed_bytes > state().printf_limit) {
      add_finding("lost output",
                  "the launch of " + kernel_name(kernel) + " at " + describe(place) +
                      " prints more than the buffer of " + std::to_string(state().printf_limit) +
                      " bytes holds: the oldest lines are lost",
                  "cudaDeviceSetLimit(cudaLimitPrintfFifoSize, bytes) before the first launch");
    }
  }
  // A traced run names the access itself.
  if (!tracing_available()) check_guards(kernel, place);
}

// ---- begin and end of the program ----

std::string type_name(const std::type_info& type) {
  int status = 0;
  char* const text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  const std::string name = "'" + std::string(status == 0 ? text : type.name()) + "'";
  std::free(text);
  return name;
}

void write_report() {
  Report& report = state().report;
  std::map<std::string, const DynamicArray*> arrays;
  for (const DynamicArray& array : dynamic_arrays()) {
    const DynamicArray& first = *arrays.try_emplace(array.place + array.name, &array).first->second;
    if (*first.type == *array.type) continue;
    add_finding("nvcc error",
                array.place + ": extern __shared__ '" + array.name + "' has two types, " +
                    type_name(*first.type) + " and " + type_name(*array.type) +
                    ": nvcc refuses the second",
                "declare one array of bytes, and a pointer of the type to it");
  }
  for (const Order::Operation& one : state().order.pending()) {
    if (!one.prints) continue;
    add_finding(
        "lost output",
        "nothing waits for " + one.what + " before the program ends: what it prints is lost",
        "cudaDeviceSynchronize() before main() returns");
  }
  // After a kernel failed, cudaFree() does, too.
  if (report.status == 0 && !state().failed) {
    for (const auto& [address, buffer] : state().buffers) {
      add_finding("leak", "'" + buffer.memory.name() + "', " +
                              std::to_string(buffer.memory.bytes()) + " bytes of " +
                              buffer.function + " at " + describe(buffer.place) +
                              ", is never freed");
    }
  }
  write(report);
}

/// The host read or wrote what only kernels may, or crashed by itself.
void explain_crash(int signal, siginfo_t* info, void*) {
  void* frames[CrashRecord::kMaxFrames];
  const int count = walk_stack(frames, CrashRecord::kMaxFrames, true);
  ::signal(SIGALRM, SIG_DFL);
  alarm(10);  // finding the line allocates memory, which a crash may have left locked
  std::string text;
  const Buffer* buffer = find_buffer(info->si_addr);
  const std::string freed = describe_freed(info->si_addr);
  if (buffer) {
    text += "host code uses device memory '" + buffer->memory.name() + "' (" + buffer->function +
            " at " + describe(buffer->place) + ")";
  } else if (!freed.empty()) {
    text += "host code uses " + freed;
  } else {
    text += signal == SIGFPE    ? "integer division by zero in host code"
            : signal == SIGABRT ? "abort or failed assertion in host code"
                                : "host code uses an address that is not mapped";
  }
  const std::string line = describe_stack(frames, count);
  if (!line.empty()) text += ", at " + line;
  // What the kernels did wrong before may be why.
  if (tracing_available() && state().report.launches > 0) end_tracing();
  state().report.crash = text;
  write(state().report);
  text = "error: " + text + "\n";
  const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  _exit(written > 0 ? kCrashStatus : 2);
}

size_t limit_of_stack = 1024;

void set_stack_limit(size_t bytes) {
  // A frame of a GPU has 16 bytes or more; one of this CPU, compiled for the tracer, up to ten
  // times as many as there.
  constexpr size_t kLeastFrame = 16, kTimes = 10, kMostBytes = 16 << 20;
  limit_of_stack = bytes;
  most_calls = static_cast<uint32_t>(std::max<size_t>(bytes / kLeastFrame, 1) + 1);
  set_stack_bytes(std::min(bytes * kTimes, kMostBytes));
}

[[gnu::constructor]] void begin() {
  state();
  variables();
  struct sigaction action {};
  action.sa_sigaction = &explain_crash;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
  fail_on_crash();
  // The linker puts .text in the order of its inputs: the start-up code, then the program.
  if (&cookbook_program_end != nullptr) {
    preemptible_code = {reinterpret_cast<uintptr_t>(&_start),
                        reinterpret_cast<uintptr_t>(&cookbook_program_end)};
  }
  set_stack_limit(limit_of_stack);
  find_not_finite = true;
  describe_unmapped = &describe_host_code;
  simt::describe_host_variable = &describe_host_variable;
  // The shuffles of this line return this number then.
  if (std::getenv("COOKBOOK_CHECK_ABSENT_AT")) {
    absent_lane_value = [](void* pc) -> uint64_t {
      static std::mutex mutex;
      static std::map<void*, bool> known;
      static const uint64_t value =
          std::strtoull(std::getenv("COOKBOOK_CHECK_ABSENT_VALUE"), nullptr, 16);
      const std::lock_guard<std::mutex> lock(mutex);
      const auto [at, is_new] = known.try_emplace(pc, false);
      if (is_new) at->second = describe_pc(pc) == std::getenv("COOKBOOK_CHECK_ABSENT_AT");
      return at->second ? value : ~uint64_t{0};
    };
  }
  on_exit([](int status, void*) { state().report.status = status; }, nullptr);
}

// After all static objects of the program are gone.
[[gnu::destructor]] void end() { write_report(); }

}  // namespace

namespace {

/// A launch that is performed later: the node of a graph, or what a kernel launches.
struct KeptLaunch {
  Place place;
  LaunchSizes sizes;
  KernelCall call;
  std::vector<PointerArgument> pointers;
};
// By the threads of the kernel that runs. It comes when that kernel has ended, which CUDA permits:
// a kernel cannot wait for what it launches.
std::mutex children_mutex;
std::vector<KeptLaunch> children;
int generation = 0;  // of the launch under way; the host's are 0

cudaError_t run_now(Place place, const LaunchSizes& sizes, const KernelCall& call,
                    const PointerArgument* pointers, int pointer_count);

void run_children(cudaStream_t stream) {
  constexpr int kMostGenerations = 24;
  std::vector<KeptLaunch> now;
  now.swap(children);
  if (generation == kMostGenerations || state().fatal != cudaSuccess) return;
  ++generation;
  for (KeptLaunch& child : now) {
    child.sizes.stream = stream;
    run_now(child.place, child.sizes, child.call, child.pointers.data(),
            static_cast<int>(child.pointers.size()));
  }
  --generation;
}

cudaError_t run_now(Place place, const LaunchSizes& sizes, const KernelCall& call,
                    const PointerArgument* pointers, int pointer_count) {
  state().of_launch = cudaSuccess;
  ++state().report.launches;
  if (state().fatal != cudaSuccess) return state().last = state().of_launch = state().fatal;
  try {
    run_checked(place, sizes, call, pointers, pointer_count);
    if (!children.empty()) run_children(sizes.stream);
  } catch (const LaunchError& error) {
    state().of_launch = error_of(error.fault());
    fail_call(state().of_launch, "<<<>>>", place, error.what(), true);
  } catch (const std::exception& error) {
    state().failed = true;
    state().fatal = state().of_launch = state().last = error_of(fault_of(error));
    const char* const remedy = remedy_of_host_code();
    const std::string kind = remedy != nullptr ? "host code" : "failed kernel";
    add_finding(kind, "launched at " + describe(place) + ": " + error.what(),
                remedy != nullptr ? remedy : "",
                kernel_name(ask(call).kernel) + "|" + kind + "|" + describe(place));
  }
  return state().of_launch;
}

}  // namespace

void run(Place place, const LaunchSizes& sizes, const KernelCall& call,
         const PointerArgument* pointers, int pointer_count,
         const void* (*keep)(const void* arguments)) {
  const auto kept = [&] {
    const NoThread none;
    return KeptLaunch{place,
                      sizes,
                      {call.invoke, keep(call.arguments), call.argument_bytes},
                      {pointers, pointers + pointer_count}};
  };
  if (simt::current_thread) {
    const std::lock_guard<std::mutex> lock(children_mutex);
    KeptLaunch child = kept();
    const NoThread none;
    children.push_back(std::move(child));
    return;
  }
  const Lock lock(state().mutex);
  if (is_captured(sizes.stream)) {
    state().of_launch =
        capture(sizes.stream, cudaGraphNodeTypeKernel, [one = kept()](cudaStream_t lane) mutable {
          one.sizes.stream = lane;
          return run_now(one.place, one.sizes, one.call, one.pointers.data(),
                         static_cast<int>(one.pointers.size()));
        });
    if (state().of_launch != cudaSuccess) state().last = state().of_launch;
    return;
  }
  if (sizes.stream == nullptr) {
    state().of_launch = forbid(Call::uses_legacy_stream, nullptr, "<<<>>>", place);
    if (state().of_launch != cudaSuccess) return;
  }
  run_now(place, sizes, call, pointers, pointer_count);
}

namespace {

// Of the cooperative launch under way, all of whose threads run on this OS thread.
struct GridBarrier {
  uint64_t launch = 0;
  uint32_t arrived = 0, phase = 0;
  std::vector<Thread*> waiting;
  char objects[2];  // for SyncTracer::release and acquire, by parity of the phase
};

}  // namespace

void sync_grid() {
  void* const pc = __builtin_return_address(0);
  static thread_local GridBarrier barrier;
  Thread& self = *current_thread;
  Group& group = *self.block->group;
  if (!group.launch->cooperative) {
    fail("grid.sync() needs a launch by cudaLaunchCooperativeKernel", pc);
  }
  if (barrier.launch != state().report.launches) {
    barrier = {};
    barrier.launch = state().report.launches;
  }
  const uint32_t phase = barrier.phase;
  char* const object = &barrier.objects[phase % 2];
  if (sync_tracer) sync_tracer->release(object, self.actor);
  if (++barrier.arrived == group.alive) {
    barrier.arrived = 0;
    ++barrier.phase;
    for (Thread* thread : barrier.waiting) make_ready(thread);
    barrier.waiting.clear();
  } else {
    barrier.waiting.push_back(&self);
    while (barrier.phase == phase) block_current("grid.sync()", pc);
  }
  if (sync_tracer) sync_tracer->acquire(object, self.actor);
  lane_met();
}

namespace {

// A tile of several warps. All threads of a block run on one OS thread.
struct TileMeeting {
  uint32_t arrived = 0, phase = 0;
  std::vector<Thread*> waiting;
  std::vector<const void*> given;
  char objects[2];  // for SyncTracer::release and acquire, by parity of the phase
};

TileMeeting& tile_meeting(unsigned size) {
  static thread_local uint64_t launch = 0;
  static thread_local std::map<std::tuple<const Block*, unsigned, unsigned>, TileMeeting> meetings;
  const Thread& self = *current_thread;
  const NoThread none;
  if (std::exchange(launch, state().report.launches) != state().report.launches) meetings.clear();
  TileMeeting& meeting = meetings[{self.block, size, self.id / size}];
  meeting.given.resize(size);
  return meeting;
}

void meet_tile(unsigned size, bool orders, const char* what, void* pc) {
  Thread& self = *current_thread;
  TileMeeting& meeting = tile_meeting(size);
  const uint32_t phase = meeting.phase;
  char* const object = &meeting.objects[phase % 2];
  if (sync_tracer && orders) sync_tracer->release(object, self.actor);
  if (++meeting.arrived == size) {
    meeting.arrived = 0;
    ++meeting.phase;
    for (Thread* thread : meeting.waiting) make_ready(thread);
    meeting.waiting.clear();
  } else {
    meeting.waiting.push_back(&self);
    while (meeting.phase == phase) block_current(what, pc);
  }
  if (sync_tracer && orders) sync_tracer->acquire(object, self.actor);
  lane_met();
}

}  // namespace

void sync_tile(unsigned size) {
  meet_tile(size, true, "sync() of a tile", __builtin_return_address(0));
}
void begin_exchange(unsigned size, const void* value) {
  tile_meeting(size).given[current_thread->id % size] = value;
  meet_tile(size, false, "an exchange of a tile", __builtin_return_address(0));
}
void read_exchanged(unsigned size, unsigned rank, void* to, size_t bytes) {
  std::memcpy(to, tile_meeting(size).given[rank], bytes);
}
void end_exchange(unsigned size) {
  meet_tile(size, false, "an exchange of a tile", __builtin_return_address(0));
}

void* cooperative_shared(const char* name, size_t bytes, size_t alignment) {
  alignment = std::max<size_t>(alignment, 16);  // as nvcc aligns arrays
  const std::lock_guard<std::mutex> lock(state().cooperative_mutex);
  const Block& block = *current_thread->block;
  const auto [at, is_new] = state().cooperative_offsets.try_emplace({name, bytes}, 0);
  if (is_new) {
    at->second = (state().cooperative_end + alignment - 1) / alignment * alignment;
    state().cooperative_end = at->second + bytes;
  }
  if (at->second + bytes > block.shared_bytes) {
    fail("the __shared__ variables of a kernel have more than 48 KB", __builtin_return_address(0));
  }
  return block.shared + at->second;
}

bool is_cooperative() { return current_thread->block->group->launch->cooperative; }

cudaError_t launch_result(Place) { return state().of_launch; }

cudaError_t copy_symbol(void* symbol, size_t symbol_bytes, const void* from, void* to, size_t bytes,
                        size_t offset, cudaMemcpyKind kind, Place place,
                        const cudaStream_t* async) {
  const Lock lock(state().mutex);
  RETURN_IF_FATAL();
  const char* function = from ? "cudaMemcpyToSymbol" : "cudaMemcpyFromSymbol";
  if (async && is_captured(*async)) {
    return capture(*async, cudaGraphNodeTypeMemcpy, [=](cudaStream_t lane) {
      return copy_symbol(symbol, symbol_bytes, from, to, bytes, offset, kind, place, &lane);
    });
  }
  RETURN_IF_FORBIDDEN(async ? Call::uses_legacy_stream : Call::waits_for_legacy,
                      async ? *async : nullptr, function);
  Variable* const variable = find_variable(symbol);
  if (!variable) {
    return fail_call(cudaErrorInvalidSymbol, function, place,
                     "what it is given is no __device__ or __constant__ variable");
  }
  if (offset > symbol_bytes || bytes > symbol_bytes - offset) {
    return fail_call(cudaErrorInvalidValue, function, place,
                     "it copies " + std::to_string(bytes) + " bytes at byte offset " +
                         std::to_string(offset) + " of '" + variable->name + "', which has " +
                         std::to_string(symbol_bytes) + " bytes");
  }
  if (bytes == 0) return cudaSuccess;
  char* inside = static_cast<char*>(symbol) + offset;
  void* const target = from ? inside : to;
  const void* const source = from ? from : inside;
  const bool had_address = std::exchange(variable->has_address, true);  // it may name the symbol
  const cudaError_t error = check_copy(target, source, bytes, kind, function, place);
  variable->has_address = had_address;
  if (error != cudaSuccess) {
    return error;
  }
  const OpenMemory open;
  {
    const Ordered ordered(async ? *async : nullptr,
                          std::string(function) + " at " + describe(place));
    Ordered::use(source, bytes, false);
    Ordered::use(target, bytes, true);
  }
  if (!async) state().order.wait_for(Ordered::own(nullptr));
  move_bytes(target, source, bytes);
  return cudaSuccess;
}

cudaError_t symbol_address(void** pointer, const void* symbol, size_t, Place place) {
  Variable* const variable = find_variable(symbol);
  if (!variable) {
    return fail_call(cudaErrorInvalidSymbol, "cudaGetSymbolAddress", place,
                     "what it is given is no __device__ or __constant__ variable");
  }
  variable->has_address = true;
  *pointer = const_cast<void*>(symbol);
  return cudaSuccess;
}

cudaError_t allow_shared_bytes(const void* kernel, int bytes, Place place) {
  if (bytes < 0 || static_cast<size_t>(bytes) > device_info().smem_per_block_bytes) {
    return fail_call(cudaErrorInvalidValue, "cudaFuncSetAttribute", place,
                     "a block has at most " + std::to_string(device_info().smem_per_block_bytes) +
                         " bytes of shared memory");
  }
  state().large_shared.insert(kernel_name(kernel));
  return cudaSuccess;
}

cudaError_t function_attributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = device_info().cc();
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(kDefaultSharedBytes);
  return cudaSuccess;
}

int resident_blocks(int threads, size_t shared_bytes) {
  return static_cast<int>(
      resident_blocks_per_sm(shared_bytes, static_cast<unsigned>(std::max(threads, 1))));
}

CooperativeProgram::CooperativeProgram() { uses_cooperative_shared = true; }

DeviceVariable::DeviceVariable(const void* address, size_t bytes, const char* name, Kind kind) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  variables().push_back({begin, begin + bytes, name, kind});
  register_memory(address, bytes, name, kind == constant);
}

RedZones::RedZones(std::initializer_list<const void*> zones, size_t bytes) {
  for (const void* zone : zones) register_red_zone(zone, bytes);
}

// ---- libraries ----

struct LibraryCall::State {
  const Lock lock{program::state().mutex};
  const OpenMemory open;
  std::string name;
  const Ordered ordered;
  bool is_allowed = program::state().fatal == cudaSuccess;
  // What the call itself accesses is no access of the host.
  const decltype(observe_host_access) observer = std::exchange(observe_host_access, nullptr);
  State(std::string name_, cudaStream_t stream) : name(std::move(name_)), ordered(stream, name) {
    if (is_captured(stream)) refuse_in_capture(name);
  }
  ~State() { observe_host_access = observer; }

  bool use(const void* begin, size_t bytes, bool writes, size_t offset = 0) {
    if (!is_allowed) return false;
    const std::string wrong = wrong_side(begin, offset + bytes, true);
    if (!wrong.empty()) {
      add_finding("out-of-bounds", name + (writes ? " writes " : " reads ") + wrong);
      return is_allowed = false;
    }
    Ordered::use(static_cast<const char*>(begin) + offset, bytes, writes);
    return true;
  }
};

LibraryCall::LibraryCall(const char* function, cudaStream_t stream, Place place)
    : state_(std::make_unique<State>(std::string(function) + " at " + describe(place), stream)) {}

LibraryCall::~LibraryCall() = default;

bool LibraryCall::reads(const void* begin, size_t bytes) { return reads_rows(begin, bytes, 1, 0); }

bool LibraryCall::reads_rows(const void* begin, size_t bytes, size_t rows, size_t pitch) {
  if (bytes == 0 || rows == 0) return true;
  if (!state_->use(begin, (rows - 1) * pitch + bytes, false)) return false;
  const Buffer* const buffer = find_buffer(begin);
  for (size_t row = 0; buffer && row < rows; ++row) {
    const auto* const at = static_cast<const char*>(begin) + row * pitch;
    const Unwritten unwritten = find_unwritten(at, bytes);
    if (unwritten.bytes == 0) continue;
    add_finding("uninitialised", state_->name + " reads bytes " + std::to_string(unwritten.begin) +
                                     " to " + std::to_string(unwritten.end) + " of '" +
                                     buffer->memory.name() + "', which nothing has written");
    break;
  }
  return true;
}

bool LibraryCall::writes(void* begin, size_t bytes) {
  if (bytes == 0) return true;
  if (!state_->use(begin, bytes, true)) return false;
  mark_written(begin, bytes);
  return true;
}

bool LibraryCall::reads_behind(const void* begin, size_t offset, size_t bytes) {
  return state_->use(begin, bytes, false, offset) &&
         reads(static_cast<const char*>(begin) + offset, bytes);
}

bool LibraryCall::writes_behind(void* begin, size_t offset, size_t bytes) {
  if (!state_->use(begin, bytes, true, offset)) return false;
  mark_written(static_cast<char*>(begin) + offset, bytes);
  return true;
}

bool LibraryCall::out_of_bounds(const std::string& what) {
  if (state_->is_allowed) add_finding("out-of-bounds", state_->name + " " + what);
  return state_->is_allowed = false;
}

bool LibraryCall::scalar_is_on(const void* at, bool device) {
  const std::string wrong = at == nullptr ? "" : wrong_side(at, 1, device);
  if (wrong.empty()) return true;
  add_finding("out-of-bounds",
              state_->name + " is given for a scalar " + wrong +
                  ", but its pointer mode is that of " + (device ? "the device" : "the host"),
              device ? "cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST), or device memory"
                     : "cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE), or a variable "
                       "of the host");
  return false;
}

void mark_written_by_host(const void* begin, size_t bytes) {
  if (bytes != 0) mark_written(begin, bytes);
}

bool is_in_device_memory(const void* pointer) {
  const Lock lock(state().mutex);
  return is_device_side(pointer);
}

// ---- the heap of kernels ----

void* heap_malloc(size_t bytes) {
  if (!current_thread) return std::malloc(bytes);
  KernelHeap& heap = kernel_heap();
  const std::lock_guard<std::mutex> lock(heap.mutex);
  if (!heap.begin) {
    void* const memory = mmap(nullptr, KernelHeap::kReserved, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    heap.begin = static_cast<char*>(memory);
    register_red_zone(memory, KernelHeap::kReserved);
    heap_is_used = true;
  }
  const size_t taken = (bytes + 2 * KernelHeap::kGap - 1) / KernelHeap::kGap * KernelHeap::kGap;
  if (bytes > heap.limit - heap.live || taken > KernelHeap::kReserved - heap.used) {
    source_of_null =
        ": malloc() in a kernel returned null, because the heap is full (cudaDeviceSetLimit(), "
        "cudaLimitMallocHeapSize)";
    return nullptr;
  }
  void* const pointer = heap.begin + heap.used;
  heap.used += taken;
  heap.live += bytes;
  heap.blocks.emplace(pointer, bytes);
  if (tracing_available()) register_memory(pointer, bytes, "memory of the kernel's heap");
  return pointer;
}

void heap_free(void* pointer) {
  if (pointer && is_of_heap(pointer)) {
    KernelHeap& heap = kernel_heap();
    const std::lock_guard<std::mutex> lock(heap.mutex);
    const auto at = heap.blocks.find(pointer);
    if (at != heap.blocks.end()) {
      if (access_tracer) access_tracer->memory_freed(pointer);
      if (tracing_available()) unregister_memory(pointer);
      heap.live -= at->second;
      heap.blocks.erase(at);
      return;
    }
  } else if (!pointer || !current_thread) {
    return std::free(pointer);
  }
  fail("free() or delete of what is no memory of the kernel's heap, or was freed before",
       __builtin_return_address(0));
}

void set_heap_limit(size_t bytes) { kernel_heap().limit = bytes; }
size_t heap_limit() { return kernel_heap().limit; }

// ---- extern __shared__ ----

bool note_dynamic_shared(const char* place, const std::type_info& type) {
  const std::string text = place;
  const size_t name = text.rfind(':'), begin = text.rfind('/') + 1;
  dynamic_arrays().push_back({text.substr(begin, name - begin), text.substr(name + 1), &type});
  return true;
}

}  // namespace cookbook::simt::program

using namespace cookbook;                 // NOLINT: the API below is global
using namespace cookbook::simt::program;  // NOLINT

void* operator new(size_t bytes, Heap) { return heap_malloc(bytes); }
void* operator new[](size_t bytes, Heap) { return heap_malloc(bytes); }
// What new gave in a kernel, delete takes there.
void operator delete(void* pointer) noexcept {
  is_of_heap(pointer) ? heap_free(pointer) : std::free(pointer);
}
void operator delete(void* pointer, size_t) noexcept { operator delete(pointer); }
void operator delete[](void* pointer) noexcept { operator delete(pointer); }
void operator delete[](void* pointer, size_t) noexcept { operator delete(pointer); }

// ---- memory ----

cudaError_t cudaMalloc(AnyPointer pointer, size_t bytes, Place place) {
  return allocate(pointer, bytes, Owner::device, "cudaMalloc", place);
}
cudaError_t cudaMallocAsync(AnyPointer pointer, size_t bytes, cudaStream_t stream, Place place) {
  if (is_captured(stream)) refuse_in_capture("cudaMallocAsync at " + describe(place));
  return allocate(pointer, bytes, Owner::device, "cudaMallocAsync", place, true);
}
cudaError_t cudaMallocManaged(AnyPointer pointer, size_t bytes, unsigned, Place place) {
  return allocate(pointer, bytes, Owner::managed, "cudaMallocManaged", place);
}
cudaError_t cudaMallocHost(AnyPointer pointer, size_t bytes, unsigned, Place place) {
  return allocate(pointer, bytes, Owner::pinned, "cudaMallocHost", place);
}
cudaError_t cudaHostAlloc(AnyPointer pointer, size_t bytes, unsigned, Place place) {
  return allocate(pointer, bytes, Owner::pinned, "cudaHostAlloc", place);
}
static size_t pitch_of(size_t width) {
  constexpr size_t kPitchBytes = 512;
  return (width + kPitchBytes - 1) / kPitchBytes * kPitchBytes;
}
cudaError_t cudaMallocPitch(AnyPointer pointer, size_t* pitch, size_t width, size_t height,
                            Place place) {
  *pitch = pitch_of(width);
  return allocate(pointer, *pitch * height, Owner::device, "cudaMallocPitch", place);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent, Place place) {
  *pointer = {nullptr, pitch_of(extent.width), extent.width, extent.height};
  return allocate(&pointer->ptr, pointer->pitch * extent.height * extent.depth, Owner::device,
                  "cudaMalloc3D", place);
}
cudaError_t cudaFree(void* pointer, Place place) {
  return release(pointer, false, "cudaFree", place);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream, Place place) {
  if (is_captured(stream)) refuse_in_capture("cudaFreeAsync at " + describe(place));
  return release(pointer, false, "cudaFreeAsync", place, stream);
}
cudaError_t cudaFreeHost(void* pointer, Place place) {
  return release(pointer, true, "cudaFreeHost", place);
}

namespace {

/// Whether the host is given what the CPU makes of an invalid operation, a float or a double.
void note_nan(const char* from, size_t bytes) {
  constexpr uint32_t kSign = 0x80000000, kFloat = 0x7fc00000, kDouble = 0x7ff80000;
  uint32_t before = 1;
  for (size_t at = 0; at + 4 <= bytes && !state().report.nan_copied; at += 4) {
    uint32_t word;
    std::memcpy(&word, from + at, 4);
    state().report.nan_copied =
        (word & ~kSign) == kFloat || ((word & ~kSign) == kDouble && before == 0);
    before = word;
  }
}

/// Whether these bytes have an infinity: as floats or doubles; with `halves`, where all may be
/// halves of which none is a NaN, as halves, too.
bool has_infinity(const char* from, size_t bytes, bool halves) {
  constexpr uint32_t kSign = 0x80000000, kFloat = 0x7f800000, kDouble = 0x7ff00000;
  constexpr uint32_t kHalf = 0x7c00;
  uint32_t before = 1;
  bool half = false;
  for (size_t at = 0; at + 4 <= bytes; at += 4) {
    uint32_t word;
    std::memcpy(&word, from + at, 4);
    if ((word & ~kSign) == kFloat || ((word & ~kSign) == kDouble && before == 0)) return true;
    before = word;
    for (const uint32_t one : {word & 0x7fff, word >> 16 & 0x7fff}) {
      half |= one == kHalf;
      halves = halves && one <= kHalf;
    }
  }
  return half && halves;
}

cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, cudaMemcpyKind kind, const char* function, Place place,
                      std::optional<cudaStream_t> async = {}) {
  const Lock lock(state().mutex);
  RETURN_IF_FATAL();
  if (async && is_captured(*async)) {
    return capture(*async, cudaGraphNodeTypeMemcpy, [=](cudaStream_t lane) {
      return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, function, place, lane);
    });
  }
  RETURN_IF_FORBIDDEN(async ? Call::uses_legacy_stream : Call::waits_for_legacy,
                      async.value_or(nullptr), function);
  if (width == 0 || height == 0) return cudaSuccess;
  if (height > 1 && (width > to_pitch || width > from_pitch)) {
    return fail_call(cudaErrorInvalidPitchValue, function, place, "a row is longer than the pitch");
  }
  // Of two sides one range is checked; the other's is as long as its own pitch makes it.
  const size_t to_bytes = to_pitch * (height - 1) + width;
  const size_t from_bytes = from_pitch * (height - 1) + width;
  if (const cudaError_t e =
          check_copy(to, from, std::min(to_bytes, from_bytes), kind, function, place)) {
    return e;
  }
  if (to_bytes != from_bytes) {
    const bool longer_to = to_bytes > from_bytes;
    const void* longer = longer_to ? to : from;
    const std::string wrong =
        find_buffer(longer)
            ? wrong_side(longer, std::max(to_bytes, from_bytes), is_device_side(longer))
            : "";
    if (!wrong.empty()) {
      return fail_call(cudaErrorInvalidValue, function, place,
                       (longer_to ? "it writes " : "it reads ") + wrong);
    }
  }
  const OpenMemory open;
  {
    const Ordered ordered(async.value_or(nullptr),
                          std::string(function) + " at " + describe(place));
    Ordered::use(from, from_bytes, false);
    Ordered::use(to, to_bytes, true);
  }
  // Memory of the host that is not pinned makes a copy wait, and cudaMemcpy() does.
  const auto waits_for = [](const void* side) {
    return !is_device_side(side) && !is_host_visible(reinterpret_cast<uintptr_t>(side));
  };
  if ((!async && !(is_device_side(to) && is_device_side(from))) || waits_for(to)) {
    state().order.wait_for(Ordered::own(async.value_or(nullptr)));
  }
  const Buffer* source = find_buffer(from);
  if (source && source->owner == Owner::device && !is_device_side(to)) {
    for (size_t row = 0; row < height; ++row) {
      const auto* begin = static_cast<const char*>(from) + row * from_pitch;
      state().report.copied ^=
          hash_bytes(begin, width) + 0x9e3779b97f4a7c15ull * ++state().report.copies;
      const simt::Unwritten unwritten = simt::find_unwritten(begin, width);
      if (unwritten.bytes == 0) continue;
      const std::string& name = source->memory.name();
      add_finding("uninitialised",
                  std::string(function) + " at " + describe(place) + " copies bytes " +
                      std::to_string(unwritten.begin) + " to " + std::to_string(unwritten.end) +
                      " of '" + name + "' to the host, which nothing has written (" +
                      std::to_string(unwritten.bytes) + " of " + std::to_string(width) + " bytes)",
                  "launch enough blocks, (n + threads - 1) / threads, and let the last one do what "
                  "is left",
                  "|uninitialised copy|" + name);
      break;
    }
  }
  for (size_t row = 0; row < height && is_device_side(to) != is_device_side(from); ++row) {
    const auto* begin = static_cast<const char*>(from) + row * from_pitch;
    const bool gives = is_device_side(to);
    bool& infinity = gives ? state().report.infinity_given : state().report.infinity_copied;
    infinity = infinity || has_infinity(begin, width, !gives);
    if (!gives) note_nan(begin, width);
  }
  for (size_t row = 0; row < height; ++row) {
    move_bytes(static_cast<char*>(to) + row * to_pitch,
               static_cast<const char*>(from) + row * from_pitch, width);
    simt::mark_written(static_cast<char*>(to) + row * to_pitch, width);
  }
  return cudaSuccess;
}

/// `width` in bytes; `value` in elements of as many bytes as `element`.
cudaError_t set_rows(void* to, size_t pitch, int value, size_t width, size_t height,
                     const char* function, Place place, cudaStream_t stream = nullptr,
                     size_t element = 1) {
  const Lock lock(state().mutex);
  RETURN_IF_FATAL();
  if (is_captured(stream)) {
    return capture(stream, cudaGraphNodeTypeMemset, [=](cudaStream_t lane) {
      return set_rows(to, pitch, value, width, height, function, place, lane, element);
    });
  }
  RETURN_IF_FORBIDDEN(Call::uses_legacy_stream, stream, function);
  if (width == 0 || height == 0) return cudaSuccess;
  const std::string wrong = wrong_side(to, pitch * (height - 1) + width, true);
  if (!wrong.empty()) {
    return fail_call(cudaErrorInvalidValue, function, place, "it writes " + wrong);
  }
  if (value < -128 || value > 255) {
    add_finding("overflow",
                std::string(function) + " at " + describe(place) + " sets bytes: of " +
                    std::to_string(value) + " it takes the last 8 bits, " +
                    std::to_string(value & 0xff),
                "let a kernel or a copy set what is more than a byte");
  }
  const OpenMemory open;
  {
    const Ordered ordered(stream, std::string(function) + " at " + describe(place));
    Ordered::use(to, pitch * (height - 1) + width, true);
  }
  for (size_t row = 0; row < height; ++row) {
    for (size_t at = 0; at + element <= width; at += element) {
      std::memcpy(static_cast<char*>(to) + row * pitch + at, &value, element);
    }
    simt::mark_written(static_cast<char*>(to) + row * pitch, width);
  }
  return cudaSuccess;
}

/// Slice by slice: between them there may be rows that are not copied.
cudaError_t copy_slices(cudaMemcpy3DParms p, const char* function, Place place,
                        std::optional<cudaStream_t> async = {}) {
  // Of an array what is given counts texels; all else counts bytes.
  const auto as_rows = [](const cudaArray& array, cudaPos& at) {
    at.x *= array.texel_bytes();
    return make_cudaPitchedPtr(array.begin, array.pitch(), array.pitch(),
                               std::max<size_t>(array.extent.height, 1));
  };
  const cudaArray* const any = p.dstArray ? p.dstArray : p.srcArray;
  if (any) p.extent.width *= any->texel_bytes();
  if (p.dstArray) p.dstPtr = as_rows(*p.dstArray, p.dstPos);
  if (p.srcArray) p.srcPtr = as_rows(*p.srcArray, p.srcPos);
  const auto slice = [](const cudaPitchedPtr& of, const cudaPos& at, size_t z) {
    return static_cast<char*>(of.ptr) + ((at.z + z) * of.ysize + at.y) * of.pitch + at.x;
  };
  for (size_t z = 0; z < p.extent.depth; ++z) {
    if (const cudaError_t e = copy_rows(
            slice(p.dstPtr, p.dstPos, z), p.dstPtr.pitch, slice(p.srcPtr, p.srcPos, z),
            p.srcPtr.pitch, p.extent.width, p.extent.height, p.kind, function, place, async)) {
      return e;
    }
  }
  return cudaSuccess;
}

cudaError_t set_slices(const cudaPitchedPtr& to, int value, const cudaExtent& extent,
                       const char* function, Place place, cudaStream_t stream = nullptr) {
  for (size_t z = 0; z < extent.depth; ++z) {
    if (const cudaError_t e =
            set_rows(static_cast<char*>(to.ptr) + z * to.ysize * to.pitch, to.pitch, value,
                     extent.width, extent.height, function, place, stream)) {
      return e;
    }
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, Place place) {
  return copy_rows(to, bytes, from, bytes, bytes, 1, kind, "cudaMemcpy", place);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream, Place place) {
  return copy_rows(to, bytes, from, bytes, bytes, 1, kind, "cudaMemcpyAsync", place, stream);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind, Place place) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, "cudaMemcpy2D", place);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream,
                              Place place) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, "cudaMemcpy2DAsync", place,
                   stream);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes, Place place) {
  return copy_rows(to, bytes, from, bytes, bytes, 1, cudaMemcpyDeviceToDevice, "cudaMemcpyPeer",
                   place);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes, Place place) {
  return set_rows(to, bytes, value, bytes, 1, "cudaMemset", place);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream, Place place) {
  return set_rows(to, bytes, value, bytes, 1, "cudaMemsetAsync", place, stream);
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height,
                         Place place) {
  return set_rows(to, pitch, value, width, height, "cudaMemset2D", place);
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream, Place place) {
  return set_rows(to, pitch, value, width, height, "cudaMemset2DAsync", place, stream);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p, Place place) {
  return copy_slices(*p, "cudaMemcpy3D", place);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream, Place place) {
  return copy_slices(*p, "cudaMemcpy3DAsync", place, stream);
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent, Place place) {
  return set_slices(to, value, extent, "cudaMemset3D", place);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream,
                              Place place) {
  return set_slices(to, value, extent, "cudaMemset3DAsync", place, stream);
}

// ---- arrays ----

cudaError_t cudaMalloc3DArray(AnyPointer array, const cudaChannelFormatDesc* format,
                              cudaExtent extent, unsigned flags, Place place) {
  const Lock lock(state().mutex);
  auto made = std::make_unique<cudaArray>(cudaArray{nullptr, *format, extent, flags});
  const size_t bytes =
      made->pitch() * std::max<size_t>(extent.height, 1) * std::max<size_t>(extent.depth, 1);
  const std::string name = std::string("array ") + array.name;
  if (const cudaError_t error = allocate(AnyPointer(&made->begin, name.c_str()), bytes,
                                         Owner::device, "cudaMallocArray", place)) {
    return error;
  }
  *array.at = made.release();
  return cudaSuccess;
}
cudaError_t cudaMallocArray(AnyPointer array, const cudaChannelFormatDesc* format, size_t width,
                            size_t height, unsigned flags, Place place) {
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags, place);
}
cudaError_t cudaFreeArray(cudaArray_t array, Place place) {
  return array ? release(array->begin, false, "cudaFreeArray", place) : cudaSuccess;
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
  if (format) *format = array->format;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  *format = array->format;
  return cudaSuccess;
}

/// Whether `width` bytes at byte x of the rows from y on are in the array.
static bool is_in(const cudaArray& array, size_t x, size_t y, size_t width, size_t height) {
  return x + width <= array.pitch() && y + height <= std::max<size_t>(array.extent.height, 1);
}
static cudaError_t beyond_array(const char* function, Place place) {
  return fail_call(cudaErrorInvalidValue, function, place,
                   "it copies more than the array has: widths are in bytes, heights in rows");
}
static char* inside(cudaArray_const_t array, size_t x, size_t y) {
  return array->begin + y * array->pitch() + x;
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                              cudaMemcpyKind kind, Place place) {
  return copy_rows(inside(to, x, y), bytes, from, bytes, bytes, 1, kind, "cudaMemcpyToArray",
                   place);
}
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind, Place place) {
  return copy_rows(to, bytes, inside(from, x, y), bytes, bytes, 1, kind, "cudaMemcpyFromArray",
                   place);
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind, Place place) {
  if (!is_in(*to, x, y, width, height)) return beyond_array("cudaMemcpy2DToArray", place);
  return copy_rows(inside(to, x, y), to->pitch(), from, pitch, width, height, kind,
                   "cudaMemcpy2DToArray", place);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream, Place place) {
  if (!is_in(*to, x, y, width, height)) return beyond_array("cudaMemcpy2DToArrayAsync", place);
  return copy_rows(inside(to, x, y), to->pitch(), from, pitch, width, height, kind,
                   "cudaMemcpy2DToArrayAsync", place, stream);
}
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                  Place place) {
  if (!is_in(*from, x, y, width, height)) return beyond_array("cudaMemcpy2DFromArray", place);
  return copy_rows(to, pitch, inside(from, x, y), from->pitch(), width, height, kind,
                   "cudaMemcpy2DFromArray", place);
}

cudaError_t simt::program::set_elements(void* to, size_t pitch, unsigned value, size_t element,
                                        size_t width, size_t height, cudaStream_t stream,
                                        Place place) {
  return set_rows(to, pitch, static_cast<int>(value), width * element, height, "a memset node",
                  place, stream, element);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Lock lock(state().mutex);
  *total_bytes = device_info().memory_bytes;
  *free_bytes = *total_bytes - std::min(*total_bytes, allocated_bytes());
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned, Place) {
  const Lock lock(state().mutex);
  RETURN_IF_FATAL();
  state().registered[reinterpret_cast<uintptr_t>(pointer)] = bytes;
  simt::register_memory(pointer, bytes, "registered host memory");
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* pointer, Place place) {
  const Lock lock(state().mutex);
  if (state().registered.erase(reinterpret_cast<uintptr_t>(pointer)) == 0) {
    return fail_call(cudaErrorHostMemoryNotRegistered, "cudaHostUnregister", place,
                     "this memory is not registered");
  }
  simt::unregister_memory(pointer);
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(AnyPointer device, void* host, unsigned, Place place) {
  const Lock lock(state().mutex);
  const Buffer* buffer = find_buffer(host);
  if (!is_registered(host) && (!buffer || buffer->owner == Owner::device)) {
    return fail_call(cudaErrorInvalidValue, "cudaHostGetDevicePointer", place,
                     "what it is given is no pinned memory");
  }
  *device.at = host;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const Lock lock(state().mutex);
  const Buffer* buffer = find_buffer(pointer);
  *attributes = {cudaMemoryTypeUnregistered, 0, nullptr, nullptr};
  if (buffer || is_registered(pointer)) {
    const Owner owner = buffer ? buffer->owner : Owner::pinned;
    attributes->type = owner == Owner::device    ? cudaMemoryTypeDevice
                       : owner == Owner::managed ? cudaMemoryTypeManaged
                                                 : cudaMemoryTypeHost;
    attributes->devicePointer = const_cast<void*>(pointer);
    if (owner != Owner::device) attributes->hostPointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

// ---- errors and the device ----

cudaError_t cudaGetLastError() {
  if (simt::current_thread) return cudaSuccess;  // of what the kernel launches
  const Lock lock(state().mutex);
  const cudaError_t error = cudaPeekAtLastError();
  state().last = state().fatal;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  if (simt::current_thread) return cudaSuccess;  // of what the kernel launches
  const Lock lock(state().mutex);
  for (FailedCall& call : state().report.failed_calls) call.looked_at = true;
  return state().last;
}

namespace {

struct ErrorText {
  const char *name, *text;
};
ErrorText text_of(cudaError_t error) {
  switch (error) {
#define COOKBOOK_TEXT(NAME, NUMBER, TEXT) \
  case NAME: return {#NAME, TEXT};
    COOKBOOK_ERRORS(COOKBOOK_TEXT)
#undef COOKBOOK_TEXT
  }
  return text_of(cudaErrorUnknown);
}

}  // namespace

const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }
const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }

cudaError_t cudaDeviceSynchronize(Place place) {
  const Lock lock(state().mutex);
  RETURN_IF_FORBIDDEN(Call::waits_for_device, nullptr, "cudaDeviceSynchronize");
  state().order.wait_for_all();
  return state().fatal;
}
cudaError_t cudaDeviceReset(Place place) {
  const Lock lock(state().mutex);
  state().order.wait_for_all();
  state().last = state().fatal = cudaSuccess;
  for (auto& [address, buffer] : state().buffers) {
    set_protection(buffer, PROT_READ | PROT_WRITE);
    state().freed.push_back(
        {address, address + buffer.memory.bytes(), buffer.memory.name(), place});
  }
  state().buffers.clear();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device, Place place) {
  if (device == 0) return cudaSuccess;
  return fail_call(cudaErrorInvalidDevice, "cudaSetDevice", place,
                   "there is no device " + std::to_string(device) + ": the model has one, 0");
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned, Place place) {
  return fail_call(cudaErrorInvalidDevice, "cudaDeviceEnablePeerAccess", place,
                   "the model has one device");
}
cudaError_t cudaDeviceDisablePeerAccess(int, Place place) {
  return fail_call(cudaErrorPeerAccessNotEnabled, "cudaDeviceDisablePeerAccess", place,
                   "the model has one device");
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device, Place place) {
  if (device != 0) return cudaSetDevice(device, place);
  const DeviceInfo& info = device_info();
  const simt::SmLimits& sm = simt::sm_limits();
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "%s", info.name.c_str());
  p.totalGlobalMem = info.memory_bytes;
  p.sharedMemPerBlock = kDefaultSharedBytes;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.major = info.cc_major;
  p.minor = info.cc_minor;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.deviceOverlap = p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  p.multiProcessorCount = info.sm_count;
  p.asyncEngineCount = 1;
  p.l2CacheSize = static_cast<int>(info.l2_bytes);
  p.maxThreadsPerMultiProcessor = static_cast<int>(sm.threads);
  p.maxBlocksPerMultiProcessor = static_cast<int>(sm.blocks);
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = info.smem_per_block_bytes + sm.reserved_shared_bytes;
  p.sharedMemPerBlockOptin = info.smem_per_block_bytes;
  p.reservedSharedMemPerBlock = sm.reserved_shared_bytes;
  p.managedMemory = p.concurrentManagedAccess = p.computePreemptionSupported = 1;
  p.cooperativeLaunch = p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.canUseHostPointerForRegisteredMem = p.unifiedFunctionPointers = 1;
  p.clusterLaunch = info.cc_major >= 9;
  *properties = p;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device, Place place) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device, place)) return error;
  switch (attribute) {
#define COOKBOOK_VALUE(NAME, NUMBER, VALUE) \
  case NAME: *value = static_cast<int>(VALUE); return cudaSuccess;
    COOKBOOK_DEVICE_ATTRIBUTES(COOKBOOK_VALUE)
#undef COOKBOOK_VALUE
  }
  return fail_call(cudaErrorInvalidValue, "cudaDeviceGetAttribute", place,
                   "the model has no attribute " + std::to_string(attribute));
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t bytes) {
  const Lock lock(state().mutex);
  constexpr size_t kMostStack = 512 << 10;  // of local memory per thread
  if (limit == cudaLimitStackSize && bytes > kMostStack) return cudaErrorInvalidValue;
  if (limit == cudaLimitStackSize) set_stack_limit(bytes);
  if (limit == cudaLimitMallocHeapSize) simt::program::set_heap_limit(bytes);
  if (limit == cudaLimitPrintfFifoSize) state().printf_limit = bytes;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  const Lock lock(state().mutex);
  *value = limit == cudaLimitMallocHeapSize   ? simt::program::heap_limit()
           : limit == cudaLimitPrintfFifoSize ? state().printf_limit
                                              : limit_of_stack;
  return cudaSuccess;
}

// ---- streams and events ----

namespace {
cudaError_t no_resource(const char* function, Place place) {
  return fail_call(cudaErrorInvalidResourceHandle, function, place, "it is given a null handle");
}
}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags, Place place) {
  if (simt::current_thread) {  // all that a kernel launches is in the kernel's stream
    *stream = nullptr;
    return cudaSuccess;
  }
  const Lock lock(state().mutex);
  *stream = new CUstream_st;
  state().order.add_stream(*stream, flags != cudaStreamNonBlocking, place);
  observe_launch();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream, Place place) {
  if (simt::current_thread) return cudaSuccess;
  const Lock lock(state().mutex);
  if (!stream) return no_resource("cudaStreamDestroy", place);
  return cudaSuccess;  // not deleted: Order knows it by its address
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream, Place place) {
  const Lock lock(state().mutex);
  RETURN_IF_FORBIDDEN(Call::waits_for_stream, stream, "cudaStreamSynchronize");
  state().order.wait_for(Ordered::own(stream));
  return state().fatal;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned, Place place) {
  const Lock lock(state().mutex);
  if (!event) return no_resource("cudaStreamWaitEvent", place);
  cudaError_t error;
  if (capture_wait(stream, event, &error)) {
    if (error == cudaSuccess) return error;
    return fail_call(error, "cudaStreamWaitEvent", place,
                     "the stream is being captured, and the event is of no work of this capture");
  }
  state().order.wait_in(Ordered::own(stream), event);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (is_captured(stream)) {
    return capture(stream, cudaGraphNodeTypeHost, [=](cudaStream_t) {
      function(data);
      return cudaSuccess;
    });
  }
  function(data);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event, Place) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event, Place place) {
  const Lock lock(state().mutex);
  if (!event) return no_resource("cudaEventDestroy", place);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream, Place place) {
  const Lock lock(state().mutex);
  if (!event) return no_resource("cudaEventRecord", place);
  if (capture_record(event, stream)) return cudaSuccess;
  state().order.record(event, Ordered::own(stream));
  event->time = std::chrono::steady_clock::now();
  event->recorded = true;
  return state().fatal;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event, Place place) {
  const Lock lock(state().mutex);
  if (!event) return no_resource("cudaEventSynchronize", place);
  RETURN_IF_FORBIDDEN(Call::waits_for_event, event, "cudaEventSynchronize");
  state().order.wait_for_event(event);
  return state().fatal;
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end,
                                 Place place) {
  if (!start || !end) return no_resource("cudaEventElapsedTime", place);
  if (!start->recorded || !end->recorded) {
    return fail_call(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime", place,
                     "an event was not recorded");
  }
  const Lock lock(state().mutex);
  if (!state().order.is_over(start) || !state().order.is_over(end)) {
    return fail_call(cudaErrorNotReady, "cudaEventElapsedTime", place,
                     "nothing waits for the event before: cudaEventSynchronize() does");
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

// ---- printf of kernels ----

extern "C" int printf(const char* format, ...) {
  if (simt::current_thread) {
    // A GPU keeps the format's address and 8 bytes for each value.
    size_t bytes = 16;
    for (const char* at = format; *at != 0; ++at) bytes += *at == '%' ? 8 : 0;
    state().kernel_prints = true;
    state().printed_bytes += bytes;
  }
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vprintf(format, arguments);
  va_end(arguments);
  return written;
}
extern "C" int puts(const char* text) {
  if (simt::current_thread) state().kernel_prints = true;
  return std::fputs(text, stdout) < 0 ? EOF : std::fputc('\n', stdout);
}
extern "C" int putchar(int character) {
  if (simt::current_thread) state().kernel_prints = true;
  return std::fputc(character, stdout);
}

// ---- assert ----

extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line,
                              const char* function) noexcept(false);
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line,
                              const char* function) noexcept(false) {
  if (simt::current_thread) {
    const uint3 block = simt::current_thread->block->block_idx;
    const uint3 thread = simt::current_thread->thread_idx;
    std::fprintf(
        stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
        line, function, block.x, block.y, block.z, thread.x, thread.y, thread.z, assertion);
    simt::fail(Fault::assertion, std::string("assertion failed: ") + assertion,
               __builtin_return_address(0));
  }
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
  std::abort();
}
