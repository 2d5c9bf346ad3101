// SPDX-License-Identifier: MIT
//
// The tracer: groups the lanes' accesses into requests and counts them, checks bounds and
// alignment, and feeds the race detector. Each worker thread has its own state; it is merged when a
// launch ends.
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "common/backend/simt/counters.hpp"
#include "common/backend/simt/library_code.hpp"
#include "common/backend/simt/races.hpp"
#include "common/backend/simt/tracer.hpp"

extern "C" char __executable_start;

namespace cookbook::simt {
namespace {

/// How far outside of an allocation an access may land and still be in mapped guard memory.
constexpr size_t kGuardBytes = 4096;

// ---- program counters -------------------------------------------------------------------------

/// 32 bits are enough for a pc of this executable.
uint32_t token_of(const void* pc) {
  return static_cast<uint32_t>(static_cast<const char*>(pc) - &__executable_start);
}
void* pc_of(uint32_t token) { return &__executable_start + token; }

// ---- the process's images ---------------------------------------------------------------------

struct Range {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t address) const { return address >= begin && address < end; }
};

/// Code, constants and global variables of the executable and its libraries.
std::vector<Range> loaded_images() {
  std::vector<Range> images;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD) continue;
          const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
          static_cast<std::vector<Range>*>(out)->push_back({begin, begin + header.p_memsz});
        }
        return 0;
      },
      &images);
  return images;
}

/// This OS thread's copy of the executable's thread-local variables: static __shared__ memory.
Range static_shared_range() {
  Range range;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS || info->dlpi_tls_data == nullptr) continue;
          const auto begin = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
          *static_cast<Range*>(out) = {begin, begin + info->dlpi_phdr[i].p_memsz};
        }
        return 1;  // the executable comes first
      },
      &range);
  return range;
}

// ---- findings ---------------------------------------------------------------------------------

enum class Kind : uint8_t {
  write_after_write,
  read_after_write,
  write_after_read,
  uninitialised,
  proxy_load,
  proxy_store,
  barrier_unordered,
  barrier_unfenced,
  not_started,
  exit_async,
  exit_remote,
  global_write_write,
  global_write_read,
  global_read_write,
  out_of_bounds,
  shared_out_of_bounds,
  misaligned,
  static_shared,
  different_places,
  acted_alone,
  waited_alone,
  overflow,
};

/// The first occurrence of a mistake, and how often it was seen.
struct Occurrence {
  uint64_t group = 0;
  uint64_t count = 0;
  uint3 block{}, earlier_block{};
  uint3 earlier_thread{}, later_thread{};
  bool earlier_async = false, later_async = false;
  bool earlier_atomic = false, later_atomic = false;
  bool is_static = false;
  bool write = false;  ///< Of not_started.
  Op op = Op::load;
  size_t offset = 0;
  uint32_t idle_wait = 0;  ///< Where the thread that reads waited for an mbarrier, in vain.
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
  uint64_t largest_piece = 0;
  uint64_t copy_units = 0;  ///< Of cp.async's writes.
  void add(const SiteCounts& other) {
    requests += other.requests;
    lanes += other.lanes;
    units += other.units;
    ideal += other.ideal;
    bytes += other.bytes;
    largest_piece = std::max(largest_piece, other.largest_piece);
    copy_units += other.copy_units;
  }
};

struct Site {
  SiteKey key;
  SharedRule rule = SharedRule::load_store;
  SiteCounts counts;
  // Bulk operations: the latest one, and the sector its last piece ended in.
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
  uint64_t launches = 0, blocks = 0, basic_blocks = 0, active_lanes = 0;
  uint64_t bytes_requested = 0, distinct_bytes = 0;
};

// ---- races between blocks on global memory ----------------------------------------------------

/// Who touched four bytes of global memory, for all workers: the last writer and the first two
/// blocks that read. A word holds group + 1 in 20 bits, how often that group had synchronised with
/// others in 12, and the pc in 32.
struct GlobalCell {
  std::atomic<uint64_t> writer, reader, other_reader;
};
static_assert(sizeof(GlobalCell) == 24 && std::atomic<uint64_t>::is_always_lock_free);

/// Later groups have no number that fits a word, and are not compared.
constexpr uint64_t kComparedGroups = (uint64_t{1} << 20) - 1;

/// One cell for every four bytes of an allocation. The memory is zero until it is touched.
class GlobalShadow {
 public:
  explicit GlobalShadow(size_t bytes) : bytes_((bytes / 4 + 2) * sizeof(GlobalCell)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cells_ = memory != MAP_FAILED ? static_cast<GlobalCell*>(memory) : nullptr;
  }
  ~GlobalShadow() {
    if (cells_ != nullptr) munmap(cells_, bytes_);
  }
  GlobalShadow(const GlobalShadow&) = delete;
  GlobalShadow& operator=(const GlobalShadow&) = delete;
  GlobalCell* cells() { return cells_; }

 private:
  size_t bytes_;
  GlobalCell* cells_ = nullptr;
};

/// What all workers share during a launch, and the sums over launches.
struct Shared {
  std::mutex mutex;
  bool recording = false;
  std::vector<Range> images;
  std::map<uint64_t, std::unique_ptr<GlobalShadow>> shadows;  // by serial; of this launch
  std::unique_ptr<std::atomic<uint32_t>[]> group_syncs;       // of this launch
  uint64_t launch_number = 0;

  std::map<std::pair<const void*, SiteKey>, SiteCounts> sites;
  std::map<uint64_t, std::string> buffer_names;
  std::map<const void*, KernelCounts> kernels;
  std::vector<const void*> kernel_order;
  Findings findings;
};

Shared& shared() {
  static Shared state;
  return state;
}

// ---- one worker -------------------------------------------------------------------------------

class WorkerTracer {
 public:
  void begin_launch(const Launch& launch) {
    launch_ = &launch;
    sites_.clear();
    table_.assign(kFirstTableSize, {});
    open_.clear();
    buffers_.clear();
    recent_.fill(nullptr);
    findings_.clear();
    counts_ = {};
    static_shared_ = static_shared_range();
  }

