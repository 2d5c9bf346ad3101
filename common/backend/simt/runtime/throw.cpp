// SPDX-License-Identifier: MIT
// In place of the C++ library's function, which each `throw` calls: host code that throws is named
// by its line, and the stack shows it here only. No file with a `throw` may hold this, as g++
// declares the function there.
#include <dlfcn.h>

#include <cstdlib>

#include "common/backend/simt/runtime/crash.hpp"

#if COOKBOOK_WRAPS_THROW  // the linker renames the library's function, and who calls it calls ours
extern "C" [[noreturn]] void __real___cxa_throw(void* thrown, void* type, void (*destroy)(void*));

extern "C" [[noreturn]] void __wrap___cxa_throw(void* thrown, void* type, void (*destroy)(void*)) {
  cookbook::simt::note_throw();
  __real___cxa_throw(thrown, type, destroy);
}
#else  // also in place of it for the library itself, as in std::vector::at
extern "C" [[noreturn]] void __cxa_throw(void* thrown, void* type, void (*destroy)(void*)) {
  using Throw = void (*)(void*, void*, void (*)(void*));
  static const auto library = reinterpret_cast<Throw>(dlsym(RTLD_NEXT, "__cxa_throw"));
  cookbook::simt::note_throw();
  if (library) library(thrown, type, destroy);
  std::abort();
}
#endif
