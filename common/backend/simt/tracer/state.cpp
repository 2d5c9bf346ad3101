// SPDX-License-Identifier: MIT
#include "common/backend/simt/tracer/state.hpp"

#include <link.h>
#include <sys/mman.h>

extern "C" char __executable_start;

namespace cookbook::simt::tracing {

uint32_t token_of(const void* pc) {
  return static_cast<uint32_t>(static_cast<const char*>(pc) - &__executable_start);
}
void* pc_of(uint32_t token) { return &__executable_start + token; }

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

GlobalCell* GlobalShadow::map(size_t cells) {
  void* memory = mmap(nullptr, cells * sizeof(GlobalCell), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED ? static_cast<GlobalCell*>(memory) : nullptr;
}

GlobalShadow::GlobalShadow(uintptr_t begin, size_t bytes)
    : begin_(begin), count_(bytes / 4 + 2), words_(map(count_)) {}

GlobalShadow::~GlobalShadow() {
  if (words_ != nullptr) munmap(words_, count_ * sizeof(GlobalCell));
  if (bytes() != nullptr) munmap(bytes(), 4 * count_ * sizeof(GlobalCell));
}

void GlobalShadow::tell_ranges(const std::vector<uint64_t>& sectors) {
  constexpr int kNone = -1;
  const auto use_of = [](const GlobalCell& cell) {
    const uint64_t writer = cell.writer.load(), reader = cell.reader.load();
    if (writer == 0) return reader == 0 ? kNone : 0;
    const uint32_t place = writer & ((1u << GlobalAccess::kPlaceBits) - 1);
    return reader == 0 && shared().places[place].op == Op::atomic ? 2 : 1;
  };
  uintptr_t first = 0;
  int use = kNone;
  const auto tell = [&](uintptr_t at, int next) {
    if (next == use) return;
    if (use != kNone) observe_range(first, at, use);
    first = at;
    use = next;
  };
  // Sectors begin at multiples of their size, cells where the allocation does.
  for (size_t cell = 0; cell < count_; ++cell) {
    const uintptr_t at = begin_ + 4 * cell;
    const size_t sector = at / kSectorBytes - begin_ / kSectorBytes;
    const bool used = sector / 64 < sectors.size() && (sectors[sector / 64] >> sector % 64 & 1);
    int next = used ? use_of(words_[cell]) : kNone;
    for (int i = 0; i < 4 && used && bytes() != nullptr; ++i) {
      next = std::max(next, use_of(bytes()[4 * cell + static_cast<size_t>(i)]));
    }
    tell(at, next);
  }
  tell(begin_ + 4 * count_, kNone);
}

GlobalCell* GlobalShadow::make_bytes() {
  if (bytes() == nullptr) {
    const std::lock_guard<std::mutex> lock(shared().mutex);
    if (bytes() == nullptr) bytes_.store(map(4 * count_), std::memory_order_release);
  }
  return bytes();
}

Shared& shared() {
  static Shared state;
  return state;
}

}  // namespace cookbook::simt::tracing