  void begin_group(Group& group) {
    group_ = &group;
    group_id_ = group.id;
    blocks_.clear();
    for (uint32_t i = 0; i < group.block_count; ++i) blocks_.push_back(group.blocks[i]->block_idx);
    threads_per_block_ = launch_->block.x * launch_->block.y * launch_->block.z;
    warps_per_block_ = (threads_per_block_ + kWarpSize - 1) / kWarpSize;
    shared_stride_ = (launch_->shared_bytes + 3) / 4 * 4;
    static_offset_ = shared_stride_ * group.block_count;
    const size_t static_bytes = static_shared_.end - static_shared_.begin;
    detector_.begin_group(group.block_count, threads_per_block_, static_offset_ + static_bytes + 16,
                          launch_->cluster > 1);
    const size_t warps = size_t{warps_per_block_} * group.block_count;
    if (open_.size() < warps) open_.resize(warps);
    group_is_open_ = true;
    copy_source_ = {};
  }

  void end_group() {
    if (!group_is_open_) return;
    group_is_open_ = false;
    for (std::vector<OpenRequest>& warp : open_) {
      const size_t sites = std::min(warp.size(), sites_.size());  // a warp's vector has spare ones
      for (size_t i = 0; i < sites; ++i) finish(sites_[i], warp[i]);
    }
    take_hazards();
  }

  void end_block(const Block& block) {
    ++counts_.blocks;
    for (uint32_t i = 0; i < block.warp_count; ++i) {
      counts_.basic_blocks += block.warps[i].basic_blocks;
      counts_.active_lanes += block.warps[i].active_lanes;
    }
  }

  /// Adds what this worker gathered to the sums. The caller holds the mutex.
  void merge_into(Shared& sums) {
    end_group();
    KernelCounts& kernel = sums.kernels[launch_->kernel];
    kernel.blocks += counts_.blocks;
    kernel.basic_blocks += counts_.basic_blocks;
    kernel.active_lanes += counts_.active_lanes;
    for (const Site& site : sites_) {
      if (site.counts.requests == 0) continue;
      sums.sites[{launch_->kernel, site.key}].add(site.counts);
      if (site.key.space == Space::global) kernel.bytes_requested += site.counts.bytes;
    }
    for (auto& [key, found] : findings_) {
      const auto [at, is_new] = sums.findings.try_emplace(key, found);
      if (is_new) continue;
      const uint64_t count = at->second.count + found.count;
      if (found.group < at->second.group) at->second = found;
      at->second.count = count;
    }
    for (const auto& [serial, buffer] : buffers_) sums.buffer_names[serial] = buffer->name;
  }

  /// Adds the sectors this worker touched to the launch's bitmaps, by serial.
  void merge_sectors(std::map<uint64_t, std::vector<uint64_t>>& touched) const {
    for (const auto& [serial, buffer] : buffers_) {
      std::vector<uint64_t>& words = touched[serial];
      words.resize(std::max(words.size(), buffer->sectors.size()));
      for (size_t i = 0; i < buffer->sectors.size(); ++i) words[i] |= buffer->sectors[i];
    }
  }

  RaceDetector& detector() { return detector_; }

  /// The copy `actor`, which writes shared memory next, reads from here. Copies of zeros do not.
  void note_copy_source(Actor actor, const void* address) {
    copy_source_ = {actor, reinterpret_cast<uintptr_t>(address)};
  }

  /// Of the asynchronous access by lanes that comes next.
  void note_kind(AsyncKind kind) { kind_ = kind; }

  const Group* group() const { return group_; }

  // ---- accesses ----

  /// `between_blocks`: whether another block's access to the same global memory may be a race.
  void lane_access(Thread& thread, uintptr_t address, unsigned bytes, Op op, SharedRule rule,
                   bool natural, void* pc, unsigned part, Actor actor, bool between_blocks = true) {
    if (actor < 0 && !detector_.has_begun(actor)) detector_.begin_async(actor, thread.actor);
    size_t offset = 0;
    const Where where = locate(thread, address, bytes, op, pc, natural, &offset);
    if (where == Where::ignored) return;
    const uint32_t token = token_of(pc);
    if (where == Where::shared) {
      const bool is_copy = op == Op::async_store && copy_source_.actor == actor;
      count_lane(thread, {token, part, Space::shared, op, bytes, 0}, rule, address,
                 is_copy ? copy_source_.address : 0);
      detector_.access(offset, bytes,
                       {actor, token, op == Op::store || op == Op::atomic || op == Op::async_store,
                        op == Op::atomic, false,
                        op == Op::async_store && !is_copy && kind_ == AsyncKind::cp_async},
                       owner_of(offset));
      return;
    }
    Buffer& buffer = *recent_[0];
    mark_sectors(buffer, address, bytes);
    count_lane(thread, {token, part, Space::global, op, bytes, buffer.serial}, rule, address);
    if (between_blocks) check_global(buffer, address, bytes, op, token, thread);
  }

  void bulk_access(Thread& thread, uintptr_t address, size_t bytes, Op op, void* pc, Actor actor) {
    if (actor < 0 && !detector_.has_begun(actor)) detector_.begin_async(actor, thread.actor);
    size_t offset = 0;
    const Where where = locate(thread, address, bytes, op, pc, false, &offset);
    if (where == Where::ignored) return;
    const uint32_t token = token_of(pc);
    const Space space = where == Where::shared ? Space::shared : Space::global;
    const uint64_t serial = where == Where::shared ? 0 : recent_[0]->serial;
    Site& site = sites_[site_index({token, 0, space, op, 0, serial})];
    if (!site.has_operation || site.operation != actor) {
      site.has_operation = true;
      site.operation = actor;
      site.next_sector = 0;
      ++site.counts.requests;
      ++site.counts.lanes;
    }
    site.counts.bytes += bytes;
    site.counts.largest_piece = std::max<uint64_t>(site.counts.largest_piece, bytes);
    if (where == Where::shared) {
      detector_.access(offset, bytes, {actor, token, op == Op::async_store, false, true},
                       owner_of(offset));
      return;
    }
    uintptr_t first = address / kSectorBytes;
    const uintptr_t last = (address + bytes - 1) / kSectorBytes;
    if (first + 1 == site.next_sector) ++first;  // the piece before ended in the same sector
    site.counts.units += last + 1 - first;
    site.next_sector = last + 1;
    site.counts.ideal += (bytes + kSectorBytes - 1) / kSectorBytes;
    mark_sectors(*recent_[0], address, bytes);
    check_global(*recent_[0], address, bytes, op, token, thread);
  }

  // ---- mbarriers ----

