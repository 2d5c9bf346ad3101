// SPDX-License-Identifier: MIT
//
// The functions that g++ calls from code compiled with -fsanitize=signed-integer-overflow when a
// result does not fit. As with tsan_entry.cpp, the sanitizer's runtime is not linked.
#include <cstdint>
#include <string>

#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace {

// What g++ passes first (gcc/ubsan.cc): where in the source, and the type of the operation.
struct TypeDescriptor {
  uint16_t kind;
  uint16_t info;  // bit 0: signed; above: the logarithm of the width in bits
  char name[1];   // 'int', in quotes
};
struct OverflowData {
  struct {
    const char* file;
    uint32_t line, column;
  } location;
  const TypeDescriptor* type;
};

// Values of at most 64 bits are passed themselves, wider ones by address.
std::string value(const OverflowData& data, uintptr_t bits) {
  switch (data.type->info >> 1) {
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

#define BINARY(NAME, OPERATOR)                                                               \
  void __ubsan_handle_##NAME##_overflow(OverflowData* data, uintptr_t a, uintptr_t b) {      \
    report(data, value(*data, a) + OPERATOR + value(*data, b), __builtin_return_address(0)); \
  }

extern "C" {
BINARY(add, " + ")
BINARY(sub, " - ")
BINARY(mul, " * ")
BINARY(divrem, " / ")
void __ubsan_handle_negate_overflow(OverflowData* data, uintptr_t a) {
  report(data, "-(" + value(*data, a) + ")", __builtin_return_address(0));
}
}
