// SPDX-License-Identifier: MIT
#include "common/backend/simt/runtime/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

// A switch ends in `ret`: a blocked fiber goes on in the function that blocked it, as the return
// predictor expects. A parked fiber goes on in the kernel itself, where the lane before it has just
// left another call behind, so that the return predictor would be wrong for nearly every lane. The
// target of an indirect jump is predicted from where the lanes before went.
#if defined(__x86_64__)

asm(R"(
.macro switch_stacks
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
.endm
.text
.globl cookbook_simt_switch
.type cookbook_simt_switch, @function
cookbook_simt_switch:
  switch_stacks
  ret
.size cookbook_simt_switch, . - cookbook_simt_switch
.globl cookbook_simt_switch_parked
.type cookbook_simt_switch_parked, @function
cookbook_simt_switch_parked:
  switch_stacks
  popq %rcx
  jmp *%rcx
.size cookbook_simt_switch_parked, . - cookbook_simt_switch_parked
)");

namespace cookbook::simt {

void* make_context(char* stack_top, void (*entry)()) {
  // At the first instruction of `entry` the stack must look as after a call: 8 modulo 16, a return
  // address on top.
  auto* slot = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack_top) & ~uintptr_t{15});
  *--slot = nullptr;
  *--slot = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--slot = nullptr;
  return slot;
}

}  // namespace cookbook::simt

#elif defined(__aarch64__)

asm(R"(
.text
.globl cookbook_simt_switch
.type cookbook_simt_switch, %function
cookbook_simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size cookbook_simt_switch, . - cookbook_simt_switch
.globl cookbook_simt_switch_parked
.set cookbook_simt_switch_parked, cookbook_simt_switch
)");

namespace cookbook::simt {

void* make_context(char* stack_top, void (*entry)()) {
  constexpr size_t kFrameBytes = 160, kLinkRegisterOffset = 88;
  char* frame = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(stack_top) & ~uintptr_t{15}) -
                kFrameBytes;
  std::memset(frame, 0, kFrameBytes);
  std::memcpy(frame + kLinkRegisterOffset, &entry, sizeof(entry));
  return frame;
}

}  // namespace cookbook::simt

#else
#error "cookbook_simt_switch is written for x86-64 and aarch64"
#endif

namespace cookbook::simt {
namespace {

constexpr size_t kStacksPerChunk = 64;
constexpr size_t kMaxGuards = 8192;  // the kernel limits the number of mappings of a process

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::atomic<size_t> wanted_bytes{kStackBytes};

}  // namespace

void set_stack_bytes(size_t bytes) {
  const size_t two_pages = 2 * page_bytes();
  wanted_bytes = (std::max(bytes, kStackBytes) + two_pages - 1) / two_pages * two_pages;
}
size_t stack_bytes() { return wanted_bytes; }

StackPool::~StackPool() { release(); }

size_t StackPool::chunk_bytes() const { return kStacksPerChunk * pitch_; }

void StackPool::release() {
  for (char* chunk : chunks_) munmap(chunk, chunk_bytes());
  chunks_.clear();
}

void StackPool::reserve(size_t count) {
  // With the guard an odd number of pages, because the pages at the tops of stacks that are a power
  // of two apart would all compete for a few entries of the TLB.
  const size_t pitch = stack_bytes() + page_bytes();
  if (pitch != pitch_) {
    release();
    pitch_ = pitch;
  }
  while (chunks_.size() * kStacksPerChunk < count) {
    void* memory = mmap(nullptr, chunk_bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    char* chunk = static_cast<char*>(memory);
    madvise(chunk, chunk_bytes(),
            MADV_NOHUGEPAGE);  // a huge page would commit eight stacks at once
    if (chunks_.size() * kStacksPerChunk < kMaxGuards) {
      for (size_t i = 0; i < kStacksPerChunk; ++i) {
        mprotect(chunk + i * pitch_, page_bytes(), PROT_NONE);
      }
    }
    chunks_.push_back(chunk);
  }
}

char* StackPool::top(size_t i) const {
  // Staggered, because stacks at equal offsets would all compete for the same few cache sets.
  const size_t stagger = (i % 32) * 128;
  return chunks_[i / kStacksPerChunk] + (i % kStacksPerChunk + 1) * pitch_ - stagger;
}

bool StackPool::contains(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (const char* chunk : chunks_) {
    if (address - reinterpret_cast<uintptr_t>(chunk) < chunk_bytes()) return true;
  }
  return false;
}

bool StackPool::in_guard(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (const char* chunk : chunks_) {
    const uintptr_t offset = address - reinterpret_cast<uintptr_t>(chunk);
    if (offset < chunk_bytes()) return offset % pitch_ < page_bytes();
  }
  return false;
}

void StackPool::forget_frames([[maybe_unused]] size_t i) const {
#if defined(__SANITIZE_ADDRESS__)
  constexpr size_t kUsualBytes = 64 << 10;
  __asan_unpoison_memory_region(top(i) - kUsualBytes, kUsualBytes);
#endif
}

}  // namespace cookbook::simt