  void barrier_init(const Thread& thread, const uint64_t* bar, void* pc) {
    detector_.barrier_init(bar, barrier_offset(bar), thread.actor, token_of(pc));
  }
  void barrier_use(const uint64_t* bar, Actor actor, bool async_proxy, void* pc) {
    detector_.barrier_use(bar, {actor, token_of(pc), false, false, async_proxy},
                          owner_of(barrier_offset(bar)));
  }

  // ---- findings of the runtime ----

  void note_different_places(const char* operation, const Thread& first, void* first_pc,
                             const Thread& thread, void* pc) {
    Occurrence& found = note(Kind::different_places, token_of(first_pc), pc, thread, Op::load);
    if (found.count != 1) return;
    found.earlier_thread = first.thread_idx;
    found.detail = operation;
  }
  void note_diverged(const char* operation, const Thread& alone, bool waited, void* alone_pc,
                     const Thread& thread, void* pc) {
    const Kind kind = waited ? Kind::waited_alone : Kind::acted_alone;
    Occurrence& found = note(kind, token_of(alone_pc), pc, thread, Op::load);
    if (found.count != 1) return;
    found.earlier_thread = alone.thread_idx;
    found.detail = operation;
  }

  void overflow(Thread& thread, const std::string& operation, const char* type, void* pc) {
    Occurrence& found = note(Kind::overflow, 0, pc, thread, Op::load);
    if (found.count == 1) found.detail = operation + ", which does not fit in " + type + ",";
  }

  /// The group synchronised with other groups through global memory.
  void note_global_sync(const void* object) {
    if (group_ == nullptr || find_shared_block(object) != nullptr) return;
    if (find_allocation(reinterpret_cast<uintptr_t>(object)) == nullptr) return;
    shared().group_syncs[group_id_].fetch_add(1);
  }

 private:
  static constexpr size_t kFirstTableSize = 1024;

  enum class Where { ignored, shared, global };

  struct Buffer {
    uintptr_t begin = 0, end = 0;
    uint64_t serial = 0;
    std::string name;
    std::vector<uint64_t> sectors;  // a bit per sector
    GlobalCell* cells = nullptr;
  };

  struct TableEntry {
    SiteKey key;
    int index = -1;
  };

  /// What an access refers to. Shared: `offset` in the detector's memory. Global: the buffer
  /// becomes recent_[0]. Reports what is out of bounds or misaligned; fails where the access would
  /// crash.
  Where locate(Thread& thread, uintptr_t address, size_t bytes, Op op, void* pc, bool natural,
               size_t* offset) {
    const Block& own = *thread.block;
    if (own.shared != nullptr) {
      const size_t at = address - reinterpret_cast<uintptr_t>(own.shared);
      if (at < launch_->shared_bytes + kSharedPadBytes) {
        return in_dynamic_shared(own, at, thread, bytes, op, pc, natural, address, offset);
      }
    }
    if (recent_[0] != nullptr && address >= recent_[0]->begin &&
        address + bytes <= recent_[0]->end) {
      if (natural) check_alignment(thread, address, bytes, op, pc);
      return Where::global;
    }
    if (static_shared_.contains(address)) {
      const uintptr_t at = address - static_shared_.begin;
      if (is_guard_variable(at)) return Where::ignored;
      if (find_shared_variable(at, bytes) == nullptr && nearest_shared_variable(at) != nullptr) {
        Occurrence& found = note(Kind::shared_out_of_bounds, 0, pc, thread, op);
        if (found.count == 1) found.detail = describe_static_overrun(at, bytes);
        return Where::ignored;
      }
      if (natural) check_alignment(thread, address, bytes, op, pc);
      if (group_->block_count > 1) {
        note(Kind::static_shared, 0, pc, thread, op);
        return Where::ignored;  // one variable for all blocks: its races say nothing
      }
      *offset = static_offset_ + (address - static_shared_.begin);
      return Where::shared;
    }
    if (is_stack(reinterpret_cast<const void*>(address))) return Where::ignored;
    for (size_t i = 1; i < recent_.size() && recent_[i] != nullptr; ++i) {
      if (address < recent_[i]->begin || address + bytes > recent_[i]->end) continue;
      std::rotate(recent_.begin(), recent_.begin() + i, recent_.begin() + i + 1);
      if (natural) check_alignment(thread, address, bytes, op, pc);
      return Where::global;
    }
    return locate_slowly(thread, address, bytes, op, pc, natural, offset);
  }

  Where in_dynamic_shared(const Block& block, size_t at, Thread& thread, size_t bytes, Op op,
                          void* pc, bool natural, uintptr_t address, size_t* offset) {
    if (at + bytes > launch_->shared_bytes) {
      Occurrence& found = note(Kind::shared_out_of_bounds, 0, pc, thread, op);
      if (found.count == 1) {
        found.detail = std::to_string(bytes) + " bytes at byte offset " + std::to_string(at) +
                       " of the dynamic shared memory, which has " +
                       std::to_string(launch_->shared_bytes) + " bytes";
      }
      return Where::ignored;
    }
    if (natural) check_alignment(thread, address, bytes, op, pc);
    *offset = shared_stride_ * block.index + at;
    return Where::shared;
  }

  Where locate_slowly(Thread& thread, uintptr_t address, size_t bytes, Op op, void* pc,
                      bool natural, size_t* offset) {
    const auto* pointer = reinterpret_cast<const void*>(address);
    if (group_->block_count > 1) {
      if (const Block* block = find_shared_block(pointer)) {
        const size_t at = address - reinterpret_cast<uintptr_t>(block->shared);
        return in_dynamic_shared(*block, at, thread, bytes, op, pc, natural, address, offset);
      }
    }
    const Allocation* allocation = find_allocation(address);
    if (allocation != nullptr && address + bytes <= allocation->begin + allocation->bytes) {
      use_buffer(*allocation);
      if (natural) check_alignment(thread, address, bytes, op, pc);
      return Where::global;
    }
    const uintptr_t arguments = reinterpret_cast<uintptr_t>(launch_->arguments);
    if (address >= arguments && address < arguments + launch_->argument_bytes) {
      return Where::ignored;
    }
    for (const Range& image : shared().images) {
      if (image.contains(address)) return Where::ignored;
    }
    const Allocation* near =
        allocation != nullptr ? allocation : find_nearest_allocation(address, kGuardBytes);
    const bool mapped = near != nullptr && address + kGuardBytes >= near->begin &&
                        address + bytes <= near->begin + near->bytes + kGuardBytes;
    Occurrence& found = note(Kind::out_of_bounds, 0, pc, thread, op);
    if (found.count == 1) found.detail = describe_overrun(address, bytes, near);
    if (!mapped) {
      fail(std::string("out of bounds: ") + (op == Op::load ? "reads " : "writes ") + found.detail,
           pc);
    }
    return Where::ignored;
  }

