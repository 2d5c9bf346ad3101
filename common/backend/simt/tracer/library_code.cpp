// SPDX-License-Identifier: MIT
#include "common/backend/simt/tracer/library_code.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

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

void add_variable(const char* symbol, uintptr_t offset, size_t bytes) {
  const std::string_view name = symbol;
  if (bytes == 0 || name.find("cookbook_red_zone_") != std::string_view::npos) return;
  variables.push_back({offset, offset + bytes, symbol});  // most are never named
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

uintptr_t load_bias() {
  uintptr_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the executable comes first
      },
      &bias);
  return bias;
}

/// The running executable's file. Mapped, not read: its symbols are a small part of it, and every
/// traced process looks for them.
class Executable {
 public:
  Executable() {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0) {
      const auto size = static_cast<size_t>(status.st_size);
      void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (at != MAP_FAILED) bytes_ = {static_cast<const char*>(at), size};
    }
    if (file >= 0) close(file);
  }
  ~Executable() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace

void find_library_code() {
  static bool done = false;
  if (done) return;
  done = true;

  const Executable executable;
  const std::string_view file = executable.bytes();
  if (file.size() < sizeof(ElfW(Ehdr)) || file.compare(0, SELFMAG, ELFMAG) != 0) return;
  ElfW(Ehdr) header;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (file.size() < header.e_shoff + sections.size() * sizeof(ElfW(Shdr))) return;
  std::memcpy(sections.data(), file.data() + header.e_shoff, sections.size() * sizeof(ElfW(Shdr)));

  struct Function {
    uintptr_t begin, end;
  };
  std::vector<Function> functions;
  uintptr_t lowest = ~uintptr_t{0}, highest = 0;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const char* names = file.data() + sections[section.sh_link].sh_offset;
    for (size_t at = 0; at + sizeof(ElfW(Sym)) <= section.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) symbol;
      std::memcpy(&symbol, file.data() + section.sh_offset + at, sizeof symbol);
      if ((symbol.st_info & 0xf) == STT_TLS) {
        const char* name = names + symbol.st_name;
        if (std::strncmp(name, "_ZGV", 4) == 0) guard_offsets.push_back(symbol.st_value);
        add_variable(name, symbol.st_value, symbol.st_size);
      }
      if ((symbol.st_info & 0xf) != STT_FUNC || symbol.st_size == 0) continue;
      if (!is_library_symbol(names + symbol.st_name)) continue;
      const Function function{symbol.st_value, symbol.st_value + symbol.st_size};
      functions.push_back(function);
      if (function.begin < lowest) lowest = function.begin;
      if (function.end > highest) highest = function.end;
    }
  }
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
  library_code = {lowest + load_bias(), highest - lowest, bits.data()};
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
