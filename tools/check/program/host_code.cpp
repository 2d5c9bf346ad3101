// SPDX-License-Identifier: MIT
#include "tools/check/program/host_code.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"

extern "C" char __executable_start, __data_start, _end;

namespace cookbook::simt::program {
namespace {

struct Code {
  uintptr_t end;
  std::string name;  // of a class with a virtual function table; empty: a function
};

std::string demangled(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string found = status == 0 ? text : name;
  std::free(text);
  return found;
}

/// Whether the program may write it, and declares it outside of functions: a static variable of a
/// kernel is on the device. What begins so is the compiler's or a library's.
bool is_variable(const Symbol& symbol) {
  if (symbol.begin < reinterpret_cast<uintptr_t>(&__data_start)) return false;
  const std::string_view name = symbol.name;
  for (const char* other :
       {"__", "_ZZ", "_ZG", "_ZT", "_ZSt", "_ZNSt", "_ZN8cookbook", "cookbook_"}) {
    if (name.starts_with(other)) return false;
  }
  return true;
}

struct Image {
  uintptr_t begin = reinterpret_cast<uintptr_t>(&__executable_start);
  size_t bytes = static_cast<size_t>(&_end - &__executable_start);
  uintptr_t hidden = 0;  // as many bytes, of which none is mapped
  std::map<uintptr_t, Code> code;
  std::map<uintptr_t, Code> variables;  // that can be written; not those of libraries
  std::set<uintptr_t> of_device;

  bool contains(uintptr_t address) const { return address - begin < bytes; }
  bool hides(uintptr_t address) const { return hidden != 0 && address - hidden < bytes; }

  /// Whether it is where a function begins, or in a virtual function table.
  bool is_code(uintptr_t address) {
    if (!contains(address)) return false;
    if (hidden == 0) read_symbols();
    const auto above = code.upper_bound(address);
    if (above == code.begin()) return false;
    const auto& [first, one] = *std::prev(above);
    return address == first || (!one.name.empty() && address < one.end);
  }

  void read_symbols() {
    void* const reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED) std::abort();
    hidden = reinterpret_cast<uintptr_t>(reserved);
    for_each_symbol(&__executable_start, [this](const Symbol& symbol) {
      if (symbol.bytes == 0) return;
      if (symbol.type == STT_OBJECT && is_variable(symbol)) {
        variables[symbol.begin] = {symbol.begin + symbol.bytes, demangled(symbol.name)};
      }
      if (symbol.type == STT_FUNC) {
        code[symbol.begin] = {symbol.begin + symbol.bytes, ""};
      } else if (std::strncmp(symbol.name, "_ZTV", 4) == 0) {
        code[symbol.begin] = {symbol.begin + symbol.bytes, demangled(symbol.name + 4)};
      }
    });
  }
};

std::mutex mutex;
std::atomic<const char*> remedy{nullptr};

Image& image() {
  static auto* instance = new Image;
  return *instance;
}

template <class F>
void for_each_word(void* at, size_t bytes, const void* device, F&& visit) {
  constexpr size_t kWord = sizeof(uintptr_t);
  const std::lock_guard<std::mutex> lock(mutex);
  Image& all = image();
  char* const begin = static_cast<char*>(at);
  for (size_t i = -reinterpret_cast<uintptr_t>(device) % kWord; i + kWord <= bytes; i += kWord) {
    uintptr_t word;
    std::memcpy(&word, begin + i, kWord);
    const uintptr_t old = word;
    visit(all, word);
    if (word != old) std::memcpy(begin + i, &word, kWord);
  }
}

}  // namespace

void hide_host_code(void* at, size_t bytes, const void* device) {
  for_each_word(at, bytes, device, [](Image& all, uintptr_t& word) {
    if (all.is_code(word) && !all.of_device.contains(word)) word += all.hidden - all.begin;
  });
}

void show_host_code(void* at, size_t bytes, const void* device) {
  for_each_word(at, bytes, device, [](Image& all, uintptr_t& word) {
    if (all.hides(word)) word -= all.hidden - all.begin;
  });
}

void note_device_code(const void* device, size_t bytes) {
  for_each_word(const_cast<void*>(device), bytes, device, [](Image& all, uintptr_t& word) {
    if (all.is_code(word)) all.of_device.insert(word);
  });
}

std::string describe_host_code(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex);
  Image& all = image();
  uintptr_t at = reinterpret_cast<uintptr_t>(address);
  if (!all.hides(at)) return "";
  at -= all.hidden - all.begin;
  const auto above = all.code.upper_bound(at);
  if (above == all.code.begin()) return "";
  const auto& [first, one] = *std::prev(above);
  if (one.name.empty()) {
    remedy =
        "take the address of a __device__ function in device code, as the value of a "
        "__device__ variable, and copy it by cudaMemcpyFromSymbol(); or let the kernel be a "
        "template of a functor, or take a __device__ lambda";
    return "calls " + kernel_name(reinterpret_cast<const void*>(first)) + " by its host address";
  }
  remedy =
      "construct the object in a kernel, by new or placement new: a constructor on the host "
      "sets the host's table of virtual functions";
  return "calls a virtual function of a host-constructed " + one.name;
}

std::string describe_host_variable(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (at < reinterpret_cast<uintptr_t>(&__data_start) || at >= reinterpret_cast<uintptr_t>(&_end)) {
    return "";
  }
  const NoThread none;
  const std::lock_guard<std::mutex> lock(mutex);
  Image& all = image();
  if (all.hidden == 0) all.read_symbols();
  const auto above = all.variables.upper_bound(at);
  if (above == all.variables.begin()) return "";
  const Code& one = std::prev(above)->second;
  return at < one.end ? "the host variable '" + one.name + "'" : "";
}

const char* remedy_of_host_code() { return remedy.exchange(nullptr); }

}  // namespace cookbook::simt::program
