// SPDX-License-Identifier: MIT
// What stands in for a library of the toolkit: host code that uses device memory in a stream.
#pragma once

#include <memory>
#include <string>

#include "tools/check/program/program.hpp"

namespace cookbook::simt::program {

/// While it lives, host code may use device memory. One at a time.
class LibraryCall {
 public:
  LibraryCall(const char* function, cudaStream_t stream, Place place);
  ~LibraryCall();
  /// Whether these bytes are in device memory; a finding if not. Reading what nothing has written
  /// is a finding, too.
  bool reads(const void* begin, size_t bytes);
  /// The same of rows that lie `pitch` bytes apart. What lies between them is not read.
  bool reads_rows(const void* begin, size_t bytes, size_t rows, size_t pitch);
  bool writes(void* begin, size_t bytes);
  /// Only the last `bytes` of a range that begins `offset` bytes before them.
  bool reads_behind(const void* begin, size_t offset, size_t bytes);
  bool writes_behind(void* begin, size_t offset, size_t bytes);
  /// A finding: what an operand says would lead the library out of bounds.
  bool out_of_bounds(const std::string& what);
  /// Whether a kernel, or else the host, can use the scalar at `at`; a finding if not.
  bool scalar_is_on(const void* at, bool device);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Device memory, or host memory: as some parameters may be either.
bool is_in_device_memory(const void* pointer);

/// Host code wrote device memory directly, during a call.
void mark_written_by_host(const void* begin, size_t bytes);

}  // namespace cookbook::simt::program
