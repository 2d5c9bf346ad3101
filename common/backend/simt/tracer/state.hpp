// SPDX-License-Identifier: MIT
//
// What the workers of a traced launch share, and what they gather: the types of the tracer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "common/backend/simt/tracer/block_order.hpp"
#include "common/backend/simt/tracer/counters.hpp"
#include "common/backend/simt/tracer/races.hpp"

namespace cookbook::simt::tracing {

// ---- addresses --------------------------------------------------------------------------------

/// 32 bits are enough for a pc of this executable.
uint32_t token_of(const void* pc);
void* pc_of(uint32_t token);

/// Code, constants and global variables of the executable and its libraries.
std::vector<Range> loaded_images();

// ---- accesses ---------------------------------------------------------------------------------

/// How blocks may agree through an access. Two accesses that are not `none` never race. The last
/// two are bulk additions, which are atomic but pass nothing on.
enum class FlagUse : uint8_t {
  none,
  volatile_access,
  atomic_load,
  atomic,
  addition,
  rounded_addition
};

/// An access to memory, which comes next: by a lane, or in bulk by an asynchronous operation.
struct Access {
  uintptr_t address = 0;
  void* pc = nullptr;
  uint32_t bytes = 0;
  Op op = Op::load;
  bool natural = false;  ///< Of a type aligned to its size: a GPU fails on another address.
  FlagUse use = FlagUse::none;
  // Of lanes only:
  bool fenced = false;       ///< It writes a flag with release semantics.
  bool overwrites = false;   ///< An atomic that does not need the old value.
  bool changes = true;       ///< An atomic that leaves the value as it is releases nothing.
  bool may_outlive = false;  ///< The block need not wait for it before it ends.
  bool is_answer = false;    ///< In bulk: BulkUse::answer.
  SharedRule rule = SharedRule::load_store;
  uint32_t part = 0;     ///< Distinguishes the parts of one large access.
  uintptr_t source = 0;  ///< Of a copy's write: where the lane reads what it writes.
};

inline uintptr_t address_of(const volatile void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// An access of a type aligned to its size.
inline Access natural_access(const volatile void* address, size_t bytes, Op op, void* pc) {
  return {.address = address_of(address),
          .pc = pc,
          .bytes = static_cast<uint32_t>(bytes),
          .op = op,
          .natural = true};
}

// ---- findings ---------------------------------------------------------------------------------

/// The first occurrence of a mistake, and how often it was seen.
struct Occurrence : HazardFacts {
  uint64_t group = 0;
  uint3 block{}, earlier_block{};
  uint3 earlier_thread{}, later_thread{};
  bool is_static = false;
  bool in_group = false;  ///< Of global memory: both threads are of one group.
  bool one_warp = false;  ///< Both threads are of one warp.
  bool on_host = false;   ///< The address is of host memory.
  Op op = Op::load;
  uint32_t caller = 0;  ///< Token of where the function was called that the later pc is in.
  std::string detail;
};

using FindingKey =
    std::tuple<const void* /*kernel*/, Kind, uint32_t /*earlier*/, uint32_t /*later*/>;
using Findings = std::map<FindingKey, Occurrence>;

// ---- counters ---------------------------------------------------------------------------------

struct SiteKey {
  uint32_t pc = 0;
  uint32_t part = 0;
  Space space = Space::global;
  Op op = Op::load;
  uint32_t bytes = 0;   ///< Per lane; 0 for bulk operations.
  uint64_t buffer = 0;  ///< Serial of the allocation.
  auto operator<=>(const SiteKey&) const = default;
};

struct SiteCounts {
  uint64_t requests = 0, lanes = 0, units = 0, ideal = 0, bytes = 0;
  uint64_t largest_range = 0;
  uint64_t copy_units = 0;  ///< Of cp.async's writes.
  void add(const SiteCounts& other) {
    requests += other.requests;
    lanes += other.lanes;
    units += other.units;
    ideal += other.ideal;
    bytes += other.bytes;
    largest_range = std::max(largest_range, other.largest_range);
    copy_units += other.copy_units;
  }
};

struct Site {
  SiteKey key;
  SharedRule rule = SharedRule::load_store;
  std::array<uint16_t, 2> number{};  ///< In Shared::places, by Access::changes, once needed.
  SiteCounts counts;
  // Bulk operations: the latest one, and the sector its last range ended in.
  bool has_operation = false;
  Actor operation = 0;
  uintptr_t next_sector = 0;
};

/// A request whose lanes are still arriving.
struct OpenRequest {
  uint64_t instruction = 0;
  LaneRequest lanes;
  std::unique_ptr<LaneRequest> source;  // of cp.async's writes: where the lanes read
};

struct KernelCounts {
  uint64_t launches = 0, blocks = 0, traced_blocks = 0, basic_blocks = 0, active_lanes = 0;
  uint64_t bytes_requested = 0, distinct_bytes = 0;
};

// ---- races between blocks on global memory ----------------------------------------------------

/// Who touched four bytes of global memory, for all workers: the last writer and the first two
/// blocks that read.
struct GlobalCell {
  std::atomic<uint64_t> writer, reader, other_reader;
};
static_assert(sizeof(GlobalCell) == 24 && std::atomic<uint64_t>::is_always_lock_free);

/// An entry of a cell. In a word: group + 1, the clock of its thread, the thread, and the number of
/// the place in the source. A cluster has at most 2^14 threads. A cooperative grid may have more,
/// but is the only group of its launch: with `alone`, the group's bits hold the thread's upper
/// bits, plus 1. A thread that is later than the last clock is taken for an earlier self, which can
/// hide a race but not invent one.
struct GlobalAccess {
  static constexpr int kThreadBits = 14, kPlaceBits = 14, kClockBits = 16;
  static constexpr int kGroupAt = kThreadBits + kPlaceBits + kClockBits;
  static constexpr uint32_t kLastClock = (1u << kClockBits) - 1;
  static_assert(64 - kGroupAt + kThreadBits > 32, "every number of a thread fits, plus 1");
  uint64_t group;
  uint32_t clock, thread, place;
  uint64_t to_word(bool alone) const {
    const uint64_t upper = alone ? thread >> kThreadBits : group;
    const uint32_t lower = thread & ((1u << kThreadBits) - 1);
    return (upper + 1) << kGroupAt | uint64_t{std::min(clock, kLastClock)} << 28 |
           uint64_t{lower} << kPlaceBits | place;
  }
  static GlobalAccess of(uint64_t word, bool alone) {
    const auto bits = [word](int at, int count) {
      return static_cast<uint32_t>(word >> at & ((1u << count) - 1));
    };
    const uint64_t upper = (word >> kGroupAt) - 1;
    const uint32_t lower = bits(kPlaceBits, kThreadBits);
    return {alone ? 0 : upper, bits(28, kClockBits),
            alone ? static_cast<uint32_t>(upper) << kThreadBits | lower : lower,
            bits(0, kPlaceBits)};
  }
};

/// Later groups have no number that fits a word, and are not compared.
constexpr uint64_t kComparedGroups = (uint64_t{1} << 20) - 1;

/// One cell for every four bytes of an allocation, for accesses to all of them; and, once that is
/// needed, one for every byte. The memory is zero until it is touched.
class GlobalShadow {
 public:
  GlobalShadow(uintptr_t begin, size_t bytes);
  ~GlobalShadow();
  GlobalShadow(const GlobalShadow&) = delete;
  GlobalShadow& operator=(const GlobalShadow&) = delete;
  GlobalCell* words() { return words_; }
  GlobalCell* bytes() { return bytes_.load(std::memory_order_acquire); }
  GlobalCell* make_bytes();
  /// Tells observe_range of the cells of `sectors`, a bit for each of the allocation.
  void tell_ranges(const std::vector<uint64_t>& sectors);

 private:
  static GlobalCell* map(size_t cells);
  uintptr_t begin_;
  size_t count_;
  GlobalCell* words_ = nullptr;
  std::atomic<GlobalCell*> bytes_{nullptr};
};

/// What all workers share during a launch, and the sums over launches.
struct Shared {
  std::mutex mutex;
  std::vector<Range> images;
  std::map<uint64_t, std::unique_ptr<GlobalShadow>> shadows;  // by serial; of this launch
  struct Place {
    uint32_t token = 0;
    FlagUse use = FlagUse::none;
    Op op = Op::load;
    bool block_only = false;
    bool changes = true;  ///< See Access.
  };
  std::vector<Place> places;   // of this launch; the first is nowhere
  Flags flags, assumed_flags;  // of this launch; see block_order.hpp
  std::atomic<bool> assumes{false};
  uint64_t launch_number = 0;

  std::map<std::pair<const void*, SiteKey>, SiteCounts> sites;
  std::map<std::pair<const void*, SiteKey>, Request> worst;  // with keep_requests
  std::map<uint64_t, std::string> buffer_names;
  std::map<const void*, KernelCounts> kernels;
  std::vector<const void*> kernel_order;
  Findings findings;
  std::unordered_set<uint32_t> flag_places;  ///< See BlockOrder.
};

Shared& shared();

/// The sums as the public trace, with source lines.
Trace make_trace(const Shared& state);

}  // namespace cookbook::simt::tracing