  static std::string describe_static_overrun(uintptr_t at, size_t bytes) {
    const SharedVariable& near = *nearest_shared_variable(at);
    return std::to_string(bytes) + " bytes at byte offset " +
           std::to_string(static_cast<int64_t>(at - near.begin)) + " of the __shared__ variable '" +
           near.name + "', which has " + std::to_string(near.end - near.begin) + " bytes";
  }

  static std::string describe_overrun(uintptr_t address, size_t bytes, const Allocation* near) {
    std::string text = std::to_string(bytes) + " bytes ";
    if (near == nullptr) {
      char hex[32];
      std::snprintf(hex, sizeof hex, "%#zx", static_cast<size_t>(address));
      return text + "at " + hex + ", which is in no buffer";
    }
    const auto distance = static_cast<int64_t>(address - near->begin);
    return text + "at byte offset " + std::to_string(distance) + " of '" + near->name +
           "', which has " + std::to_string(near->bytes) + " bytes";
  }

  void check_alignment(Thread& thread, uintptr_t address, size_t bytes, Op op, void* pc) {
    if ((address & (bytes - 1)) != 0) report_misaligned(thread, address, bytes, op, pc);
  }

  [[noreturn]] void report_misaligned(Thread& thread, uintptr_t address, size_t bytes, Op op,
                                      void* pc) {
    Occurrence& found = note(Kind::misaligned, 0, pc, thread, op);
    found.detail = std::to_string(bytes) + " bytes at an address that is " +
                   std::to_string(address & (bytes - 1)) + " past a multiple of " +
                   std::to_string(bytes);
    fail(std::string("misaligned: ") + (op == Op::load ? "reads " : "writes ") + found.detail, pc);
  }

  void use_buffer(const Allocation& allocation) {
    std::unique_ptr<Buffer>& buffer = buffers_[allocation.serial];
    if (buffer == nullptr) {
      buffer = std::make_unique<Buffer>();
      buffer->begin = allocation.begin;
      buffer->end = allocation.begin + allocation.bytes;
      buffer->serial = allocation.serial;
      buffer->name = allocation.name;
      const uintptr_t sectors = buffer->end / kSectorBytes - buffer->begin / kSectorBytes + 1;
      buffer->sectors.resize(sectors / 64 + 1);
      if (launch_->group_count > 1) {
        Shared& state = shared();
        const std::lock_guard<std::mutex> lock(state.mutex);
        std::unique_ptr<GlobalShadow>& shadow = state.shadows[allocation.serial];
        if (shadow == nullptr) shadow = std::make_unique<GlobalShadow>(allocation.bytes);
        buffer->cells = shadow->cells();
      }
    }
    std::move_backward(recent_.begin(), recent_.end() - 1, recent_.end());
    recent_[0] = buffer.get();
  }

  static void mark_sectors(Buffer& buffer, uintptr_t address, size_t bytes) {
    const uintptr_t base = buffer.begin / kSectorBytes;
    const uintptr_t last = (address + bytes - 1) / kSectorBytes - base;
    for (uintptr_t at = address / kSectorBytes - base; at <= last; ++at) {
      buffer.sectors[at / 64] |= uint64_t{1} << (at % 64);
    }
  }

  size_t site_index(const SiteKey& key) {
    const size_t mask = table_.size() - 1;
    uint64_t hash = (uint64_t{key.pc} << 8 | key.bytes) ^ key.buffer << 40 ^
                    uint64_t { key.part } << 50 ^ uint64_t { static_cast<unsigned>(key.op) } << 60;
    hash *= 0x9e3779b97f4a7c15ull;
    size_t at = hash >> 40 & mask;
    while (table_[at].index >= 0) {
      if (table_[at].key == key) return static_cast<size_t>(table_[at].index);
      at = (at + 1) & mask;
    }
    table_[at] = {key, static_cast<int>(sites_.size())};
    sites_.push_back({});
    sites_.back().key = key;
    const size_t index = sites_.size() - 1;
    if (2 * sites_.size() > table_.size()) grow_table();
    return index;
  }

  void grow_table() {
    table_.assign(table_.size() * 2, {});
    std::vector<Site> sites = std::move(sites_);
    sites_.clear();
    sites_.reserve(sites.size() * 2);
    for (const Site& site : sites) sites_[site_index(site.key)] = site;
  }

  /// `source`: where a copy reads what it writes to `address`; 0 for everything else.
  void count_lane(const Thread& thread, const SiteKey& key, SharedRule rule, uintptr_t address,
                  uintptr_t source = 0) {
    const size_t index = site_index(key);
    Site& site = sites_[index];
    site.rule = rule;
    std::vector<OpenRequest>& warp =
        open_[size_t{thread.block->index} * warps_per_block_ + thread.id / kWarpSize];
    if (warp.size() <= index) warp.resize(index + 8);
    OpenRequest& open = warp[index];
    const uint32_t bit = uint32_t{1} << thread.lane;
    const uint64_t instruction = thread.warp->instruction;
    if (open.instruction != instruction || (open.lanes.active & bit) != 0) {
      finish(site, open);
      open.instruction = instruction;
    }
    open.lanes.active |= bit;
    open.lanes.address[thread.lane] = address;
    if (source == 0) return;
    if (open.source == nullptr) open.source = std::make_unique<LaneRequest>();
    open.source->active |= bit;
    open.source->address[thread.lane] = source;
  }

  static void finish(Site& site, OpenRequest& open) {
    if (open.lanes.active == 0) return;
    const auto bytes = static_cast<int>(site.key.bytes);
    const RequestCost cost = site.key.space == Space::global
                                 ? global_cost(open.lanes, bytes)
                                 : shared_cost(open.lanes, bytes, site.rule);
    const auto lanes = static_cast<uint64_t>(std::popcount(open.lanes.active));
    uint64_t copy_units = 0;
    if (site.key.space == Space::shared && site.key.op == Op::async_store) {
      copy_units = cost.units;
      // A copy passes as often as its slower side. Only 4 bytes: 16 go past L1, 8 are not measured.
      if (open.source != nullptr && bytes == 4) {
        copy_units = std::max<uint64_t>(copy_units, source_wavefronts(*open.source));
      }
      if (open.source != nullptr) open.source->active = 0;
    }
    site.counts.add(
        {1, lanes, cost.units, cost.ideal, lanes * site.key.bytes, site.key.bytes, copy_units});
    open.lanes.active = 0;
  }

