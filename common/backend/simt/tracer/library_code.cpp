// SPDX-License-Identifier: MIT
#include "common/backend/simt/tracer/library_code.hpp"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/backend/simt/runtime/symbolize.hpp"

namespace cookbook::simt {

LibraryCode library_code;

namespace {

bool is_library_symbol(std::string_view name) {
  for (const std::string_view prefix :
       {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_ZN8cookbook4simt",
        "_ZNK8cookbook4simt"}) {
    if (name.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

std::vector<uintptr_t> guard_offsets;  // sorted; each guard is 8 bytes

std::vector<SharedVariable> variables;   // by offset
std::vector<uint16_t> variable_of_byte;  // number in `variables` + 1, 0 between them

// "_ZZN8cookbook9transposeILi0EEvPKfPfiE4tile" -> "tile"
std::string variable_name(const char* symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : symbol;
  std::free(demangled);
  const size_t colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

bool is_of_backend(std::string_view name) {
  for (const std::string_view prefix :
       {"_ZN8cookbook4simt", "_ZZN8cookbook4simt", "_ZZNK8cookbook4simt", "__tls_guard",
        "threadIdx", "blockIdx", "blockDim", "gridDim"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

void add_variable(const Symbol& symbol) {
  if (symbol.bytes == 0 || std::strstr(symbol.name, "cookbook_red_zone_") != nullptr) return;
  variables.push_back(
      {symbol.begin, symbol.begin + symbol.bytes, is_of_backend(symbol.name) ? "" : symbol.name});
}

void sort_variables() {
  std::sort(variables.begin(), variables.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  if (variables.size() >= 0xffff) variables.clear();
  for (size_t i = 0; i < variables.size(); ++i) {
    variable_of_byte.resize(std::max(variable_of_byte.size(), variables[i].end));
    std::fill(variable_of_byte.begin() + static_cast<std::ptrdiff_t>(variables[i].begin),
              variable_of_byte.begin() + static_cast<std::ptrdiff_t>(variables[i].end),
              static_cast<uint16_t>(i + 1));
  }
  for (SharedVariable& variable : variables) variable.name = variable_name(variable.name.c_str());
}

}  // namespace

void find_library_code() {
  static bool done = false;
  if (done) return;
  done = true;

  struct Function {
    uintptr_t begin, end;
  };
  std::vector<Function> functions;
  uintptr_t lowest = ~uintptr_t{0}, highest = 0;
  for_each_symbol(reinterpret_cast<const void*>(&find_library_code), [&](const Symbol& symbol) {
    const Function function{symbol.begin, symbol.begin + symbol.bytes};
    if (symbol.type == STT_TLS) {
      if (std::strncmp(symbol.name, "_ZGV", 4) == 0) guard_offsets.push_back(symbol.begin);
      add_variable(symbol);
    } else if (symbol.type == STT_FUNC && symbol.bytes != 0 && is_library_symbol(symbol.name)) {
      functions.push_back(function);
      lowest = std::min(lowest, function.begin);
      highest = std::max(highest, function.end);
    }
  });
  std::sort(guard_offsets.begin(), guard_offsets.end());
  sort_variables();
  if (functions.empty()) return;

  static std::vector<uint8_t> bits;
  lowest &= ~uintptr_t{127};
  bits.assign((highest - lowest) / 128 + 1, 0);
  for (const Function& function : functions) {
    const uintptr_t first = (function.begin - lowest + 15) / 16;
    const uintptr_t last = (function.end - 1 - lowest) / 16;
    for (uintptr_t i = first; i <= last; ++i) {
      bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << (i % 8));
    }
  }
  library_code = {lowest, highest - lowest, bits.data()};
}

const SharedVariable* find_shared_variable(uintptr_t offset, size_t bytes) {
  const uintptr_t last = offset + bytes - 1;
  if (last >= variable_of_byte.size()) return nullptr;
  const uint16_t number = variable_of_byte[offset];
  return number != 0 && number == variable_of_byte[last] ? &variables[number - 1] : nullptr;
}

const SharedVariable* nearest_shared_variable(uintptr_t offset) {
  const SharedVariable* nearest = nullptr;
  uintptr_t least = ~uintptr_t{0};
  for (const SharedVariable& variable : variables) {
    const uintptr_t distance = offset >= variable.end    ? offset - variable.end + 1
                               : offset < variable.begin ? variable.begin - offset
                                                         : 0;
    if (distance < least) least = distance, nearest = &variable;
  }
  return nearest;
}

bool is_guard_variable(uintptr_t offset) {
  const auto after = std::upper_bound(guard_offsets.begin(), guard_offsets.end(), offset);
  return after != guard_offsets.begin() && offset - *(after - 1) < 8;
}

}  // namespace cookbook::simt
