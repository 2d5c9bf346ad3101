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

GlobalShadow::GlobalShadow(size_t bytes) : count_(bytes / 4 + 2), words_(map(count_)) {}

GlobalShadow::~GlobalShadow() {
  if (words_ != nullptr) munmap(words_, count_ * sizeof(GlobalCell));
  if (bytes() != nullptr) munmap(bytes(), 4 * count_ * sizeof(GlobalCell));
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
