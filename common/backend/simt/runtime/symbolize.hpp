// SPDX-License-Identifier: MIT
// Program counters to source lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cookbook::simt {

struct SourceLocation {
  std::string function;  // demangled
  std::string file;      // as compiled
  int line = 0;          // 0: unknown
  std::string caller;    // "level_1.cuh:40" where an inlined helper was called; "" elsewhere
};
// Where each pc (a return address) is: the innermost inlined frame outside of common/, or else the
// innermost. One addr2line for all that are not in the cache.
std::vector<SourceLocation> symbolize(const std::vector<void*>& pcs);
bool is_of_kernel(const SourceLocation& location);  // not of the runtime, nor of the harness
std::string describe_line(const SourceLocation& location);  // "file.cuh:17"; "" if unknown
// "helper.cuh:17 (called at level_1.cuh:40)"; without a caller as describe_line().
std::string describe_call(const SourceLocation& location);
// Whether the program copies a struct of its own there, not one of CUDA's vector types. Not if the
// line is unknown.
bool is_own_struct(void* pc);
bool copies_vector_type(void* pc);  // whether the access there is one of CUDA's vector types
std::string describe_pc(void* pc);  // "file.cuh:17", or the address
std::string kernel_name(
    const void* kernel);  // "sgemm<Config<32, 32>>", without return type and parameters

// As describe_call(), of the innermost frame outside of common/; "" where there is none.
std::string describe_stack(void* const* frames, int count);

/// The executable or a library, and where it is loaded.
struct Module {
  uintptr_t base = 0;
  std::string path;
};
Module find_module(uintptr_t address);
std::string shell_quote(const std::string& text);

struct Symbol {
  const char* name;  // mangled; valid during the visit
  int type;          // STT_FUNC ... of <elf.h>
  uintptr_t begin;   // an address; of STT_TLS an offset into the thread-local storage
  size_t bytes;
};
// Visits the symbols of the executable or library that `address` is in; none if it is stripped.
void for_each_symbol(const void* address, const std::function<void(const Symbol&)>& visit);

}  // namespace cookbook::simt
