// SPDX-License-Identifier: MIT
// What stands in for a library of the toolkit: host code that uses device memory in a stream.
#pragma once

#include <memory>

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
  bool writes(void* begin, size_t bytes);
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