  /// The block, in its group, whose shared memory is at `offset` of the detector's.
  uint32_t owner_of(size_t offset) const {
    return offset < static_offset_ ? static_cast<uint32_t>(offset / shared_stride_) : 0;
  }

  size_t barrier_offset(const uint64_t* bar) const {
    const auto address = reinterpret_cast<uintptr_t>(bar);
    if (const Block* block = find_shared_block(bar)) {
      return shared_stride_ * block->index + (address - reinterpret_cast<uintptr_t>(block->shared));
    }
    return static_offset_ + (address - static_shared_.begin);
  }

  // ---- findings ----

  Occurrence& note(Kind kind, uint32_t earlier, void* pc, const Thread& thread, Op op) {
    Occurrence& found = findings_[{launch_->kernel, kind, earlier, token_of(pc)}];
    if (found.count++ == 0) {
      found.group = group_id_;
      found.block = thread.block->block_idx;
      found.later_thread = thread.thread_idx;
      found.op = op;
    }
    return found;
  }

  uint3 thread_index(uint32_t linear) const {
    const uint32_t id = linear % threads_per_block_;
    const uint3 size = launch_->block;
    return {id % size.x, id / size.x % size.y, id / size.x / size.y};
  }

  /// Turns the group's hazards into findings.
  void take_hazards() {
    for (const auto& [hazard_key, hazard] : detector_.hazards()) {
      static_assert(static_cast<int>(Kind::exit_remote) ==
                    static_cast<int>(SharedHazard::Kind::exit_remote));
      const auto kind = static_cast<Kind>(hazard.kind);
      Occurrence& found = findings_[{launch_->kernel, kind, hazard.earlier_pc, hazard.later_pc}];
      if (found.count == 0) {
        found.group = group_id_;
        found.block = blocks_[hazard.later_thread / threads_per_block_];
        found.earlier_block = blocks_[hazard.earlier_thread / threads_per_block_];
        found.later_thread = thread_index(hazard.later_thread);
        found.earlier_thread = thread_index(hazard.earlier_thread);
        found.earlier_async = hazard.earlier_async;
        found.later_async = hazard.later_async;
        found.earlier_atomic = hazard.earlier_atomic;
        found.later_atomic = hazard.later_atomic;
        found.idle_wait = hazard.idle_wait_pc;
        found.write = hazard.write;
        found.is_static = hazard.offset >= static_offset_;
        found.offset = found.is_static || shared_stride_ == 0 ? hazard.offset - static_offset_
                                                              : hazard.offset % shared_stride_;
      }
      found.count += hazard.count;
    }
    detector_.clear_hazards();
  }

  // ---- global memory, between blocks ----

  uint3 block_of_group(uint64_t group) const {
    const uint64_t id = group * launch_->blocks_per_group;
    const uint3 grid = launch_->grid;
    return {static_cast<unsigned>(id % grid.x), static_cast<unsigned>(id / grid.x % grid.y),
            static_cast<unsigned>(id / grid.x / grid.y)};
  }

  void check_global(Buffer& buffer, uintptr_t address, size_t bytes, Op op, uint32_t token,
                    Thread& thread) {
    if (buffer.cells == nullptr) return;
    Shared& state = shared();
    if (op == Op::atomic) {
      state.group_syncs[group_id_].fetch_add(1);
      return;
    }
    if (group_id_ >= kComparedGroups) return;
    const uint32_t syncs = state.group_syncs[group_id_].load();
    const uint64_t mine = (group_id_ + 1) << 44 | uint64_t{syncs & 0xfff} << 32 | token;
    const size_t first = (address - buffer.begin) / 4;
    const size_t last = (address + bytes - 1 - buffer.begin) / 4;
    const bool writes = op == Op::store || op == Op::async_store;
    for (size_t at = first; at <= last; ++at) {
      GlobalCell& cell = buffer.cells[at];
      // Elements of fewer than four bytes may share a cell: only whole cells are compared.
      const bool whole =
          buffer.begin + at * 4 >= address && buffer.begin + at * 4 + 4 <= address + bytes;
      if (!whole) continue;
      if (writes) {
        report_global(Kind::global_write_write, cell.writer.exchange(mine), mine, syncs, thread, op,
                      buffer, at);
        report_global(Kind::global_read_write, cell.reader.load(), mine, syncs, thread, op, buffer,
                      at);
        report_global(Kind::global_read_write, cell.other_reader.load(), mine, syncs, thread, op,
                      buffer, at);
      } else {
        const uint64_t reader = cell.reader.load();
        if (reader == 0 || reader >> 44 == mine >> 44) {
          if (reader >> 32 != mine >> 32) cell.reader.store(mine);
        } else if (cell.other_reader.load() >> 32 != mine >> 32) {
          cell.other_reader.store(mine);
        }
        report_global(Kind::global_write_read, cell.writer.load(), mine, syncs, thread, op, buffer,
                      at);
      }
    }
  }

  void report_global(Kind kind, uint64_t earlier, uint64_t mine, uint32_t my_syncs, Thread& thread,
                     Op op, const Buffer& buffer, size_t cell) {
    if (earlier == 0 || earlier >> 44 == mine >> 44) return;
    const uint64_t group = (earlier >> 44) - 1;
    // If both used atomics in between, they may well have agreed on an order.
    const uint32_t syncs_then = earlier >> 32 & 0xfff;
    if (my_syncs != 0 && (shared().group_syncs[group].load() & 0xfff) != syncs_then) return;
    Occurrence& found =
        note(kind, static_cast<uint32_t>(earlier), pc_of(static_cast<uint32_t>(mine)), thread, op);
    if (found.count != 1) return;
    found.offset = cell * 4;
    found.earlier_block = block_of_group(group);
    found.detail = buffer.name;
  }

