// SPDX-License-Identifier: MIT
//
// Which code is the standard library's. The linker keeps one copy of std::vector's functions, and
// it may be the instrumented one from a kernel's file; when the runtime calls it on a CUDA thread,
// this is not part of the kernel. It must not be counted and must not suspend the thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

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

/// A variable in the executable's thread-local storage: static shared memory of a kernel, or one of
/// the backend's own.
struct SharedVariable {
  uintptr_t begin = 0, end = 0;  ///< Offsets into the storage.
  std::string name;              ///< "tile", without its function; empty: not a kernel's.
};

/// The variable that [offset, offset + bytes) lies in, or null: the access reaches beyond one, or
/// the executable has no symbols. Valid until the process ends.
const SharedVariable* find_shared_variable(uintptr_t offset, size_t bytes);
/// The variable nearest to `offset`, or null if there are no symbols.
const SharedVariable* nearest_shared_variable(uintptr_t offset);

/// Whether `offset` into the executable's thread-local storage lies in a guard variable. g++ adds
/// one to a `__shared__` array of a class type in a template kernel; the source does not mention
/// it.
bool is_guard_variable(uintptr_t offset);

}  // namespace cookbook::simt
