// SPDX-License-Identifier: MIT
//
// The functions that g++ calls from code compiled with -fsanitize=signed-integer-overflow when a
// result does not fit, with -fsanitize=shift-exponent when a value is shifted by its width or more,
// and with -fsanitize=bounds-strict when an index is not one of its array. As
// with tsan_entry.cpp, the sanitizer's runtime is not linked.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/tracer/host_overflows.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace {

// What g++ passes first (gcc/ubsan.cc): where in the source, and the type of the operation.
struct TypeDescriptor {
  uint16_t kind;
  uint16_t info;  // bit 0: signed; above: the logarithm of the width in bits
  char name[1];   // 'int', in quotes
};
struct Location {
  const char* file;
  uint32_t line, column;
};
struct OverflowData {
  Location location;
  const TypeDescriptor* type;
};
struct ShiftData {
  Location location;
  const TypeDescriptor* value;
  const TypeDescriptor* by;
};
struct IndexData {
  Location location;
  const TypeDescriptor* array;
  const TypeDescriptor* index;
};

// Values of at most 64 bits are passed themselves, wider ones by address.
std::string value(const TypeDescriptor* type, uintptr_t bits) {
  switch (type->info >> 1) {
    case 5: return std::to_string(static_cast<int32_t>(bits));
    case 6: return std::to_string(static_cast<int64_t>(bits));
    default: return "a value";
  }
}

// What host code did, and how often.
std::mutex host_mutex;
std::map<std::string, uint64_t> host_overflows;

void report(const Location& location, const std::string& operation, void* pc) {
  using namespace cookbook::simt;
  if (library_code.contains(pc)) return;
  if (current_thread == nullptr) {
    const SourceLocation here{"", location.file, static_cast<int>(location.line), ""};
    const std::lock_guard lock(host_mutex);
    ++host_overflows[operation + " at " + describe_line(here)];
  } else if (tracing::worker_tracer != nullptr) {
    tracing::worker_tracer->overflow(operation, pc);
  }
}

void report(const OverflowData* data, const std::string& operation, void* pc) {
  report(data->location, operation + ", which does not fit in " + data->type->name + ",", pc);
}

}  // namespace

namespace cookbook::simt::tracing {

std::vector<Finding> take_host_overflows() {
  const std::lock_guard lock(host_mutex);
  std::vector<Finding> findings;
  for (const auto& [text, count] : std::exchange(host_overflows, {})) {
    findings.push_back({"overflow", "overflow: host code computes " + text, count,
                        "host code|overflow|" + text, text.substr(text.rfind(' ') + 1),
                        overflow_remedy(text)});
  }
  return findings;
}

}  // namespace cookbook::simt::tracing

#define BINARY(NAME, OPERATOR)                                                          \
  void __ubsan_handle_##NAME##_overflow(OverflowData* data, uintptr_t a, uintptr_t b) { \
    report(data, value(data->type, a) + OPERATOR + value(data->type, b),                \
           __builtin_return_address(0));                                                \
  }

extern "C" {
BINARY(add, " + ")
BINARY(sub, " - ")
BINARY(mul, " * ")
BINARY(divrem, " / ")
void __ubsan_handle_negate_overflow(OverflowData* data, uintptr_t a) {
  report(data, "-(" + value(data->type, a) + ")", __builtin_return_address(0));
}
void __ubsan_handle_shift_out_of_bounds(ShiftData* data, uintptr_t, uintptr_t by) {
  report(data->location,
         fmt::format("a shift by {} of a {}-bit value", value(data->by, by),
                     1 << (data->value->info >> 1)),
         __builtin_return_address(0));
}
/// g++ takes an access of a local array for one of its own elements, which nobody has to count.
void __ubsan_handle_out_of_bounds(IndexData* data, uintptr_t index) {
  using namespace cookbook::simt;
  if (tracing::worker_tracer == nullptr || current_thread == nullptr) return;
  fail(cookbook::Fault::out_of_bounds,
       fmt::format("out of bounds: index {} of an array of type {}", value(data->index, index),
                   data->array->name),
       __builtin_return_address(0));
}
}
