// SPDX-License-Identifier: MIT
//
// Which code is the standard library's. The linker keeps one copy of std::vector's functions, and
// it may be the instrumented one from a kernel's file; when the runtime calls it, on a CUDA thread,
// that is not the kernel's doing and must not be counted, let alone suspend the thread.
#pragma once

#include <cstdint>

namespace cookbook::simt {

/// A bit for every 16 bytes of the executable's code, which is how functions are aligned.
struct LibraryCode {
  uintptr_t begin = 0;
  uintptr_t bytes = 0;
  const uint8_t* bits = nullptr;

  bool contains(const void* pc) const {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(pc) - 1 - begin;  // pc: a return address
    return offset < bytes && (bits[offset >> 7] >> (offset >> 4 & 7) & 1) != 0;
  }
};
extern LibraryCode library_code;

/// Reads the executable's symbols, the first time; without symbols nothing is library code.
void find_library_code();

/// Whether `offset` into the executable's thread-local storage lies in a guard variable. g++ adds
/// one to a `__shared__` array of a class type in a template kernel; no thread of the kernel knows.
bool is_guard_variable(uintptr_t offset);

}  // namespace cookbook::simt
