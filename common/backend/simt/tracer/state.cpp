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

GlobalShadow::GlobalShadow(size_t bytes) : bytes_((bytes / 4 + 2) * sizeof(GlobalCell)) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  cells_ = memory != MAP_FAILED ? static_cast<GlobalCell*>(memory) : nullptr;
}

GlobalShadow::~GlobalShadow() {
  if (cells_ != nullptr) munmap(cells_, bytes_);
}

Shared& shared() {
  static Shared state;
  return state;
}

}  // namespace cookbook::simt::tracing