  const Launch* launch_ = nullptr;
  Group* group_ = nullptr;
  uint64_t group_id_ = 0;
  bool group_is_open_ = false;
  std::vector<uint3> blocks_;
  uint32_t threads_per_block_ = 1;
  uint32_t warps_per_block_ = 1;
  size_t shared_stride_ = 0;  ///< Of one block's dynamic shared memory in the detector's.
  size_t static_offset_ = 0;  ///< Where static shared memory starts in the detector's.
  Range static_shared_;
  RaceDetector detector_;
  std::vector<Site> sites_;
  std::vector<TableEntry> table_;
  std::vector<std::vector<OpenRequest>> open_;  // by warp of the group, site
  struct {
    Actor actor = 0;
    uintptr_t address = 0;
  } copy_source_;
  std::map<uint64_t, std::unique_ptr<Buffer>> buffers_;
  std::array<Buffer*, 8> recent_{};  // latest first
  AsyncKind kind_ = AsyncKind::cp_async;
  Findings findings_;
  KernelCounts counts_;
};

// ---- workers and launches ---------------------------------------------------------------------

std::vector<std::unique_ptr<WorkerTracer>> all_tracers;
size_t tracers_in_use = 0;
thread_local WorkerTracer* this_tracer = nullptr;
thread_local uint64_t this_tracer_launch = 0;

class TracingHooks final : public Hooks {
 public:
  void launch_begin(const Launch& launch) override {
    Shared& state = shared();
    tracers_in_use = 0;
    ++state.launch_number;
    state.images = loaded_images();
    state.shadows.clear();
    state.group_syncs = std::make_unique<std::atomic<uint32_t>[]>(launch.group_count + 1);
    if (state.kernels.find(launch.kernel) == state.kernels.end()) {
      state.kernel_order.push_back(launch.kernel);
    }
    ++state.kernels[launch.kernel].launches;
    launch_ = &launch;
    if (launch.group_count > kComparedGroups) {
      std::fprintf(stderr,
                   "note: %s runs %llu blocks; races between them are looked for among the first "
                   "%llu\n",
                   kernel_name(launch.kernel).c_str(),
                   static_cast<unsigned long long>(launch.group_count * launch.blocks_per_group),
                   static_cast<unsigned long long>(kComparedGroups * launch.blocks_per_group));
    }
  }

  void launch_end(const Launch& launch, bool) override {
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
    state.shadows.clear();
    tracers_in_use = 0;
  }

  void group_begin(Group& group) override {
    Shared& state = shared();
    if (this_tracer == nullptr || this_tracer_launch != state.launch_number) {
      const std::lock_guard<std::mutex> lock(state.mutex);
      if (tracers_in_use == all_tracers.size()) {
        all_tracers.push_back(std::make_unique<WorkerTracer>());
      }
      this_tracer = all_tracers[tracers_in_use++].get();
      this_tracer_launch = state.launch_number;
      this_tracer->begin_launch(*launch_);
    }
    this_tracer->begin_group(group);
  }
  void group_end(Group&) override {
    this_tracer->detector().check_exits();
    this_tracer->end_group();
  }
  void block_end(Block& block) override { this_tracer->end_block(block); }

  void full_barrier(Block& block) override {
    if (block.group->block_count == 1) {
      this_tracer->detector().full_barrier();
      return;
    }
    std::vector<Actor> actors(block.thread_count);
    for (uint32_t i = 0; i < block.thread_count; ++i) actors[i] = block.threads[i].actor;
    this_tracer->detector().join(actors.data(), actors.size());
  }
  void join(Block& block, const uint16_t* thread_ids, int count) override {
    Actor actors[kMaxBlockThreads];
    for (int i = 0; i < count; ++i) actors[i] = block.threads[thread_ids[i]].actor;
    this_tracer->detector().join(actors, static_cast<size_t>(count));
  }
  void release(const void* object, Actor who, Knowledge what) override {
    this_tracer->detector().release(object, who, what);
    this_tracer->note_global_sync(object);
  }
  void acquire(const void* object, Actor who) override {
    this_tracer->detector().acquire(object, who);
    this_tracer->note_global_sync(object);
  }
  void async_begin(Actor operation, Thread& issuer) override {
    this_tracer->detector().begin_async(operation, issuer.actor);
  }
  void async_access(const void* address, size_t bytes, bool is_write, Thread& issuer, void* pc,
                    Actor actor, AsyncKind kind) override {
    const Op op = is_write ? Op::async_store : Op::async_load;
    if (kind == AsyncKind::cp_async || kind == AsyncKind::st_async) {
      if (!is_write) this_tracer->note_copy_source(actor, address);
      this_tracer->note_kind(kind);
      trace_lane_access(issuer, address, static_cast<unsigned>(bytes), op, pc, actor);
    } else {
      trace_bulk_access(issuer, address, bytes, op, pc, actor);
    }
  }
  void atomic_access(const void* address, int bytes, void* pc) override {
    if (current_thread == nullptr) return;
    trace_access(*current_thread, reinterpret_cast<uintptr_t>(address),
                 static_cast<unsigned>(bytes), Op::atomic, true, pc);
  }
  void unit_access(const void* address, int bytes, bool is_write, void* pc) override {
    if (current_thread == nullptr || bytes <= 0) return;
    // Single words of global memory are flags that blocks agree through (load_acquire and
    // store_release), which do not race.
    const bool is_flag = bytes == 4 || bytes == 8;
    this_tracer->lane_access(
        *current_thread, reinterpret_cast<uintptr_t>(address), static_cast<unsigned>(bytes),
        is_write ? Op::store : Op::load, SharedRule::load_store,
        std::has_single_bit(static_cast<unsigned>(bytes)), pc, 0, current_thread->actor, !is_flag);
  }
  void proxy_fence(Thread& thread) override { this_tracer->detector().proxy_fence(thread.actor); }
  void mbarrier_init(const uint64_t* bar, void* pc) override {
    this_tracer->barrier_init(*current_thread, bar, pc);
  }
  void mbarrier_invalidate(const uint64_t* bar) override {
    this_tracer->detector().barrier_invalidate(bar);
  }
  void mbarrier_use(const uint64_t* bar, Actor who, bool async_proxy, void* pc) override {
    this_tracer->barrier_use(bar, who, async_proxy, pc);
  }
  void mbarrier_init_fence() override {
    this_tracer->detector().barrier_init_fence(current_thread->actor);
  }
  void different_places(const char* operation, const Thread& first, void* first_pc,
                        void* pc) override {
    this_tracer->note_different_places(operation, first, first_pc, *current_thread, pc);
  }
  void diverged(const char* operation, const Thread& alone, bool waited, void* alone_pc,
                void* pc) override {
    this_tracer->note_diverged(operation, alone, waited, alone_pc, *current_thread, pc);
  }
  void mbarrier_waited(Thread& thread, bool idle, void* pc) override {
    this_tracer->detector().idle_wait(thread.actor, idle ? token_of(pc) : 0);
  }

