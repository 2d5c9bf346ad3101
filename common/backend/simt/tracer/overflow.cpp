// SPDX-License-Identifier: MIT
//
// The functions that g++ calls from code compiled with -fsanitize=signed-integer-overflow when a
// result does not fit, and with -fsanitize=bounds-strict when an index is not one of its array. As
// with tsan_entry.cpp, the sanitizer's runtime is not linked.
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "common/backend/simt/runtime/fail.hpp"
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

void report(const OverflowData* data, const std::string& operation, void* pc) {
  using namespace cookbook::simt;
  if (tracing::worker_tracer == nullptr || current_thread == nullptr || library_code.contains(pc)) {
    return;
  }
  tracing::worker_tracer->overflow(operation, data->type->name, pc);
}

}  // namespace

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
