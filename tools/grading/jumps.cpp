// SPDX-License-Identifier: MIT
// Where the code of a submission may jump. A pointer to code behind a hook, or a store over a
// return address, would run what nothing counts: loads without their hooks, or functions of this
// program. g++ makes of every indirect call, every return and every beginning of a function a call
// of one of these (tools/grading/grading.cmake). A function returns to where it was called from,
// and a pointer is called where a function of the submission begins.
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "common/backend/simt/runtime/crash.hpp"

#if defined(__x86_64__)

// Each keeps all registers: arguments are in them, or a result.
asm(R"(
.macro keeping_registers call
  pushq %rbp
  movq %rsp, %rbp
  .irp register, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
  pushq %\register
  .endr
  subq $128, %rsp
  andq $-16, %rsp
  .irp number, 0, 1, 2, 3, 4, 5, 6, 7
  movups %xmm\number, 16*\number(%rsp)
  .endr
  movq 8(%rbp), %rdi
  leaq 16(%rbp), %rsi
  call \call
  .irp number, 0, 1, 2, 3, 4, 5, 6, 7
  movups 16*\number(%rsp), %xmm\number
  .endr
  leaq -72(%rbp), %rsp
  .irp register, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
  popq %\register
  .endr
  popq %rbp
.endm
.text
.globl __fentry__
__fentry__:
  keeping_registers cookbook_grading_enter
  ret
.globl __x86_return_thunk
__x86_return_thunk:
  pushq (%rsp)
  keeping_registers cookbook_grading_return
  leaq 8(%rsp), %rsp
  ret
.irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
.globl __x86_indirect_thunk_\register
__x86_indirect_thunk_\register:
  pushq %\register
  keeping_registers cookbook_grading_jump
  ret
.endr
)");

// Where the functions of the submission begin: a section that g++ makes, and that may be missing.
extern "C" const std::uintptr_t __start___mcount_loc[] __attribute__((weak));
extern "C" const std::uintptr_t __stop___mcount_loc[] __attribute__((weak));

namespace cookbook::grading {
namespace {

// What a place of a stack had as the return address when a function began there last. No frame is
// ever taken off: the next one at that place overwrites it.
class ReturnAddresses {
 public:
  std::uintptr_t& at(std::uintptr_t place) {
    if (used_ * 2 >= size_) grow();
    Entry& found = find(place);
    if (found.place == 0) {
      found.place = place;
      ++used_;
    }
    return found.address;
  }

 private:
  struct Entry {
    std::uintptr_t place, address;
  };
  // Not by operator new, which may be the submission's.
  static Entry* zeroed(std::size_t count) {
    void* memory = mmap(nullptr, count * sizeof(Entry), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) simt::end_process("too many calls");
    return static_cast<Entry*>(memory);
  }
  Entry& find(std::uintptr_t place) {
    std::size_t i = (place / 8 * 0x9e3779b97f4a7c15u) >> 20;
    for (i &= size_ - 1; entries_[i].place != 0 && entries_[i].place != place;) {
      i = (i + 1) & (size_ - 1);
    }
    return entries_[i];
  }
  void grow() {
    Entry* old = entries_;
    const std::size_t before = size_;
    size_ = std::max<std::size_t>(2 * before, 1 << 12);
    entries_ = zeroed(size_);
    for (std::size_t i = 0; i < before; ++i) {
      if (old[i].place != 0) find(old[i].place) = old[i];
    }
    if (old != nullptr) munmap(old, before * sizeof(Entry));
  }

  Entry* entries_ = nullptr;
  std::size_t size_ = 0, used_ = 0;
};

// Of each thread of the system: a CUDA thread stays on one, and so does its stack.
thread_local ReturnAddresses return_addresses;

}  // namespace

extern "C" void cookbook_grading_enter(std::uintptr_t, const std::uintptr_t* place) {
  return_addresses.at(reinterpret_cast<std::uintptr_t>(place)) = *place;
}
extern "C" void cookbook_grading_return(std::uintptr_t to, const std::uintptr_t* place) {
  if (return_addresses.at(reinterpret_cast<std::uintptr_t>(place)) != to) {
    simt::end_process("a return to where no call came from");
  }
}
extern "C" void cookbook_grading_jump(std::uintptr_t to, const std::uintptr_t*) {
  if (std::find(__start___mcount_loc, __stop___mcount_loc, to) == __stop___mcount_loc) {
    simt::end_process("a call of what is no function of the submission");
  }
}

}  // namespace cookbook::grading

#endif