 private:
  const Launch* launch_ = nullptr;
};

TracingHooks tracing_hooks;

// ---- the report -------------------------------------------------------------------------------

std::string to_text(const uint3& index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," +
         std::to_string(index.z) + ")";
}

/// "tile + 1284 bytes"
std::string name_static(size_t offset) {
  const SharedVariable* variable = find_shared_variable(offset, 1);
  if (variable == nullptr) return "static shared memory + " + std::to_string(offset) + " bytes";
  return "'" + variable->name + "' + " + std::to_string(offset - variable->begin) + " bytes";
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::uninitialised: return "uninitialised";
    case Kind::proxy_load:
    case Kind::proxy_store:
    case Kind::barrier_unfenced: return "proxy";
    case Kind::exit_async:
    case Kind::exit_remote: return "exit";
    case Kind::different_places:
    case Kind::acted_alone:
    case Kind::waited_alone: return "divergence";
    case Kind::out_of_bounds:
    case Kind::shared_out_of_bounds: return "out-of-bounds";
    case Kind::misaligned: return "misaligned";
    case Kind::static_shared: return "static-shared";
    case Kind::overflow: return "overflow";
    default: return "race";
  }
}

std::string describe(Kind kind, const Occurrence& found, const std::string& earlier_line,
                     const std::string& later_line, const std::string& wait_line) {
  const bool reads_later = kind == Kind::read_after_write || kind == Kind::global_write_read;
  const bool read_earlier = kind == Kind::write_after_read || kind == Kind::global_read_write;
  const auto actor = [](const uint3& thread, bool is_async) {
    return is_async ? "an asynchronous operation of thread " + to_text(thread)
                    : "thread " + to_text(thread);
  };
  const char* did = found.earlier_atomic ? "updated" : read_earlier ? "read" : "wrote";
  const char* does = found.later_atomic ? "updates" : reads_later ? "reads" : "writes";
  const char* op = found.op == Op::load || found.op == Op::async_load ? "reads" : "writes";
  // Where a read races although its thread waited, the parity it waited for is the first suspect.
  const std::string in_block =
      " (block " + to_text(found.block) + ")" +
      (found.idle_wait == 0 ? ""
                            : "; the mbarrier wait before the read, at " + wait_line +
                                  ", returned at once with no phase complete: its parity, 1, was "
                                  "that of the phase before the first");
  const std::string memory =
      found.is_static ? name_static(found.offset)
                      : "dynamic shared memory + " + std::to_string(found.offset) + " bytes";
  const std::string later = actor(found.later_thread, found.later_async);
  const std::string from_block = " of block " + to_text(found.block);
  const std::string text = std::string(kind_name(kind)) + ": ";
  switch (kind) {
    case Kind::write_after_write:
    case Kind::read_after_write:
    case Kind::write_after_read: {
      const char* order = kind == Kind::read_after_write    ? "read after write"
                          : kind == Kind::write_after_write ? "write after write"
                                                            : "write after read";
      const char* missing =
          found.earlier_async ? " without waiting for it" : " with no barrier between";
      const bool one_block = found.block.x == found.earlier_block.x &&
                             found.block.y == found.earlier_block.y &&
                             found.block.z == found.earlier_block.z;
      return text + order + " on " + memory + ": " +
             actor(found.earlier_thread, found.earlier_async) + " " + did + " at " + earlier_line +
             (one_block ? "" : " from block " + to_text(found.earlier_block)) + ", " + later + " " +
             does + " at " + later_line + missing + in_block;
    }
    case Kind::uninitialised:
      return text + later + " reads " + memory + " at " + later_line +
             ", which nothing has written" + in_block;
    case Kind::proxy_load:
    case Kind::proxy_store:
      return text + actor(found.earlier_thread, false) + " wrote " + memory + " at " +
             earlier_line + " by an ordinary store; " + later + " at " + later_line +
             (kind == Kind::proxy_load ? " reads it" : " overwrites it") +
             " without fence_proxy_async() in the writing thread" + in_block;
    case Kind::barrier_unordered:
      return text + later + from_block + " uses the mbarrier at " + memory + " at " + later_line +
             "; nothing orders that after its initialisation, by thread " +
             to_text(found.earlier_thread) + " of block " + to_text(found.earlier_block) + " at " +
             earlier_line;
    case Kind::barrier_unfenced:
      return text + later + from_block + " uses the mbarrier at " + memory + " at " + later_line +
             "; no fence_mbarrier_init() follows its initialisation, by thread " +
             to_text(found.earlier_thread) + " of block " + to_text(found.earlier_block) + " at " +
             earlier_line;
    case Kind::not_started:
      return text + later + from_block + (found.write ? " writes " : " reads ") + memory +
             " of another block of the cluster at " + later_line +
             ", which may not have started: no barrier of the cluster comes before";
    case Kind::exit_async:
      return text + "block " + to_text(found.block) +
             " may end before an asynchronous operation that thread " +
             to_text(found.earlier_thread) + " issued at " + earlier_line + " is done with its " +
             memory + ": nothing waits for it";
    case Kind::exit_remote:
      return text + "block " + to_text(found.block) + " may have ended when " +
             actor(found.earlier_thread, found.earlier_async) + " of block " +
             to_text(found.earlier_block) + " uses its " + memory + " at " + earlier_line +
             ": nothing orders that before its end";
    case Kind::different_places:
      return text + "thread " + to_text(found.earlier_thread) + " executes " + found.detail +
             " at " + earlier_line + " and thread " + to_text(found.later_thread) + " at " +
             later_line + ", where both must execute the same one" + in_block;
    case Kind::acted_alone:
    case Kind::waited_alone:
      return text + "thread " + to_text(found.earlier_thread) +
             (kind == Kind::waited_alone ? " waited" : " acted") + " alone at " + earlier_line +
             ", and its warp comes to " + found.detail + " at " + later_line +
             " with no __syncwarp() between" + in_block;
    case Kind::global_write_write:
    case Kind::global_write_read:
    case Kind::global_read_write:
      return text + "blocks " + to_text(found.earlier_block) + " and " + to_text(found.block) +
             " meet at byte offset " + std::to_string(found.offset) + " of '" + found.detail +
             "': one " + did + " at " + earlier_line + ", thread " + to_text(found.later_thread) +
             " of the other " + does + " at " + later_line + " with no synchronisation between";
    case Kind::out_of_bounds:
      return text + later + " " + op + " " + found.detail + ", at " + later_line + in_block;
    case Kind::shared_out_of_bounds:
      return text + later + " " + op + " " + found.detail + ", at " + later_line + in_block;
    case Kind::misaligned:
      return text + later + " " + op + " " + found.detail + ", at " + later_line + in_block;
    case Kind::static_shared:
      return text + "static __shared__ memory is used at " + later_line +
             " in a cluster or cooperative launch: use dynamic_shared() there" + in_block;
    case Kind::overflow:
      return text + later + " computes " + found.detail + " at " + later_line + in_block;
  }
  return text;
}

void start() {
  Shared& state = shared();
  state.sites.clear();
  state.buffer_names.clear();
  state.kernels.clear();
  state.kernel_order.clear();
  state.findings.clear();
  find_library_code();
  hooks = &tracing_hooks;
}

Trace stop() {
  hooks = nullptr;
  Shared& state = shared();
  Trace trace;

  // All program counters in one call: resolving them starts a process.
  std::map<uint32_t, SourceLocation> locations;
  for (const auto& [key, counts] : state.sites) locations[key.second.pc];
  for (const auto& [key, found] : state.findings) {
    if (std::get<2>(key) != 0) locations[std::get<2>(key)];
    if (std::get<3>(key) != 0) locations[std::get<3>(key)];
    if (found.idle_wait != 0) locations[found.idle_wait];
  }
  std::vector<void*> pcs;
  for (const auto& [token, location] : locations) pcs.push_back(pc_of(token));
  const std::vector<SourceLocation> resolved = symbolize(pcs);
  size_t next = 0;
  for (auto& [token, location] : locations) location = resolved[next++];
  const auto line_of = [&](uint32_t token) {
    const SourceLocation& location = locations[token];
    if (location.line == 0) return describe_pc(pc_of(token));
    const size_t slash = location.file.find_last_of('/');
    return location.file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" +
           std::to_string(location.line);
  };

  // Inlined and unrolled copies of one line are one site.
  using Place = std::tuple<std::string, std::string, int, Space, Op, int, std::string>;
  std::map<Place, AccessSite> sites;
  for (const auto& [key, counts] : state.sites) {
    const SiteKey& site = key.second;
    const SourceLocation& location = locations[site.pc];
    const std::string kernel = kernel_name(key.first);
    const std::string buffer = site.buffer != 0 || site.space == Space::global
                                   ? state.buffer_names[site.buffer]
                                   : std::string();
    const bool is_bulk = site.bytes == 0;
    const int bytes =
        is_bulk ? static_cast<int>(counts.largest_piece) : static_cast<int>(site.bytes);
    AccessSite& out = sites[{kernel, location.file, location.line, site.space, site.op,
                             is_bulk ? 0 : bytes, buffer}];
    out.kernel = kernel;
    out.file = location.file;
    out.line = location.line;
    out.space = site.space;
    out.op = site.op;
    out.bytes_per_lane = std::max(out.bytes_per_lane, bytes);
    out.buffer = buffer;
    out.requests += counts.requests;
    out.lanes += counts.lanes;
    out.bytes += counts.bytes;
    if (site.space == Space::global) {
      out.sectors += counts.units;
      out.ideal_sectors += counts.ideal;
    } else {
      out.wavefronts += counts.units;
      out.ideal_wavefronts += counts.ideal;
      out.copy_wavefronts += counts.copy_units;
    }
  }
  for (auto& [place, site] : sites) trace.sites.push_back(std::move(site));

  // Two program counters of one pair of lines are one finding.
  std::map<std::pair<int, std::string>, size_t> seen;
  for (const auto& [key, found] : state.findings) {
    const auto [kernel, kind, earlier, later] = key;
    const std::string earlier_line = earlier != 0 ? line_of(earlier) : std::string();
    const std::string later_line = later != 0 ? line_of(later) : std::string();
    if (kind == Kind::different_places && earlier_line == later_line) continue;
    const std::string pair = kernel_name(kernel) + "|" + earlier_line + "|" + later_line;
    const auto [at, is_new] =
        seen.try_emplace({static_cast<int>(kind), pair}, trace.findings.size());
    if (is_new) {
      trace.findings.push_back(
          {kind_name(kind),
           describe(kind, found, earlier_line, later_line,
                    found.idle_wait != 0 ? line_of(found.idle_wait) : std::string()),
           found.count});
    } else {
      trace.findings[at->second].count += found.count;
    }
  }

  for (const void* kernel : state.kernel_order) {
    const KernelCounts& counts = state.kernels[kernel];
    KernelTotals totals;
    totals.kernel = kernel_name(kernel);
    totals.launches = counts.launches;
    totals.blocks = counts.blocks;
    totals.basic_blocks = counts.basic_blocks;
    if (counts.basic_blocks != 0) {
      totals.mean_active_lanes =
          static_cast<double>(counts.active_lanes) / static_cast<double>(counts.basic_blocks);
    }
    totals.bytes_requested = counts.bytes_requested;
    totals.distinct_bytes = counts.distinct_bytes;
    trace.kernels.push_back(std::move(totals));
  }
  return trace;
}

TracerBackend backend{start, stop};
[[maybe_unused]] const bool registered = [] {
  tracer_backend = &backend;
  return true;
}();

}  // namespace

void trace_access(Thread& thread, uintptr_t address, unsigned bytes, Op op, bool natural_alignment,
                  void* pc, unsigned part) {
  this_tracer->lane_access(thread, address, bytes, op,
                           op == Op::atomic ? SharedRule::atomic : SharedRule::load_store,
                           natural_alignment, pc, part, thread.actor);
}

void trace_overflow(Thread& thread, const std::string& operation, const char* type, void* pc) {
  this_tracer->overflow(thread, operation, type, pc);
}

void trace_lane_access(Thread& thread, const void* address, unsigned bytes, Op op, void* pc,
                       Actor actor) {
  if (bytes == 0) return;
  this_tracer->lane_access(thread, reinterpret_cast<uintptr_t>(address), bytes, op,
                           SharedRule::matrix_rows, std::has_single_bit(bytes), pc, 0, actor);
}

void trace_bulk_access(Thread& issuer, const void* address, size_t bytes, Op op, void* pc,
                       Actor actor) {
  if (bytes == 0) return;
  this_tracer->bulk_access(issuer, reinterpret_cast<uintptr_t>(address), bytes, op, pc, actor);
}

}  // namespace cookbook::simt
